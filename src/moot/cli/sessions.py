"""`moot sessions`: looking back at what was researched, running it again, taking it along, making room."""

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich import filesize

from moot.cli.options import (
    DAY,
    AsJson,
    SessionId,
    SkipDebate,
    argument,
    check_typed,
    day,
    group,
    option,
    require_day,
    uuid_of,
)
from moot.cli.outcome import at_desk, command, on_desk
from moot.cli.printing import count_up, print_json, tell
from moot.cli.research import run_and_show
from moot.cli.session_view import show_decisions, show_page, show_replay, show_session
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.session_history import (
    Pruned,
    SessionDetail,
    SessionPage,
    SessionQuery,
)
from moot.modules.governance.application.decision_log import DecisionRecord
from moot.shared.domain.audit import Verification
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.private_files import write_private
from moot.shared.infrastructure.settings import Settings

if TYPE_CHECKING:
    from moot.desk import Moot

sessions = group("help.sessions")


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

    async def work(desk: "Moot") -> SessionPage:
        query = check_typed(
            SessionQuery,
            symbol=symbol,
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
    async def work(desk: "Moot") -> tuple[SessionDetail, ResearchResult | None]:
        history, known = desk.coordinator.session_history(), _id(session_id)
        session = await history.session(known, DEFAULT_WORKSPACE)
        if as_json or session.status == "running":
            return session, None
        return session, await history.result(known, DEFAULT_WORKSPACE)

    with command(as_json=as_json) as settings:
        session, result = at_desk(settings, work)
        if as_json:
            print_json(session)
        else:
            show_session(session, result)


@sessions.command("decisions", help=say("decide.of_session"))
def decisions(session_id: SessionId) -> None:
    async def work(desk: "Moot") -> list[DecisionRecord]:
        session = await desk.session(_id(session_id))
        assert desk.governance.decisions is not None, "there was a session"
        return list(await desk.governance.decisions.of_session(session.id, DEFAULT_WORKSPACE))

    on_desk(work, show_decisions)


@sessions.command("retry", help=say("sessions.help.retry"))
def retry(session_id: SessionId, skip_debate: SkipDebate = False, as_json: AsJson = False) -> None:
    with command(as_json=as_json) as settings:
        known = _id(session_id)
        session = at_desk(settings, lambda desk: desk.session(known))
        run_and_show(
            settings,
            {"experts": session.selected_experts, "skip_debate": skip_debate, "locale": session.locale},
            lambda desk, watch: desk.retry(known, skip_debate=skip_debate, watch=watch),
            as_json=as_json,
        )


@sessions.command("resume", help=say("sessions.help.resume"))
def resume(
    session_id: Annotated[str | None, argument("sessions.help.resume_id")] = None, as_json: AsJson = False
) -> None:
    """All that can be resumed are; the exit code is that of the worst of them."""
    with command(as_json=as_json) as settings:
        if session_id is not None:
            _resume_one(settings, _id(session_id), as_json=as_json)
            return
        left = at_desk(settings, lambda desk: desk.find_interrupted())
        if not left:
            tell("sessions.nothing_interrupted", err=as_json)
        failures = [
            error for session in left if (error := _try_to_resume(settings, session.id, as_json=as_json))
        ]
        if failures:
            raise failures[0]


@sessions.command("cancel", help=say("sessions.help.cancel"))
def cancel(session_id: SessionId) -> None:
    async def work(desk: "Moot") -> tuple[SessionDetail, float]:
        return await desk.cancel(_id(session_id)), desk.settings.lease_seconds

    session, seconds = on_desk(work)
    key = "cancelled" if session.ended else "cancelling"
    tell(f"sessions.{key}", session_id=session_id, seconds=f"{seconds:g}")


@sessions.command("export", help=say("session_files.help.export"))
def export(
    session_id: SessionId,
    pack: Annotated[Path, option("session_files.help.pack", metavar="FILE.zip")],
    force: Annotated[bool, option("session_files.help.force", "--force")] = False,
) -> None:
    with command() as settings:
        if pack.exists() and not force:
            raise InvalidInput(SAY("session_files.exists", path=pack))
        about = (_id(session_id), DEFAULT_WORKSPACE, environment_locale())
        packed = at_desk(settings, lambda desk: desk.coordinator.session_packs().pack(*about))
        _write(pack, packed.data)
        tell("session_files.packed", path=pack, size=filesize.decimal(len(packed.data)))
        typer.echo(packed.verification.explanation, err=not packed.verification.intact)
        tell("session_files.head", head=packed.verification.head)


@sessions.command("verify", help=say("session_files.help.verify"))
def verify(
    target: Annotated[str, argument("session_files.help.target", metavar="ID|FILE.zip")],
) -> None:
    """Exit code 0: the record is still what was written; 1: it is not."""
    if target.lower().endswith(".zip") or Path(target).is_file():
        _verify_pack(Path(target))
        return

    async def work(desk: "Moot") -> Verification:
        history = desk.coordinator.session_history()
        return await history.verify(_id(target), DEFAULT_WORKSPACE, environment_locale())

    verification = on_desk(work)
    typer.echo(verification.explanation)
    if not verification.intact:
        raise typer.Exit(1)


@sessions.command("prune", help=say("session_files.help.prune"))
def prune(
    before: Annotated[str, option("session_files.help.before", metavar=DAY)],
    workspace: Annotated[str, option("session_files.help.workspace")] = "default",
    yes: Annotated[bool, option("session_files.help.yes", "--yes")] = False,
) -> None:
    async def work(desk: "Moot") -> None:
        pruning = desk.coordinator.session_pruning()
        planned = await pruning.plan(last, workspace)
        if not planned.calls:
            tell("session_files.nothing", day=last)
            return
        if not yes:
            _ask(planned, last)
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


@sessions.command("replay", help=say("replay.help"))
def replay(session_id: SessionId, as_json: AsJson = False) -> None:
    """Exit code 0: everything came out as it is on record; 1: something did not, or could not be replayed."""
    replayed = on_desk(
        lambda desk: desk.coordinator.replay_service().replay(_id(session_id), DEFAULT_WORKSPACE),
        show_replay,
        as_json=as_json,
    )
    if not replayed.equal:
        raise typer.Exit(1)


def _id(text: str) -> UUID:
    return uuid_of("session_id", text)


def _try_to_resume(settings: Settings, session_id: UUID, *, as_json: bool) -> AppError | None:
    """One that cannot be resumed does not keep the others from it."""
    try:
        _resume_one(settings, session_id, as_json=as_json)
    except AppError as e:
        why = e.in_locale(environment_locale())
        tell("sessions.not_resumed", err=True, session_id=session_id, why=why)
        return e
    return None


def _resume_one(settings: Settings, session_id: UUID, *, as_json: bool) -> None:
    session = at_desk(settings, lambda desk: desk.session(session_id))
    tell("sessions.resuming", err=as_json, session_id=session_id, symbol=session.symbol)
    run_and_show(
        settings,
        {"experts": session.selected_experts, "skip_debate": session.skip_debate, "locale": session.locale},
        lambda desk, watch: desk.resume(session_id, watch=watch),
        as_json=as_json,
    )


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and for nobody else to read: who may is for its owner to say."""
    try:
        write_private(path, data)
    except OSError as e:
        reason = e.strerror or e
        raise Unavailable(SAY("session_files.not_written", path=path, reason=reason)) from e


def _verify_pack(path: Path) -> None:
    """Without settings, which this machine may not have. Exit code 0: the pack holds; 1: it does not."""
    from moot.modules.coordinator.application.session_pack import LARGEST
    from moot.modules.coordinator.container import check_session_pack

    try:
        with path.open("rb") as file:
            found = check_session_pack(file.read(LARGEST + 1), environment_locale())
    except OSError as e:
        raise _fail(Unavailable(SAY("rules.no_file", path=path, reason=e.strerror or e))) from None
    except AppError as e:
        raise _fail(e) from None
    typer.echo(found.explanation)
    tell("session_files.head_of", session_id=found.session_id, head=found.head)


def _fail(error: AppError) -> typer.Exit:
    tell("error", err=True, message=error.in_locale(environment_locale()))
    return typer.Exit(1)


def _ask(planned: Pruned, last: date) -> None:
    if not _somebody_is_there():
        raise InvalidInput(SAY("session_files.needs_yes"))
    question = say("session_files.sure", calls=planned.calls, sessions=planned.sessions, day=last)
    if not typer.confirm(question):
        tell("session_files.kept")
        raise typer.Exit(0)


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()
