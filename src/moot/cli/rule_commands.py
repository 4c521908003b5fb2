"""`moot rules …`: what can be typed. What it does waits in the modules it imports."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from moot.cli.texts import say

rules = typer.Typer(help=say("rules.help.rules"), no_args_is_help=True)

Profile = Literal["default", "research", "tools", "presets", "none"]
File = Annotated[Path, typer.Argument(metavar="FILE", help=say("rules.help.file"))]
BesidesFile = Annotated[Profile, typer.Option(help=say("rules.help.profile"))]
AsJson = Annotated[bool, typer.Option("--json", help=say("rules.help.json"))]


@rules.command("list", help=say("rules.help.list"))
def rules_list(
    category: Annotated[
        Literal["behavior", "tool", "data", "execution", "goal"] | None,
        typer.Option(help=say("rules.help.category")),
    ] = None,
    source: Annotated[
        Literal["user", "system", "tool", "generated"] | None, typer.Option(help=say("rules.help.source"))
    ] = None,
    as_json: AsJson = False,
) -> None:
    from moot.cli.rules import list_rules

    list_rules(category, source, as_json=as_json)


@rules.command("show", help=say("rules.help.show"))
def rules_show(
    rule_id: Annotated[str, typer.Argument(metavar="ID", help=say("rules.help.id"))], as_json: AsJson = False
) -> None:
    from moot.cli.rules import show_rule

    show_rule(rule_id, as_json=as_json)


@rules.command("check", help=say("rules.help.check"))
def rules_check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help=say("rules.help.files"))],
) -> None:
    from moot.cli.rule_files import check

    check(files)


@rules.command("test", help=say("rules.help.test"))
def rules_test(
    file: File,
    requests: Annotated[
        Path | None, typer.Argument(metavar="REQUESTS.jsonl", help=say("rules.help.requests"))
    ] = None,
    profile: Annotated[Profile, typer.Option(help=say("rules.help.test_profile"))] = "none",
) -> None:
    from moot.cli.rule_trial import try_out

    try_out(file, requests, profile)


@rules.command("activate", help=say("rules.help.activate"))
def rules_activate(
    target: Annotated[str, typer.Argument(metavar="FILE|NUMBER", help=say("rules.help.target"))],
    note: Annotated[str, typer.Option(help=say("rules.help.note"))] = "",
    profile: BesidesFile = "default",
) -> None:
    from moot.cli.rules import activate

    activate(target, note, profile)


@rules.command("rollback", help=say("rules.help.rollback"))
def rules_rollback() -> None:
    from moot.cli.rules import roll_back

    roll_back()


@rules.command("history", help=say("rules.help.history"))
def rules_history(as_json: AsJson = False) -> None:
    from moot.cli.rules import history

    history(as_json=as_json)


@rules.command("simulate", help=say("rules.help.simulate"))
def rules_simulate(
    file: File,
    since: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help=say("rules.help.since"))],
    profile: BesidesFile = "default",
) -> None:
    from moot.cli.rule_simulation import simulate_rules

    simulate_rules(file, since, profile)


@rules.command("generate", help=say("rules.help.generate"))
def rules_generate(
    goal: Annotated[str, typer.Option(help=say("rules.help.goal"))],
    start: Annotated[str, typer.Option(help=say("rules.help.start"))] = "",
    description: Annotated[str | None, typer.Option(help=say("rules.help.description"))] = None,
    constraint: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help=say("rules.help.constraint"))
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help=say("rules.help.accept"))] = False,
) -> None:
    from moot.cli.rule_files import Wish, generate

    generate(Wish(start, goal, description, constraint or []), accepted=accept)
