"""`moot decide`: what the rules make of requests, without a database or a desk."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from pydantic import TypeAdapter

from moot.cli.decision_requests import requests_in
from moot.cli.outcome import command
from moot.cli.rule_files import rules_in, shipped_beside, text_of
from moot.modules.governance.application.coordinator_agent import ValidationResult
from moot.modules.governance.container import RuleBook

AS_JSON = TypeAdapter(ValidationResult)
EXIT = {"approved": 0, "modified": 0, "escalated": 3, "rejected": 1}


def decide_requests(file: Path | None, rule_files: Sequence[Path], profile: str | None) -> None:
    """Decides nothing before everything has been read and understood."""
    with command():
        book = RuleBook()
        own = [rule for path in rule_files for rule in rules_in(book, path)]
        shipped = shipped_beside(book, own, profile or ("none" if rule_files else "default"))
        validator = book.validator(book.repository([*shipped, *own]))
        asked = requests_in(text_of(file) if file else sys.stdin.read(), str(file or "stdin"))
        results = [validator.validate(request) for request, _ in asked]
        for result in results:
            _print(result, alone=len(results) == 1)
        worst = max((result.status for result in results), key=lambda status: status.severity)
    raise typer.Exit(EXIT[worst])


def _print(result: ValidationResult, *, alone: bool) -> None:
    """One request is most likely read by a person, several by a program."""
    sys.stdout.write(AS_JSON.dump_json(result, indent=2 if alone else None).decode() + "\n")
