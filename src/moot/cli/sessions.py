"""`moot sessions`: looking back at what was researched."""

import sys
from typing import Any, NamedTuple

import typer
from pydantic import BaseModel

from moot.cli.arguments import day, session_id_of
from moot.cli.on_desk import at_desk, on_desk
from moot.cli.outcome import command
from moot.cli.session_view import show_page, show_session
from moot.cli.texts import environment_locale
from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.session_history import SessionDetail, SessionPage
from moot.modules.coordinator.application.session_query import SessionQuery
from moot.shared.domain.audit import Verification
from moot.shared.domain.validation import checked
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


class Wanted(NamedTuple):
    """What was typed. The history, not the command line, decides whether it makes sense."""

    symbol: str | None = None
    status: str | None = None
    action: str | None = None
    since: str | None = None
    until: str | None = None
    page: int = 1

    def query(self) -> SessionQuery:
        typed: dict[str, Any] = {
            "symbol": self.symbol,
            "status": self.status,
            "verdict_action": self.action and self.action.upper(),
            "start_date": day("--since", self.since),
            "end_date": day("--until", self.until),
            "page": self.page,
        }
        return checked(SessionQuery, {name: value for name, value in typed.items() if value is not None})


def list_sessions(wanted: Wanted, *, as_json: bool) -> None:
    async def work(desk: Moot) -> SessionPage:
        return await desk.coordinator.session_history().sessions(wanted.query().of(DEFAULT_WORKSPACE))

    with command(as_json=as_json) as settings:
        page = at_desk(settings, work)
        if as_json:
            _print_json(page)
        else:
            show_page(page, environment_locale())


def show(session_id: str, *, as_json: bool) -> None:
    async def work(desk: Moot) -> tuple[SessionDetail, ResearchResult | None]:
        history, known = desk.coordinator.session_history(), session_id_of(session_id)
        session = await history.session(known, DEFAULT_WORKSPACE)
        if as_json or session.status == "running":
            return session, None
        return session, await history.result(known, DEFAULT_WORKSPACE)

    with command(as_json=as_json) as settings:
        session, result = at_desk(settings, work)
        if as_json:
            _print_json(session)
        else:
            show_session(session, result, environment_locale())


def verify(session_id: str) -> None:
    """Exit code 0: the record is still what was written; 1: it is not."""

    async def work(desk: Moot) -> Verification:
        history = desk.coordinator.session_history()
        return await history.verify(session_id_of(session_id), DEFAULT_WORKSPACE, environment_locale())

    verification = on_desk(work)
    typer.echo(verification.explanation)
    if not verification.intact:
        raise typer.Exit(1)


def _print_json(body: BaseModel) -> None:
    """Exactly what the REST API gives."""
    sys.stdout.write(body.model_dump_json(indent=2) + "\n")
