"""`moot sessions retry|resume|cancel`: running a session again, going on with it, stopping it."""

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import typer
from rich.console import Console

from moot.cli.arguments import session_id_of
from moot.cli.on_desk import at_desk, on_desk, report_of
from moot.cli.outcome import command, log_file
from moot.cli.progress import progress_for
from moot.cli.texts import SAY, environment_locale, say
from moot.cli.verdict_view import show_result
from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, ResearchResult
from moot.modules.coordinator.application.run import Watch
from moot.modules.coordinator.application.session_history import SessionDetail
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.settings import Settings

Run = Callable[[Moot, Watch | None], Awaitable[ResearchResult]]


class Finished(NamedTuple):
    result: ResearchResult
    report: Path | OSError


def retry(session_id: str, *, skip_debate: bool, as_json: bool) -> None:
    async def again(desk: Moot, watch: Watch | None) -> ResearchResult:
        return await desk.retry(session_id_of(session_id), skip_debate=skip_debate, watch=watch)

    with command(as_json=as_json) as settings:
        session = at_desk(settings, lambda desk: desk.session(session_id_of(session_id)))
        _show(settings, session, again, skip_debate=skip_debate, as_json=as_json)


def resume(session_id: str | None, *, as_json: bool) -> None:
    """All that can be resumed are; the exit code is that of the worst of them."""
    with command(as_json=as_json) as settings:
        if session_id is not None:
            _resume_one(settings, session_id_of(session_id), as_json=as_json)
            return
        left = at_desk(settings, lambda desk: desk.interrupted())
        if not left:
            typer.echo(say("sessions.nothing_interrupted"), err=as_json)
        failures = [error for session in left if (error := _tried(settings, session.id, as_json=as_json))]
        if failures:
            raise failures[0]


def cancel(session_id: str) -> None:
    async def work(desk: Moot) -> tuple[SessionDetail, float]:
        return await desk.cancel(session_id_of(session_id)), desk.settings.lease_seconds

    session, seconds = on_desk(work)
    key = "cancelled" if session.ended else "cancelling"
    typer.echo(say(f"sessions.{key}", session_id=session_id, seconds=f"{seconds:g}"))


def _tried(settings: Settings, session_id: UUID, *, as_json: bool) -> AppError | None:
    """One that cannot be resumed does not keep the others from it."""
    try:
        _resume_one(settings, session_id, as_json=as_json)
    except AppError as e:
        why = e.in_locale(environment_locale())
        typer.echo(say("sessions.not_resumed", session_id=session_id, why=why), err=True)
        return e
    return None


def _resume_one(settings: Settings, session_id: UUID, *, as_json: bool) -> None:
    async def go_on(desk: Moot, watch: Watch | None) -> ResearchResult:
        return await desk.resume(session_id, watch=watch)

    session = at_desk(settings, lambda desk: desk.session(session_id))
    message = SAY("sessions.resuming", session_id=session_id, symbol=session.symbol)
    typer.echo(message.in_locale(environment_locale()), err=as_json)
    _show(settings, session, go_on, skip_debate=session.skip_debate, as_json=as_json)


def _show(settings: Settings, session: SessionDetail, run: Run, *, skip_debate: bool, as_json: bool) -> None:
    asked = {
        "experts": [name for name in EXPERTS if name in session.selected_experts],
        "skip_debate": skip_debate,
        "locale": session.locale,
    }
    console = Console()
    with progress_for(console, asked, quiet=as_json) as watch:
        finished = at_desk(settings, lambda desk: _finish(desk, run, watch))
    if as_json:
        body = finished.result.model_dump(mode="json")
        sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")
    else:
        show_result(console, finished.result, finished.report, log_file(settings))


async def _finish(desk: Moot, run: Run, watch: Watch | None) -> Finished:
    result = await run(desk, watch)
    return Finished(result, report_of(desk, result))
