"""`moot rules check` and `generate`, and reading rules from files: nothing here needs a database."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import typer

from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.governance.application.rule_files import (
    Complaint,
    EnhancedRule,
    RuleRefused,
    check_rules,
    read_rules,
    write_rules,
)
from moot.modules.governance.application.rule_generator import Constraints, RuleGenerator, accept
from moot.modules.governance.container import RuleBook
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import InvalidInput

ALONE = "none"
LISTS = {name for name, field in Constraints.model_fields.items() if "tuple" in str(field.annotation)}
INLINE = re.compile(r"condition:\s+(?![>|])['\"]?")


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise InvalidInput(SAY("rules.no_file", path=path, reason=e.strerror or e)) from None
    except UnicodeDecodeError:
        raise InvalidInput(SAY("rules.no_file", path=path, reason=SAY("rules.not_text"))) from None


def rules_in(book: RuleBook, path: Path) -> list[EnhancedRule]:
    return read_rules(
        text_of(path),
        where=str(path),
        engine=book.engine,
        tools=book.tools,
        conditions=book.conditions,
        facts=book.facts,
    )


def accepted_rules(book: RuleBook, path: Path) -> list[EnhancedRule]:
    """Like `rules_in`; what is wrong with the file is told a line each, and ends the command."""
    try:
        return rules_in(book, path)
    except RuleRefused as e:
        text = text_of(path)
        for complaint in e.complaints:
            typer.echo(_told(complaint, text), err=True)
        typer.echo(say("rules.unsound", file=path, errors=len(e.complaints)), err=True)
        raise typer.Exit(1) from None


def shipped_beside(book: RuleBook, own: Sequence[EnhancedRule], profile: str) -> list[EnhancedRule]:
    """The rules that come with Moot, but for those `own` ones replace. What only tightens replaces nothing."""
    if profile == ALONE:
        return []
    replaced = {rule.metadata.get("replaces") for rule in own if not rule.tightens}
    return [rule for rule in book.shipped(profile) if rule.id not in replaced]


def is_draft(rule: EnhancedRule) -> bool:
    return rule.is_draft and isinstance(rule.condition, str)


def check(files: Sequence[Path]) -> None:
    """Every complaint about every file is told before the command ends."""
    with command():
        book = RuleBook()
        sound = [_is_sound(book, file) for file in files]
        if not all(sound):
            raise typer.Exit(1)


def _is_sound(book: RuleBook, file: Path) -> bool:
    text = text_of(file)
    found = check_rules(
        text,
        where=str(file),
        engine=book.engine,
        tools=book.tools,
        conditions=book.conditions,
        facts=book.facts,
    )
    for complaint in found:
        typer.echo(_told(complaint, text))
    errors = sum(complaint.severity == "error" for complaint in found)
    if errors:
        typer.echo(say("rules.unsound", file=file, errors=errors))
        return False
    count, drafts = len(rules_in(book, file)), len(found)
    typer.echo(say("rules.sound_but" if drafts else "rules.sound", file=file, count=count, drafts=drafts))
    return True


def _told(complaint: Complaint, text: str) -> str:
    """As compilers do, so that editors can jump to it."""
    place = [complaint.file, complaint.line, _column(complaint, text)]
    where = ":".join(str(part) for part in place if part is not None)
    said = replace(complaint, file=None, line=None, column=None).said
    return f"{where}: {said.in_locale(environment_locale())}"


def _column(complaint: Complaint, text: str) -> int | None:
    """That of the file; the complaint's own counts from where the condition's text begins."""
    if complaint.line is None or complaint.column is None:
        return None
    lines = text.splitlines()[: complaint.line]
    if inline := INLINE.search(lines[-1]):
        return inline.end() + complaint.column
    if "condition:" in lines[-1]:
        return None  # it is folded: its lines are not those of the file
    key = max(place for place, line in enumerate(lines) if "condition:" in line)
    first = next(line for line in lines[key + 1 :] if line.strip())
    return len(first) - len(first.lstrip()) + complaint.column


class Wish(NamedTuple):
    """What was typed for `moot rules generate`."""

    start: str
    goal: str
    description: str | None
    constraints: Sequence[str]


def generate(wish: Wish, *, accepted: bool) -> None:
    """The YAML alone is on stdout."""
    with command():
        constraints = dict(_constraint(text) for text in wish.constraints)
        generator = RuleGenerator(SystemClock())
        made = generator.generate_from_user_input(wish.start, wish.goal, wish.description, constraints)
        typer.echo(write_rules(accept(made) if accepted else made), nl=False)
        typer.echo(say("rules.accepted" if accepted else "rules.generated", count=len(made)), err=True)


def _constraint(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise InvalidInput(SAY("rules.constraint", text=text, known=list(Constraints.model_fields)))
    name, value = name.strip(), value.strip()
    if name in LISTS:
        return name, [part.strip() for part in value.split(",") if part.strip()]
    return name, _number(value)


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
