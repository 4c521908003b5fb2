"""`moot sessions`: looking back at what was researched, running it again, taking it along, making room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich import filesize

from moot.cli.command import at_desk, command, log_file, name_share, on_desk, refuse_existing, write_file
from moot.cli.options import DAY, AsJson, argument, check_typed, confirm, day, group, option, require_day
from moot.cli.printing import count_up, tell
from moot.cli.research_view import show_page, show_replay, show_session
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.report import Style, render_page, render_report
from moot.modules.coordinator.application.session_history import SessionQuery
from moot.shared.domain.audit import Verification, WorkspaceVerification
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, Unavailable
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.infrastructure.settings import Settings, load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from moot.cli.research import Run
    from moot.desk import Moot
    from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
    from moot.modules.coordinator.application.replay import Replay
    from moot.modules.coordinator.application.session_history import SessionDetail, SessionPage
    from moot.modules.coordinator.application.session_pack import SessionPack
    from moot.modules.governance.application.decision_log import DecisionRecord

sessions = group("help.sessions")
NOT_COMPARED = 3
"""Exit code: the record holds, but nobody has seen that the answers beside it follow from it."""


def complete_sessions(incomplete: str) -> list[str]:
    """The newest sessions; none where they cannot be had, as nobody asked for a complaint."""
    try:
        settings = load_settings()
        configure_logging("error", log_file(settings))
        page = at_desk(settings, lambda desk: desk.sessions())
    except Exception:  # noqa: BLE001  # bulkhead: a key pressed at a prompt
        return []
    return [text for item in page.items if (text := str(item.id)).startswith(incomplete)]


SessionId = Annotated[str, argument("help.session_id", metavar="ID", autocompletion=complete_sessions)]


@sessions.command("list", help=say("sessions.help.list"))
def list_sessions(
    symbol: Annotated[str | None, option("sessions.help.symbol")] = None,
    status: Annotated[str | None, option("sessions.help.status")] = None,
    action: Annotated[str | None, option("sessions.help.action")] = None,
    since: Annotated[str | None, option("help.since", metavar=DAY)] = None,
    until: Annotated[str | None, option("sessions.help.until", metavar=DAY)] = None,
    page: Annotated[int, option("sessions.help.page")] = 1,
    as_json: AsJson = False,
) -> None:
    """The history, not the command line, decides whether it makes sense."""

    async def work(desk: Moot) -> SessionPage:
        query = check_typed(
            SessionQuery,
            symbol=symbol and await name_share(desk, symbol, as_json=as_json),
            status=status,
            verdict_action=action and action.upper(),
            start_date=day("--since", since),
            end_date=day("--until", until),
            page=page,
        )
        return await desk.coordinator.session_history().sessions(query.of(DEFAULT_WORKSPACE))

    on_desk(work, show_page, as_json=as_json)


@sessions.command("show", help=say("sessions.help.show"))
def show(session_id: SessionId, as_json: AsJson = False) -> None:
    async def work(desk: Moot) -> tuple[SessionDetail, ResearchResult | None]:
        history, known = desk.coordinator.session_history(), await find_session(desk, session_id)
        session = await history.session(known, DEFAULT_WORKSPACE)
        if as_json or not session.ended:
            return session, None
        return session, await history.result(known, DEFAULT_WORKSPACE)

    on_desk(work, lambda found: show_session(*found), as_json=as_json, body=lambda found: found[0])


@sessions.command("decisions", help=say("decide.of_session"))
def decisions(session_id: SessionId) -> None:
    from moot.cli.rule_view import show_decisions

    async def work(desk: Moot) -> list[DecisionRecord]:
        session = await _session(desk, session_id)
        return list(await desk.governance.decisions.of_session(session.id, DEFAULT_WORKSPACE))

    on_desk(work, show_decisions)


@sessions.command("retry", help=say("sessions.help.retry"))
def retry(
    session_id: SessionId,
    skip_debate: Annotated[bool | None, option("help.retry_skip_debate", "--skip-debate/--debate")] = None,
    as_json: AsJson = False,
) -> None:
    with command(as_json=as_json) as settings:
        session = at_desk(settings, lambda desk: _session(desk, session_id))
        _run_again(
            settings,
            session,
            lambda desk, watch: desk.retry(session.id, skip_debate=skip_debate, watch=watch),
            skip_debate=skip_debate,
            as_json=as_json,
        )


@sessions.command("resume", help=say("sessions.help.resume"))
def resume(
    session_id: Annotated[str | None, argument("sessions.help.resume_id")] = None, as_json: AsJson = False
) -> None:
    """All that can be resumed are; the exit code is that of the worst of them."""
    with command(as_json=as_json) as settings:
        if session_id is not None:
            _resume_one(settings, session_id, as_json=as_json)
            return
        left = at_desk(settings, lambda desk: desk.find_interrupted())
        if not left:
            tell("sessions.nothing_interrupted", err=as_json)
        failures: list[AppError] = []
        for session in left:
            try:
                _resume_one(settings, str(session.id), as_json=as_json)
            except AppError as e:  # does not keep the others from it
                failures.append(e)
                why = e.in_locale(environment_locale())
                tell("sessions.not_resumed", err=True, session_id=session.id, why=why)
        if failures:
            raise failures[0]


@sessions.command("cancel", help=say("sessions.help.cancel"))
def cancel(session_id: SessionId) -> None:
    async def work(desk: Moot) -> tuple[SessionDetail, float]:
        return await desk.cancel(await find_session(desk, session_id)), desk.settings.lease_seconds

    session, seconds = on_desk(work)
    key = "cancelled" if session.ended else "cancelling"
    tell(f"sessions.{key}", session_id=session.id, seconds=f"{seconds:g}")


@sessions.command("export", help=say("session_files.help.export"))
def export(
    session_id: SessionId,
    pack: Annotated[Path, option("session_files.help.pack", metavar="FILE.zip")],
    force: Annotated[bool, option("session_files.help.force", "--force")] = False,
) -> None:
    with command() as settings:
        refuse_existing(pack, force=force)

        async def work(desk: Moot) -> SessionPack:
            about = (await find_session(desk, session_id), DEFAULT_WORKSPACE, environment_locale())
            return await desk.coordinator.session_packs().pack(*about)

        packed = at_desk(settings, work)
        write_file(pack, packed.data)
        tell("session_files.packed", path=pack, size=filesize.decimal(len(packed.data)))
        typer.echo(packed.verification.explanation, err=not packed.verification.intact)
        tell("session_files.head", head=packed.verification.head)


@sessions.command("verify", help=say("session_files.help.verify"))
def verify(
    target: Annotated[str | None, argument("session_files.help.target", metavar="[ID|FILE.zip]")] = None,
    head: Annotated[str | None, option("session_files.help.head", metavar="HASH")] = None,
    sign: Annotated[bool, option("session_files.help.sign", "--sign")] = False,
) -> None:
    """Exit code 0: the record is still what was written; 1: it is not; 3: a pack's answers were not compared."""
    if target is not None and (target.lower().endswith(".zip") or Path(target).is_file()):
        _verify_pack(Path(target), head)
        return

    async def work(desk: Moot) -> Verification | WorkspaceVerification:
        history, reader = desk.coordinator.session_history(), environment_locale()
        if target is None:  # every session of the workspace, and that none is missing
            return await history.verify_all(DEFAULT_WORKSPACE, reader, sign=sign)
        return await history.verify(await find_session(desk, target), DEFAULT_WORKSPACE, reader)

    found = on_desk(work)
    broken = found.broken if isinstance(found, WorkspaceVerification) else []
    for session in broken:
        tell("session_files.of_session", err=True, session_id=session.session_id, said=session.explanation)
    typer.echo(found.explanation, err=target is None and not found.intact)
    if target is None:
        tell("session_files.ledger", head=found.head)
    _compare_heads(head, found.head)
    if not found.intact:
        raise typer.Exit(1)


@sessions.command("prune", help=say("session_files.help.prune"))
def prune(
    before: Annotated[str, option("session_files.help.before", metavar=DAY)],
    workspace: Annotated[str, option("session_files.help.workspace")] = "default",
    yes: Annotated[bool, option("session_files.help.yes", "--yes")] = False,
) -> None:
    async def work(desk: Moot) -> None:
        pruning = desk.coordinator.session_pruning()
        planned = await pruning.plan(last, workspace)
        if not planned.calls:
            tell("session_files.nothing", day=last)
            return
        if not yes:
            about = {"calls": planned.calls, "sessions": planned.sessions, "day": last}
            confirm(say("session_files.sure", **about), "session_files.needs_yes", "session_files.kept")
        assert desk.database is not None, "there was something to prune in it"
        size = await desk.database.size()
        with count_up(say("session_files.pruning"), planned.calls) as count:
            pruned = await pruning.prune(last, workspace, count)
        told = {"calls": pruned.calls, "sessions": pruned.sessions, "size": filesize.decimal(pruned.size)}
        tell("session_files.pruned", **told)
        for session_id in pruned.broken:
            tell("session_files.broken", err=True, session_id=session_id)
        await desk.database.reclaim()
        left = await desk.database.size()
        room = {"before": filesize.decimal(size), "after": filesize.decimal(left)}
        tell(f"session_files.{'room' if left < size else 'room_kept'}", **room)

    with command() as settings:
        last = require_day("--before", before)
        at_desk(settings, work)


@sessions.command("report", help=say("sessions.help.report"))
def report(
    session_id: SessionId,
    style: Annotated[Style, option("sessions.help.style")] = "full",
    kind: Annotated[Literal["md", "html", "pdf"], option("sessions.help.format", "--format")] = "md",
    output: Annotated[Path | None, option("sessions.help.output", "-o", "--output", metavar="FILE")] = None,
    force: Annotated[bool, option("session_files.help.force", "--force")] = False,
) -> None:
    """As `moot report` it is the same."""
    with command() as settings:
        if output is None and kind == "pdf":
            raise InvalidInput(SAY("session_files.needs_file"))
        if output is not None:
            refuse_existing(output, force=force)

        async def work(desk: Moot) -> ResearchResult:
            return await desk.result(await find_session(desk, session_id))

        written = _render(at_desk(settings, work), style, kind)
        if output is None:
            typer.echo(written, nl=False)
        else:
            write_file(output, written)
            tell("session_files.written", err=True, path=output)


def _render(result: ResearchResult, style: Style, kind: str) -> str | bytes:
    if kind == "pdf":
        from moot.modules.coordinator.application.report_pdf import render_pdf

        return render_pdf(result, style)
    return render_page(result, style) if kind == "html" else render_report(result, style)


@sessions.command("replay", help=say("replay.help"))
def replay(session_id: SessionId, as_json: AsJson = False) -> None:
    """Exit code 0: everything came out as it is on record; 1: something did not, or could not be replayed."""

    async def work(desk: Moot) -> Replay:
        return await desk.replay(await find_session(desk, session_id))

    replayed = on_desk(work, show_replay, as_json=as_json)
    if not replayed.equal:
        raise typer.Exit(1)


async def find_session(desk: Moot, text: str) -> UUID:
    return await desk.coordinator.session_history().find(text, DEFAULT_WORKSPACE)


async def _session(desk: Moot, text: str) -> SessionDetail:
    return await desk.session(await find_session(desk, text))


def _resume_one(settings: Settings, session_id: str, *, as_json: bool) -> None:
    session = at_desk(settings, lambda desk: _session(desk, session_id))
    tell("sessions.resuming", err=as_json, session_id=session.id, symbol=session.symbol)
    _run_again(settings, session, lambda desk, watch: desk.resume(session.id, watch=watch), as_json=as_json)


def _run_again(
    settings: Settings, session: SessionDetail, run: Run, *, skip_debate: bool | None = None, as_json: bool
) -> None:
    from moot.cli.research import run_and_show

    skipped = session.skip_debate if skip_debate is None else skip_debate
    asked = {"experts": session.selected_experts, "skip_debate": skipped, "locale": session.locale}
    run_and_show(settings, asked, run, as_json=as_json)


def _compare_heads(noted: str | None, head: str) -> None:
    """Raises `typer.Exit` when the head is not the one that somebody noted down."""
    if noted is not None and noted.strip().lower() != head:
        raise _fail(Conflict(SAY("session_files.other_head", head=head)))


def _verify_pack(path: Path, head: str | None) -> None:
    """Without settings, which this machine may not have."""
    from moot.modules.coordinator.application.session_pack import LARGEST
    from moot.modules.coordinator.container import check_session_pack

    try:
        with path.open("rb") as file:
            key = os.environ.get("MOOT_AUDIT_KEY", "")
            found = check_session_pack(file.read(LARGEST + 1), environment_locale(), key)
    except OSError as e:
        raise _fail(Unavailable(SAY("rules.no_file", path=path, reason=e.strerror or e))) from None
    except AppError as e:
        raise _fail(e) from None
    typer.echo(found.explanation)
    tell("session_files.head_of", session_id=found.session_id, head=found.head)
    _compare_heads(head, found.head)
    if not found.compared:
        raise typer.Exit(NOT_COMPARED)


def _fail(error: AppError) -> typer.Exit:
    tell("error", err=True, message=error.in_locale(environment_locale()))
    return typer.Exit(1)
