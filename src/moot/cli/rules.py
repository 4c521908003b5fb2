"""`moot rules`: the rules in force and those that were, and files of rules: checked, tried, simulated, generated."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from moot.cli.command import at_desk, command, on_desk
from moot.cli.decide import accept_rules, are_sound, read_constraint, requests_in, rule_book
from moot.cli.options import DAY, Profile, argument, confirm, group, option, read_file, require_day, user_name
from moot.cli.printing import count_up, print_json, tell
from moot.cli.rule_view import (
    SHORT,
    Tried,
    show_changes,
    show_one,
    show_rules,
    show_rulesets,
    show_simulation,
    show_trials,
)
from moot.cli.texts import SAY, say
from moot.modules.governance.application.decision_log import SimulationReport, simulate
from moot.modules.governance.application.rule_files import EnhancedRule, as_data, write_rules
from moot.modules.governance.application.rule_generator import RuleGenerator, accept
from moot.modules.governance.application.rulesets import Activation, Active, Ruleset, RulesetService
from moot.shared.domain.clock import SystemClock, in_utc
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from moot.desk import Moot

T = TypeVar("T")
Category = Literal["behavior", "tool", "data", "execution", "goal"]
Source = Literal["user", "system", "tool", "generated"]
File = Annotated[Path, argument("rules.help.file", metavar="FILE")]
Files = Annotated[list[Path], argument("rules.help.files", metavar="FILE…")]
Yes = Annotated[bool, option("rules.help.yes", "--yes", "-y")]
BesidesFile = Annotated[Profile, option("rules.help.profile")]
AsJson = Annotated[bool, option("rules.help.json", "--json")]

rules = group("help.rules")


@rules.command("list", help=say("rules.help.list"))
def list_rules(
    category: Annotated[Category | None, option("rules.help.category")] = None,
    source: Annotated[Source | None, option("rules.help.source")] = None,
    as_json: AsJson = False,
) -> None:
    with command(as_json=as_json) as settings:
        active = at_desk(settings, lambda desk: desk.governance.in_force(DEFAULT_WORKSPACE))
        wanted = [
            rule
            for rule in sorted(active.rules, key=lambda rule: rule.order)
            if category in (None, rule.category) and source in (None, rule.source)
        ]
        if as_json:
            about = {"ruleset": active.number, "digest": active.digest}
            print_json(about | {"rules": [as_data(rule) for rule in wanted]})
            return
        if wanted:
            show_rules(wanted)
        typer.echo(_summary(active, len(wanted)))


@rules.command("show", help=say("rules.help.show"))
def show_rule(
    rule_id: Annotated[str, argument("rules.help.id", metavar="ID")], as_json: AsJson = False
) -> None:
    async def work(desk: "Moot") -> EnhancedRule:
        return (await desk.governance.in_force(DEFAULT_WORKSPACE)).find(rule_id)

    on_desk(work, show_one, as_json=as_json, body=as_data)


@rules.command("check", help=say("rules.help.check"))
def check(files: Files) -> None:
    """Every complaint about every file is told before the command ends. Needs no database."""
    with command():
        if not are_sound(rule_book(), files):
            raise typer.Exit(1)


@rules.command("test", help=say("rules.help.test"))
def try_out(
    file: File,
    requests: Annotated[Path | None, argument("rules.help.requests", metavar="REQUESTS.jsonl")] = None,
    profile: Annotated[Profile, option("rules.help.test_profile")] = "none",
) -> None:
    """Examples are tried as the file is read: one that fails ends the command. Needs no database."""
    with command():
        book = rule_book()
        own = accept_rules(book, file)
        tell("rules.examples", count=sum(len(rule.examples) for rule in own))
        _tell_drafts(own)
        if requests is None:
            return
        validator = book.validator(book.repository([*book.read_shipped(profile, own), *own]))
        asked = requests_in(read_file(requests), str(requests))
        tried = [Tried(validator.validate(request), expected) for request, expected in asked]
        show_trials(tried)
        _conclude(tried)


@rules.command("activate", help=say("rules.help.activate"))
def activate(
    targets: Annotated[list[Path], argument("rules.help.target", metavar="FILE…|NUMBER")],
    note: Annotated[str, option("rules.help.note")] = "",
    profile: BesidesFile = "default",
    yes: Yes = False,
) -> None:
    """Several files together. What goes and what comes is shown, and confirmed, before anything is done."""
    number = str(targets[0]) if len(targets) == 1 and not targets[0].exists() else ""

    async def work(desk: "Moot") -> None:
        rulesets, book = _stored(desk.governance.rulesets), desk.governance.book
        if number.isdecimal():
            ruleset = await rulesets.get(int(number), DEFAULT_WORKSPACE)
            await _confirm(rulesets, ruleset.rules, yes)
            await _tell(rulesets, await rulesets.activate(ruleset.number, **_by_user()))
            return
        own = accept_rules(book, *targets)
        together = rulesets.check([*book.read_shipped(profile, own), *own])
        await _confirm(rulesets, [as_data(rule) for rule in together], yes)
        names = ", ".join(target.name for target in targets)
        ruleset = await rulesets.save(together, note=note or names, **_by_user())
        done = await rulesets.activate(ruleset.number, **_by_user())
        about = {"own": len(own), "shipped": len(together) - len(own), "file": _name_all(targets)}
        tell("rules.stored", number=done.number, **about)
        _tell_drafts(own, err=True)
        await _tell(rulesets, done)

    on_desk(work)


@rules.command("rollback", help=say("rules.help.rollback"))
def roll_back(yes: Yes = False) -> None:
    async def work(desk: "Moot") -> None:
        rulesets = _stored(desk.governance.rulesets)
        await _confirm(rulesets, (await rulesets.before(DEFAULT_WORKSPACE)).rules, yes)
        await _tell(rulesets, await rulesets.rollback(**_by_user()))

    on_desk(work)


@rules.command("history", help=say("rules.help.history"))
def history(as_json: AsJson = False) -> None:
    async def work(desk: "Moot") -> tuple[list[Ruleset], int]:
        rulesets = _stored(desk.governance.rulesets)
        active = await rulesets.number_in_force(DEFAULT_WORKSPACE)  # keeps the shipped ones, if they are
        return list(await rulesets.list(DEFAULT_WORKSPACE)), active

    on_desk(
        work,
        lambda found: show_rulesets(*found),
        as_json=as_json,
        body=lambda found: [_as_json(ruleset, found[1]) for ruleset in found[0]],
    )


@rules.command("simulate", help=say("rules.help.simulate"))
def simulate_rules(
    files: Files, since: Annotated[str, option("help.since", metavar=DAY)], profile: BesidesFile = "default"
) -> None:
    async def work(desk: "Moot") -> tuple[SimulationReport, int]:
        book, log = desk.governance.book, desk.governance.decisions
        own = accept_rules(book, *files)
        shipped = book.read_shipped(profile, own)
        past = log.history(DEFAULT_WORKSPACE, in_utc(first))
        with count_up(say("rules.simulating")) as count:
            validator = book.validator(book.repository([*shipped, *own]))
            report = await simulate(validator.validate, past, count)
        return report, len(shipped)

    with command() as settings:
        first = require_day("--since", since)
        report, shipped = at_desk(settings, work)
        show_simulation(report, {"day": first, "file": _name_all(files), "shipped": shipped})


@rules.command("generate", help=say("rules.help.generate"))
def generate(
    goal: Annotated[str, option("rules.help.goal")],
    start: Annotated[str, option("rules.help.start")] = "",
    description: Annotated[str | None, option("rules.help.description")] = None,
    constraint: Annotated[list[str] | None, option("rules.help.constraint", metavar="NAME=VALUE")] = None,
    accepted: Annotated[bool, option("rules.help.accept", "--accept")] = False,
) -> None:
    """The YAML alone is on stdout."""
    with command():
        constraints = dict(read_constraint(text) for text in constraint or [])
        made = RuleGenerator(SystemClock()).generate_from_user_input(start, goal, description, constraints)
        typer.echo(write_rules(accept(made) if accepted else made), nl=False)
        tell("rules.accepted" if accepted else "rules.generated", err=True, count=len(made))


def _by_user() -> dict[str, str]:
    return {"by": user_name(), "workspace": DEFAULT_WORKSPACE}


async def _confirm(rulesets: RulesetService, coming: Sequence[Mapping[str, Any]], yes: bool) -> None:
    changes = await rulesets.compare(coming, DEFAULT_WORKSPACE)
    show_changes(changes)
    if changes.count and not yes:
        confirm(say("rules.sure"), "rules.needs_yes", "rules.kept", code=1)


def _stored(rulesets: RulesetService | None) -> RulesetService:
    if rulesets is None:
        raise Unavailable(SAY("rules.not_stored"), code="PERSISTENCE_OFF")
    return rulesets


def _summary(active: Active, count: int) -> str:
    if not count:
        return say("rules.none")
    if active.number is None:
        return say("rules.unstored", count=count)
    return say("rules.shown", count=count, number=active.number, digest=active.digest[:SHORT])


def _name_all(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))


async def _tell(rulesets: RulesetService, done: Activation) -> None:
    ruleset = await rulesets.get(done.number, DEFAULT_WORKSPACE)
    tell("rules.in_force", number=done.number, digest=ruleset.digest[:SHORT], count=len(ruleset.rules))
    tell("rules.within_a_second")


def _tell_drafts(own: Sequence[EnhancedRule], *, err: bool = False) -> None:
    if drafts := [rule.id for rule in own if rule.is_draft]:
        tell("rules.drafts", err=err, rules=drafts)


def _conclude(tried: Sequence[Tried]) -> None:
    wrong = sum(each.expected not in (None, each.result.status) for each in tried)
    if wrong:
        tell("rules.unexpected", err=True, wrong=wrong, count=len(tried))
        raise typer.Exit(1)
    expected = sum(each.expected is not None for each in tried)
    tell("rules.as_expected" if expected else "rules.decided", count=len(tried), expected=expected)


def _as_json(ruleset: Ruleset, active: int) -> dict[str, Any]:
    told = ruleset._asdict() | {"created_at": ruleset.created_at.isoformat(), "rules": len(ruleset.rules)}
    return told | {"active": ruleset.number == active, "intact": ruleset.intact}
