"""`moot rules test`: a file's rules, tried on their examples and on requests."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.decision_requests import requests_in
from moot.cli.outcome import command
from moot.cli.rule_files import accepted_rules, is_draft, shipped_beside, text_of
from moot.cli.rule_view import STATUS_COLOURS
from moot.cli.texts import environment_locale, say
from moot.modules.governance.application.coordinator_agent import ValidationResult
from moot.modules.governance.application.decision_log import in_one_sentence, recorded
from moot.modules.governance.application.rule_files import EnhancedRule
from moot.modules.governance.container import RuleBook
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


class Tried(NamedTuple):
    result: ValidationResult
    expected: str | None

    @property
    def as_expected(self) -> bool:
        return self.expected is None or self.expected == self.result.status


def try_out(file: Path, requests: Path | None, profile: str) -> None:
    """Examples are tried as the file is read: one that fails ends the command."""
    with command():
        book = RuleBook()
        own = accepted_rules(book, file)
        _tell_of_examples(own)
        if requests is None:
            return
        validator = book.validator(book.repository([*shipped_beside(book, own, profile), *own]))
        asked = requests_in(text_of(requests), str(requests))
        tried = [Tried(validator.validate(request), expected) for request, expected in asked]
        Console().print(_table(tried))
        _conclude(tried)


def _tell_of_examples(rules: Sequence[EnhancedRule]) -> None:
    typer.echo(say("rules.examples", count=sum(len(rule.examples) for rule in rules)))
    if drafts := [rule.id for rule in rules if is_draft(rule)]:
        typer.echo(say("rules.drafts", rules=drafts))


def _conclude(tried: Sequence[Tried]) -> None:
    wrong = sum(not each.as_expected for each in tried)
    if wrong:
        typer.echo(say("rules.unexpected", wrong=wrong, count=len(tried)), err=True)
        raise typer.Exit(1)
    expected = sum(each.expected is not None for each in tried)
    typer.echo(say("rules.as_expected" if expected else "rules.decided", count=len(tried), expected=expected))


def _table(tried: Sequence[Tried]) -> Table:
    columns = [
        Column(say("rules.column.request"), overflow="fold"),
        Column(say("rules.column.type"), overflow="fold"),
        Column(say("rules.column.status"), no_wrap=True),
        Column(say("rules.column.expected"), no_wrap=True),
        Column(say("rules.column.why"), overflow="fold"),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for result, expected in tried:
        mark = "✓" if expected == result.status else "✗"
        table.add_row(
            Text(result.original_request.decision_id),
            Text(result.original_request.decision_type),
            Text(result.status, STATUS_COLOURS[result.status]),
            Text(f"{mark} {expected}", "green" if mark == "✓" else "bold red") if expected else "—",
            Text(_why(result)),
        )
    return table


def _why(result: ValidationResult) -> str:
    record = recorded(result.original_request, result, session_id=None, workspace=DEFAULT_WORKSPACE)
    return in_one_sentence(record, environment_locale())
