"""`moot rules list|show|activate|rollback|history`: the rules in force, and those that were."""

import getpass
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console

from moot.cli.on_desk import at_desk, on_desk
from moot.cli.outcome import command
from moot.cli.rule_files import accepted_rules, is_draft, shipped_beside
from moot.cli.rule_view import SHORT, rule_table, ruleset_table, show_one
from moot.cli.texts import SAY, say
from moot.desk import Moot
from moot.modules.governance.application.enhanced_rule_repository import NoSuchRule
from moot.modules.governance.application.rule_files import EnhancedRule, as_data
from moot.modules.governance.application.rulesets import Activation, Active, Ruleset, RulesetService
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


def list_rules(category: str | None, source: str | None, *, as_json: bool) -> None:
    with command(as_json=as_json) as settings:
        active = at_desk(settings, _in_force)
        rules = [
            rule
            for rule in sorted(active.rules, key=lambda rule: rule.order)
            if category in (None, rule.category) and source in (None, rule.source)
        ]
        if as_json:
            about = {"ruleset": active.number, "digest": active.digest}
            _print_json(about | {"rules": [as_data(rule) for rule in rules]})
            return
        if rules:
            Console().print(rule_table(rules))
        typer.echo(_summary(active, len(rules)))


def show_rule(rule_id: str, *, as_json: bool) -> None:
    with command(as_json=as_json) as settings:
        rule = _found(at_desk(settings, _in_force), rule_id)
        if as_json:
            _print_json(as_data(rule))
        else:
            show_one(Console(), rule)


class Stored(NamedTuple):
    """`own` are the rules of the file, if it was one."""

    activation: Activation
    ruleset: Ruleset
    own: Sequence[EnhancedRule] = ()


def activate(target: str, note: str, profile: str) -> None:
    if target.isdecimal() and not Path(target).is_file():
        _activate_stored(int(target))
    else:
        _activate_file(Path(target), note, profile)


def _activate_stored(number: int) -> None:
    async def work(desk: Moot) -> Stored:
        rulesets = stored_rulesets(desk)
        done = await rulesets.activate(number, by=somebody(), workspace=DEFAULT_WORKSPACE)
        return Stored(done, await rulesets.get(done.number, DEFAULT_WORKSPACE))

    _tell(on_desk(work))


def _activate_file(file: Path, note: str, profile: str) -> None:
    async def work(desk: Moot) -> Stored:
        rulesets, book = stored_rulesets(desk), desk.governance.book
        own = accepted_rules(book, file)
        rules = [*shipped_beside(book, own, profile), *own]
        who = {"by": somebody(), "workspace": DEFAULT_WORKSPACE}
        ruleset = await rulesets.save(rules, note=note or file.name, **who)
        return Stored(await rulesets.activate(ruleset.number, **who), ruleset, own)

    _tell(on_desk(work), file)


def roll_back() -> None:
    async def work(desk: Moot) -> Stored:
        rulesets = stored_rulesets(desk)
        done = await rulesets.rollback(by=somebody(), workspace=DEFAULT_WORKSPACE)
        return Stored(done, await rulesets.get(done.number, DEFAULT_WORKSPACE))

    _tell(on_desk(work))


def history(*, as_json: bool) -> None:
    async def work(desk: Moot) -> tuple[list[Ruleset], Active]:
        rulesets = stored_rulesets(desk)
        active = await rulesets.active(DEFAULT_WORKSPACE)  # keeps the shipped ones, if they are in force
        return list(await rulesets.list(DEFAULT_WORKSPACE)), active

    with command(as_json=as_json) as settings:
        rulesets, active = at_desk(settings, work)
        if as_json:
            _print_json([_as_json(ruleset, active) for ruleset in rulesets])
        else:
            Console().print(ruleset_table(rulesets, active.number))


def stored_rulesets(desk: Moot) -> RulesetService:
    if desk.governance.rulesets is None:
        raise Unavailable(SAY("rules.not_stored"), code="PERSISTENCE_OFF")
    return desk.governance.rulesets


def somebody() -> str:
    """Whoever is at the keyboard, as this machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return "cli"


async def _in_force(desk: Moot) -> Active:
    if desk.governance.rulesets is not None:
        return await desk.governance.rulesets.active(DEFAULT_WORKSPACE)
    return desk.governance.book.repository(desk.governance.book.shipped()).active


def _found(active: Active, rule_id: str) -> EnhancedRule:
    found = next((rule for rule in active.rules if rule.id == rule_id), None)
    if found is None:
        raise NoSuchRule(rule_id)
    return found


def _summary(active: Active, count: int) -> str:
    if not count:
        return say("rules.none")
    if active.number is None:
        return say("rules.unstored", count=count)
    return say("rules.shown", count=count, number=active.number, digest=active.digest[:SHORT])


def _tell(stored: Stored, file: Path | None = None) -> None:
    activation, ruleset, own = stored
    count, number = len(ruleset.rules), activation.number
    if file is not None:
        about = {"own": len(own), "shipped": count - len(own), "file": file}
        typer.echo(say("rules.stored", number=number, **about))
    if drafts := [rule.id for rule in own if is_draft(rule)]:
        typer.echo(say("rules.drafts", rules=drafts), err=True)
    typer.echo(say("rules.in_force", number=number, digest=ruleset.digest[:SHORT], count=count))
    typer.echo(say("rules.within_a_second"))


def _as_json(ruleset: Ruleset, active: Active) -> dict[str, Any]:
    told = ruleset._asdict() | {"created_at": ruleset.created_at.isoformat(), "rules": len(ruleset.rules)}
    return told | {"active": ruleset.number == active.number}


def _print_json(body: Any) -> None:
    sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")
