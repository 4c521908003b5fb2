"""`moot sessions`: looking back at what was researched."""

from uuid import UUID

import typer

from moot.cli.on_desk import on_desk
from moot.cli.texts import environment_locale
from moot.desk import Moot
from moot.shared.domain.audit import Verification
from moot.shared.domain.validation import refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


def verify(session_id: str) -> None:
    """Exit code 0: the record is still what was written; 1: it is not."""

    async def work(desk: Moot) -> Verification:
        history = desk.coordinator.session_history()
        return await history.verify(_id(session_id), DEFAULT_WORKSPACE, environment_locale())

    verification = on_desk(work)
    typer.echo(verification.explanation)
    if not verification.intact:
        raise typer.Exit(1)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise refused("uuid_parsing", "session_id", text) from None
