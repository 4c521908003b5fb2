"""`moot sessions …`: what can be typed. What it does waits in the modules it imports."""

from pathlib import Path
from typing import Annotated

import typer

from moot.cli.texts import say

sessions = typer.Typer(help=say("help.sessions"), no_args_is_help=True)


@sessions.command("list", help=say("sessions.help.list"))
def sessions_list(
    symbol: Annotated[str | None, typer.Option(help=say("sessions.help.symbol"))] = None,
    status: Annotated[str | None, typer.Option(help=say("sessions.help.status"))] = None,
    action: Annotated[str | None, typer.Option(help=say("sessions.help.action"))] = None,
    since: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help=say("sessions.help.since"))] = None,
    until: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help=say("sessions.help.until"))] = None,
    page: Annotated[int, typer.Option(help=say("sessions.help.page"))] = 1,
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
) -> None:
    from moot.cli.sessions import Wanted, list_sessions

    list_sessions(Wanted(symbol, status, action, since, until, page), as_json=as_json)


@sessions.command("show", help=say("sessions.help.show"))
def sessions_show(
    session_id: Annotated[str, typer.Argument(help=say("help.session_id"))],
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
) -> None:
    from moot.cli.sessions import show

    show(session_id, as_json=as_json)


@sessions.command("decisions", help=say("decide.of_session"))
def sessions_decisions(session_id: Annotated[str, typer.Argument(help=say("help.session_id"))]) -> None:
    from moot.cli.session_decisions import show_decisions

    show_decisions(session_id)


@sessions.command("retry", help=say("sessions.help.retry"))
def sessions_retry(
    session_id: Annotated[str, typer.Argument(help=say("help.session_id"))],
    skip_debate: Annotated[bool, typer.Option("--skip-debate", help=say("help.skip_debate"))] = False,
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
) -> None:
    from moot.cli.session_control import retry

    retry(session_id, skip_debate=skip_debate, as_json=as_json)


@sessions.command("resume", help=say("sessions.help.resume"))
def sessions_resume(
    session_id: Annotated[str | None, typer.Argument(help=say("sessions.help.resume_id"))] = None,
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
) -> None:
    from moot.cli.session_control import resume

    resume(session_id, as_json=as_json)


@sessions.command("cancel", help=say("sessions.help.cancel"))
def sessions_cancel(session_id: Annotated[str, typer.Argument(help=say("help.session_id"))]) -> None:
    from moot.cli.session_control import cancel

    cancel(session_id)


@sessions.command("export", help=say("session_files.help.export"))
def sessions_export(
    session_id: Annotated[str, typer.Argument(help=say("help.session_id"))],
    pack: Annotated[Path, typer.Option(metavar="FILE.zip", help=say("session_files.help.pack"))],
    force: Annotated[bool, typer.Option("--force", help=say("session_files.help.force"))] = False,
) -> None:
    from moot.cli.session_files import export

    export(session_id, pack, force=force)


@sessions.command("verify", help=say("session_files.help.verify"))
def sessions_verify(
    target: Annotated[str, typer.Argument(metavar="ID|FILE.zip", help=say("session_files.help.target"))],
) -> None:
    from moot.cli.session_files import is_pack, verify_pack
    from moot.cli.sessions import verify

    if is_pack(target):
        verify_pack(Path(target))
    else:
        verify(target)


@sessions.command("prune", help=say("session_files.help.prune"))
def sessions_prune(
    before: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help=say("session_files.help.before"))],
    workspace: Annotated[str, typer.Option(help=say("session_files.help.workspace"))] = "default",
    yes: Annotated[bool, typer.Option("--yes", help=say("session_files.help.yes"))] = False,
) -> None:
    from moot.cli.session_files import prune

    prune(before, workspace, sure=yes)


@sessions.command("replay", help=say("replay.help"))
def sessions_replay(
    session_id: Annotated[str, typer.Argument(help=say("help.session_id"))],
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
) -> None:
    from moot.cli.session_replay import replay

    replay(session_id, as_json=as_json)
