"""`moot keys`: who may use this desk over HTTP."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from moot.cli.options import argument, group, option
from moot.cli.outcome import on_desk
from moot.cli.printing import folding, minute, table, whole
from moot.cli.texts import say
from moot.modules.access.application import ApiKey

keys = group("help.keys")


@keys.command("create", help=say("help.keys_create"))
def create_key(
    name: Annotated[str, argument("help.keys_name")],
    scope: Annotated[list[str] | None, option("help.keys_scope")] = None,
    workspace: Annotated[str, option("help.keys_workspace")] = "default",
) -> None:
    """The key alone is on stdout, so that it can be piped to where it is kept."""
    key, secret = on_desk(lambda desk: desk.access.create(name, scope or ["read"], workspace))
    about = {"id": key.id, "name": key.name, "scopes": key.scopes, "workspace": key.workspace_id}
    typer.echo(say("keys.created", **about), err=True)
    typer.echo(secret)


@keys.command("list", help=say("help.keys_list"))
def list_keys() -> None:
    on_desk(lambda desk: desk.access.list(), _show)


@keys.command("revoke", help=say("help.keys_revoke"))
def revoke_key(key_id: Annotated[str, argument("help.keys_id", metavar="ID")]) -> None:
    key = on_desk(lambda desk: desk.access.revoke(key_id))
    typer.echo(say("keys.revoked", id=key.id, name=key.name))


def _show(keys: Sequence[ApiKey]) -> None:
    """Two lines a key: there is more to say than fits side by side."""
    if not keys:
        typer.echo(say("keys.none"))
        return
    shown = table(
        folding("keys.column.key"),
        folding("keys.column.rights"),
        whole("keys.column.times"),
        whole("keys.column.state"),
    )
    for key in keys:
        revoked = f"{say('keys.state.revoked')}\n{minute(key.revoked_at)}"
        shown.add_row(
            Text.assemble((key.id, "bold"), "\n", key.name),
            Text(f"{', '.join(key.scopes)}\n{key.workspace_id}"),
            f"{minute(key.created_at)}\n{minute(key.last_used_at)}",
            revoked if key.revoked_at else say("keys.state.on"),
        )
    Console().print(shown)
