"""`moot decide`: what the rules make of requests, without a database or a desk."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import typer
from pydantic import AwareDatetime, Field, TypeAdapter

from moot.cli.options import Profile, argument, option
from moot.cli.outcome import command
from moot.cli.rule_files import rule_book, rules_in, shipped_beside, text_of
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.governance.application.coordinator_agent import DecisionRequest, ValidationResult
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import Strict, checked

AS_JSON = TypeAdapter(ValidationResult)
EXIT = {"approved": 0, "modified": 0, "escalated": 3, "rejected": 1}

decide = typer.Typer(add_completion=False)


@decide.command(help=say("help.decide"))
def decide_requests(
    file: Annotated[Path | None, argument("decide.file", metavar="FILE")] = None,
    rules: Annotated[list[Path] | None, option("decide.rules", metavar="FILE")] = None,
    profile: Annotated[Profile | None, option("decide.profile")] = None,
) -> None:
    """Decides nothing before everything has been read and understood."""
    with command():
        book = rule_book()
        own = [rule for path in rules or [] for rule in rules_in(book, path)]
        shipped = shipped_beside(book, own, profile or ("none" if rules else "default"))
        validator = book.validator(book.repository([*shipped, *own]))
        asked = requests_in(text_of(file) if file else sys.stdin.read(), str(file or "stdin"))
        results = [validator.validate(request) for request, _ in asked]
        for result in results:  # one is most likely read by a person, several by a program
            indent = 2 if len(results) == 1 else None
            sys.stdout.write(AS_JSON.dump_json(result, indent=indent).decode() + "\n")
        worst = max((result.status for result in results), key=lambda status: status.severity)
    raise typer.Exit(EXIT[worst])


class Asked(Strict):
    """`expected` is for trying rules out; whoever only decides has no use for it."""

    decision_id: str | None = None
    decision_type: str = Field(min_length=1)
    payload: dict[str, Any]
    context: dict[str, Any] = Field(default_factory=dict)
    requester: str = "cli"
    timestamp: AwareDatetime | None = None
    expected: Literal["approved", "modified", "escalated", "rejected"] | None = None


class Numbered(NamedTuple):
    request: DecisionRequest
    expected: str | None


def requests_in(text: str, where: str) -> list[Numbered]:
    """All of them, or an `InvalidInput` that says which is wrong and how."""
    found = [
        _request(value, line, place, where) for place, (line, value) in enumerate(_values(text, where), 1)
    ]
    if not found:
        raise InvalidInput(SAY("decide.nothing"))
    return found


def _request(value: Any, line: int, place: int, where: str) -> Numbered:
    if not isinstance(value, dict):
        raise InvalidInput(SAY("decide.not_an_object", where=where, line=line))
    try:
        asked = checked(Asked, value)
    except InvalidInput as e:
        raise InvalidInput(
            SAY("decide.bad_request", where=where, line=line, why=e.message), **e.details
        ) from None
    request = DecisionRequest(
        asked.decision_id or str(place),
        asked.decision_type,
        asked.payload,
        {"locale": environment_locale(), **asked.context},
        asked.requester,
        asked.timestamp or SystemClock().now(),
    )
    return Numbered(request, asked.expected)


def _values(text: str, where: str) -> Iterator[tuple[int, Any]]:
    """What JSON there is, each with the line it begins on."""
    decoder, at = json.JSONDecoder(parse_constant=_no_number), _next(text, 0)
    while at < len(text):
        line = text.count("\n", 0, at) + 1
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as e:
            place = {"line": e.lineno, "column": e.colno}
            raise InvalidInput(SAY("decide.not_json", where=where, **place, why=e.msg)) from None
        except (ValueError, RecursionError) as e:
            raise InvalidInput(SAY("decide.not_json", where=where, line=line, column=1, why=e)) from None
        yield line, value
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")
