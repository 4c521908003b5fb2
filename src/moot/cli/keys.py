"""`moot keys`: who may use this desk over HTTP."""

from collections.abc import Sequence
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.on_desk import on_desk
from moot.cli.texts import say
from moot.desk import Moot
from moot.modules.access.application.access_service import ApiKey, IssuedKey


def create_key(name: str, scopes: Sequence[str], workspace: str) -> None:
    """The key alone is on stdout, so that it can be piped to where it is kept."""

    async def work(desk: Moot) -> IssuedKey:
        return await desk.access.access_service().create(name, scopes, workspace)

    key, secret = on_desk(work)
    about = {"id": key.id, "name": key.name, "scopes": key.scopes, "workspace": key.workspace_id}
    typer.echo(say("keys.created", **about), err=True)
    typer.echo(secret)


def list_keys() -> None:
    async def work(desk: Moot) -> Sequence[ApiKey]:
        return await desk.access.access_service().list()

    keys = on_desk(work)
    if not keys:
        typer.echo(say("keys.none"))
        return
    Console().print(_table(keys))


def revoke_key(key_id: str) -> None:
    async def work(desk: Moot) -> ApiKey:
        return await desk.access.access_service().revoke(key_id)

    key = on_desk(work)
    typer.echo(say("keys.revoked", id=key.id, name=key.name))


def _table(keys: Sequence[ApiKey]) -> Table:
    """Two lines a key: there is more to say than fits side by side."""
    columns = [
        Column(say("keys.column.key"), overflow="fold"),
        Column(say("keys.column.rights"), overflow="fold"),
        Column(say("keys.column.times"), no_wrap=True),
        Column(say("keys.column.state"), no_wrap=True),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_row(
            Text.assemble((key.id, "bold"), "\n", key.name),
            Text(f"{', '.join(key.scopes)}\n{key.workspace_id}"),
            f"{_minute(key.created_at)}\n{_minute(key.last_used_at)}",
            f"{say('keys.state.revoked')}\n{_minute(key.revoked_at)}"
            if key.revoked_at
            else say("keys.state.on"),
        )
    return table


def _minute(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "—"
