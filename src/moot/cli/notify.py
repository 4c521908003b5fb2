"""`moot notify`: who is told, and whether they can be reached."""

from collections.abc import Sequence
from typing import Annotated

from rich.text import Text

from moot.cli.command import at_desk, command, on_desk
from moot.cli.options import AsJson, argument, ask_secret, group, option, secret_in, somebody_is_there
from moot.cli.printing import field, line_field, print_table, tell
from moot.cli.texts import environment_locale, say
from moot.modules.jobs.application.destinations import KINDS, OCCASIONS, DestinationBody, DestinationView
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

Name = Annotated[str, argument("notify.help.name", metavar="NAME")]
Workspace = Annotated[str, option("notify.help.workspace")]
SECRETS = dict.fromkeys(("webhook", "dingtalk", "feishu"), "notify.ask_signing") | {
    "email": "notify.ask_password"
}
"""What to ask for beside the address, which may be left empty."""

notify = group("help.notify")


@notify.command("add", help=say("notify.help.add"))
def add(
    name: Name,
    kind: Annotated[str, option("notify.help.kind", told={"kinds": list(KINDS)})],
    url_env: Annotated[str | None, option("notify.help.url_env", metavar="VAR")] = None,
    secret_env: Annotated[str | None, option("notify.help.secret_env", metavar="VAR")] = None,
    server: Annotated[str | None, option("notify.help.server", metavar="URL")] = None,
    sender: Annotated[str | None, option("notify.help.from", "--from", metavar="ADDRESS")] = None,
    recipients: Annotated[list[str] | None, option("notify.help.to", "--to", metavar="ADDRESS")] = None,
    occasions: Annotated[
        list[str] | None, option("notify.help.on", "--on", told={"occasions": list(OCCASIONS)})
    ] = None,
    locale: Annotated[str | None, option("notify.help.locale", told={"locales": list(LOCALES)})] = None,
    workspace: Workspace = DEFAULT_WORKSPACE,
) -> None:
    """An address with a key in it is never an argument: those are seen by whoever lists the processes."""
    with command() as settings:
        url = server or _secret("--url-env", url_env, "notify.ask_url")
        asked = SECRETS.get(kind) if somebody_is_there() or not (url_env or server) else None
        secret = _secret("--secret-env", secret_env, asked)
        typed = {"name": name, "kind": kind, "url": url, "secret": secret, "sender": sender}
        told = {"occasions": occasions, "locale": locale or environment_locale(), "recipients": recipients}
        body = validate(DestinationBody, typed | told)
        view = at_desk(settings, lambda desk: desk.jobs.destinations(workspace).add(body))
        tell("notify.added", name=view.name, place=view.place)


@notify.command("list", help=say("notify.help.list"))
def show(workspace: Workspace = DEFAULT_WORKSPACE, as_json: AsJson = False) -> None:
    on_desk(lambda desk: desk.jobs.destinations(workspace).list(), _show, as_json=as_json)


@notify.command("remove", help=say("notify.help.remove"))
def remove(name: Name, workspace: Workspace = DEFAULT_WORKSPACE) -> None:
    on_desk(
        lambda desk: desk.jobs.destinations(workspace).remove(name),
        lambda view: tell("notify.removed", name=view.name),
    )


@notify.command("test", help=say("notify.help.test"))
def test(name: Name, workspace: Workspace = DEFAULT_WORKSPACE) -> None:
    on_desk(
        lambda desk: desk.jobs.destinations(workspace).test(name),
        lambda view: tell("notify.reached", name=view.name, place=view.place),
    )


@notify.command("send", help=say("notify.help.send"))
def send() -> None:
    on_desk(lambda desk: desk.jobs.deliver_now(), lambda sent: tell("notify.sent", count=sent))


def _secret(name: str, variable: str | None, question: str | None) -> str:
    if variable:
        return secret_in(name, variable)
    return ask_secret(say(question)) if question else ""


def _show(views: Sequence[DestinationView]) -> None:
    """Two lines a place: there is more to say than fits side by side."""
    print_table(
        views,
        field(
            "notify.column.name",
            lambda v: Text.assemble((v.name, "bold"), "\n", say(f"notify.kind.{v.kind}")),
        ),
        field("notify.column.place", lambda v: "\n".join([v.place, ", ".join(v.recipients)]).strip()),
        field("notify.column.on", lambda v: "\n".join(say(f"notify.on.{o}") for o in v.occasions)),
        line_field("notify.column.count", _count),
        none="notify.none",
    )
    for view in views:
        if view.unreadable:
            tell("notify.unreadable", name=view.name)
        elif view.last_error:
            tell("notify.last_error", name=view.name, error=view.last_error)


def _count(view: DestinationView) -> str:
    return "\n".join(
        say(f"notify.count.{name}", count=getattr(view, name)) for name in ("sent", "waiting", "given_up")
    )
