"""Rules in files, and what is wrong with them: nothing here needs a database."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from moot.cli.texts import SAY, environment_locale, say
from moot.modules.governance.application.rule_files import (
    Complaint,
    EnhancedRule,
    RuleRefused,
    check_rules,
    read_rules,
)
from moot.modules.governance.application.rule_generator import Constraints
from moot.shared.domain.errors import InvalidInput

if TYPE_CHECKING:
    from moot.modules.governance.container import RuleBook

ALONE = "none"
LISTS = {name for name, field in Constraints.model_fields.items() if "tuple" in str(field.annotation)}
INLINE = re.compile(r"condition:\s+(?![>|])['\"]?")


def rule_book() -> "RuleBook":
    from moot.modules.governance.container import RuleBook

    return RuleBook()


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise InvalidInput(SAY("rules.no_file", path=path, reason=e.strerror or e)) from None
    except UnicodeDecodeError:
        raise InvalidInput(SAY("rules.no_file", path=path, reason=SAY("rules.not_text"))) from None


def rules_in(book: "RuleBook", path: Path) -> list[EnhancedRule]:
    return read_rules(text_of(path), where=str(path), **_known(book))


def accepted_rules(book: "RuleBook", path: Path) -> list[EnhancedRule]:
    """Like `rules_in`; what is wrong with the file is told a line each, and ends the command."""
    try:
        return rules_in(book, path)
    except RuleRefused as e:
        text = text_of(path)
        for complaint in e.complaints:
            typer.echo(_told(complaint, text), err=True)
        typer.echo(say("rules.unsound", file=path, errors=len(e.complaints)), err=True)
        raise typer.Exit(1) from None


def shipped_beside(book: "RuleBook", own: Sequence[EnhancedRule], profile: str) -> list[EnhancedRule]:
    """The rules that come with Moot, but for those `own` ones replace. What only tightens replaces nothing."""
    if profile == ALONE:
        return []
    replaced = {rule.metadata.get("replaces") for rule in own if not rule.tightens}
    return [rule for rule in book.shipped(profile) if rule.id not in replaced]


def is_draft(rule: EnhancedRule) -> bool:
    return rule.is_draft and isinstance(rule.condition, str)


def is_sound(book: "RuleBook", file: Path) -> bool:
    text = text_of(file)
    found = check_rules(text, where=str(file), **_known(book))
    for complaint in found:
        typer.echo(_told(complaint, text))
    errors = sum(complaint.severity == "error" for complaint in found)
    if errors:
        typer.echo(say("rules.unsound", file=file, errors=errors))
        return False
    count, drafts = len(rules_in(book, file)), len(found)
    typer.echo(say("rules.sound_but" if drafts else "rules.sound", file=file, count=count, drafts=drafts))
    return True


def _known(book: "RuleBook") -> dict[str, Any]:
    """What a rule may speak of."""
    return {name: getattr(book, name) for name in ("engine", "tools", "conditions", "facts")}


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


def read_constraint(text: str) -> tuple[str, Any]:
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
