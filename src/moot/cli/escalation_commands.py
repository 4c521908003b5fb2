"""`moot escalations …`: what can be typed. What it does waits in the module it imports."""

from pathlib import Path
from typing import Annotated

import typer

from moot.cli.texts import say

escalations = typer.Typer(help=say("escalations.help.escalations"), no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help=say("escalations.help.id"))]
Reason = Annotated[str, typer.Option(help=say("escalations.help.reason"))]
By = Annotated[str | None, typer.Option(help=say("escalations.help.by"))]
AsJson = Annotated[bool, typer.Option("--json", help=say("help.json"))]


@escalations.command("list", help=say("escalations.help.list"))
def escalations_list(
    page: Annotated[int, typer.Option(min=1, help=say("escalations.help.page"))] = 1, as_json: AsJson = False
) -> None:
    from moot.cli.escalations import list_waiting

    list_waiting(page, as_json=as_json)


@escalations.command("show", help=say("escalations.help.show"))
def escalations_show(escalation_id: Id, as_json: AsJson = False) -> None:
    from moot.cli.escalations import show

    show(escalation_id, as_json=as_json)


@escalations.command("approve", help=say("escalations.help.approve"))
def escalations_approve(escalation_id: Id, reason: Reason, by: By = None) -> None:
    from moot.cli.escalations import Answer, approve

    approve(Answer(escalation_id, reason, by))


@escalations.command("reject", help=say("escalations.help.reject"))
def escalations_reject(escalation_id: Id, reason: Reason, by: By = None) -> None:
    from moot.cli.escalations import Answer, reject

    reject(Answer(escalation_id, reason, by))


@escalations.command("edit", help=say("escalations.help.edit"))
def escalations_edit(
    escalation_id: Id,
    payload: Annotated[Path, typer.Option(metavar="FILE.json", help=say("escalations.help.payload"))],
    reason: Reason,
    by: By = None,
) -> None:
    from moot.cli.escalations import Answer, edit

    edit(Answer(escalation_id, reason, by), payload)
