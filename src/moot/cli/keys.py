"""`moot keys`: who may use this desk over HTTP."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from moot.cli.options import argument, group, option
from moot.cli.outcome import on_desk
from moot.cli.printing import field, line_field, minute, print_table, tell
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
    tell("keys.created", err=True, **about)
    typer.echo(secret)


@keys.command("list", help=say("help.keys_list"))
def list_keys() -> None:
    on_desk(lambda desk: desk.access.list(), _show)


@keys.command("revoke", help=say("help.keys_revoke"))
def revoke_key(key_id: Annotated[str, argument("help.keys_id", metavar="ID")]) -> None:
    key = on_desk(lambda desk: desk.access.revoke(key_id))
    tell("keys.revoked", id=key.id, name=key.name)


def _show(keys: Sequence[ApiKey]) -> None:
    """Two lines a key: there is more to say than fits side by side."""
    print_table(
        keys,
        field("keys.column.key", lambda key: Text.assemble((key.id, "bold"), "\n", key.name)),
        field("keys.column.rights", lambda key: f"{', '.join(key.scopes)}\n{key.workspace_id}"),
        line_field("keys.column.times", lambda key: f"{minute(key.created_at)}\n{minute(key.last_used_at)}"),
        line_field("keys.column.state", _state),
        none="keys.none",
    )


def _state(key: ApiKey) -> str:
    return (
        f"{say('keys.state.revoked')}\n{minute(key.revoked_at)}" if key.revoked_at else say("keys.state.on")
    )
