"""`moot decide`: what the rules of files make of requests, without a database or a desk."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from pydantic import AfterValidator, AwareDatetime, Field, TypeAdapter

from moot.cli.command import command
from moot.cli.options import Profile, argument, option, read_file
from moot.cli.printing import tell
from moot.cli.texts import SAY, environment_locale
from moot.modules.governance.application.coordinator_agent import DecisionRequest, KnownType, ValidationResult
from moot.modules.governance.application.facts import check_context
from moot.modules.governance.application.rule_files import Complaint, EnhancedRule, Reading, RuleRefused
from moot.modules.governance.application.rule_generator import Constraints
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import Strict, number_or_text, validate
from moot.shared.infrastructure.settings import split_names

if TYPE_CHECKING:
    from moot.modules.governance.container import RuleBook

SUFFIXES = (".yaml", ".yml")
LISTS = {name for name, field in Constraints.model_fields.items() if "tuple" in str(field.annotation)}
AS_JSON = TypeAdapter(ValidationResult)
EXIT = {"approved": 0, "modified": 0, "escalated": 3, "rejected": 1}


def decide(
    file: Annotated[Path | None, argument("decide.file", metavar="FILE")] = None,
    rules: Annotated[list[Path] | None, option("decide.rules", metavar="FILE")] = None,
    profile: Annotated[Profile | None, option("decide.profile")] = None,
) -> None:
    """Decides nothing before everything has been read and understood."""
    with command():
        book = rule_book()
        own = read_rules(book, rules or [])
        shipped = book.read_shipped(profile or ("none" if rules else "default"), own)
        validator = book.validator(book.repository([*shipped, *own]))
        asked = requests_in(read_file(file) if file else sys.stdin.read(), str(file or "stdin"))
        results = [validator.validate(request) for request, _ in asked]
        for result in results:  # one is most likely read by a person, several by a program
            indent = 2 if len(results) == 1 else None
            sys.stdout.write(AS_JSON.dump_json(result, indent=indent).decode() + "\n")
        worst = max((result.status for result in results), key=lambda status: status.severity)
    raise typer.Exit(EXIT[worst])


class Asked(Strict):
    """`expected` is for trying rules out; whoever only decides has no use for it."""

    decision_id: str | None = None
    decision_type: KnownType
    payload: dict[str, Any]
    context: Annotated[dict[str, Any], AfterValidator(check_context)] = Field(default_factory=dict)
    requester: str = "cli"
    timestamp: AwareDatetime | None = None
    expected: Literal["approved", "modified", "escalated", "rejected"] | None = None


def requests_in(text: str, where: str) -> list[tuple[DecisionRequest, str | None]]:
    """All of them, or an `InvalidInput` that says which is wrong and how."""
    found = [
        _request(value, line, place, where) for place, (line, value) in enumerate(json_values(text, where), 1)
    ]
    if not found:
        raise InvalidInput(SAY("decide.nothing"))
    return found


def _request(value: Any, line: int, place: int, where: str) -> tuple[DecisionRequest, str | None]:
    if not isinstance(value, dict):
        raise InvalidInput(SAY("decide.not_an_object", where=where, line=line))
    try:
        asked = validate(Asked, value)
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
    return request, asked.expected


def json_values(text: str, where: str) -> Iterator[tuple[int, Any]]:
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


def rule_book() -> "RuleBook":
    from moot.modules.governance.container import RuleBook

    return RuleBook()


def rule_files(named: Sequence[Path]) -> list[Path]:
    """Of a folder, the files of rules that it holds."""
    found: list[Path] = []
    for path in named:
        inside = (
            [each for each in sorted(path.iterdir()) if each.suffix in SUFFIXES] if path.is_dir() else [path]
        )
        if not inside:
            raise InvalidInput(SAY("rules.empty_folder", path=path, known=list(SUFFIXES)))
        found += inside
    return list(dict.fromkeys(found))


def read_rules(book: "RuleBook", named: Sequence[Path]) -> list[EnhancedRule]:
    """Those of all the files, together."""
    return book.inspect_files({str(path): read_file(path) for path in rule_files(named)}).accept()


def accept_rules(book: "RuleBook", *named: Path) -> list[EnhancedRule]:
    """Like `read_rules`; what is wrong with the files is told a line each, and ends the command."""
    try:
        return read_rules(book, named)
    except RuleRefused as e:
        for complaint in e.complaints:
            typer.echo(_describe(complaint), err=True)
        tell("rules.unsound", err=True, file=[str(path) for path in named], errors=len(e.complaints))
        raise typer.Exit(1) from None


def are_sound(book: "RuleBook", named: Sequence[Path]) -> bool:
    """Tells, file by file, what is wrong with them; an id that stands in two is wrong in the second."""
    reading, sound = Reading(book), True
    for file in rule_files(named):
        known, complained = len(reading.rules), len(reading.complaints)
        reading.add(read_file(file), str(file))
        found = reading.complaints[complained:]
        for complaint in found:
            typer.echo(_describe(complaint))
        if errors := sum(complaint.severity == "error" for complaint in found):
            sound = False
            tell("rules.unsound", file=file, errors=errors)
        else:
            count, drafts = len(reading.rules) - known, len(found)
            tell("rules.sound_but" if drafts else "rules.sound", file=file, count=count, drafts=drafts)
    return sound


def _describe(complaint: Complaint) -> str:
    """As compilers do, so that editors can jump to it."""
    where = ":".join(str(part) for part in (complaint.file, complaint.line) if part is not None)
    said = replace(complaint, file=None, line=None, column=None).said
    return f"{where}: {said.in_locale(environment_locale())}"


def read_constraint(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise InvalidInput(SAY("rules.constraint", text=text, known=list(Constraints.model_fields)))
    name, value = name.strip(), value.strip()
    if name in LISTS:
        return name, split_names(value)
    return name, number_or_text(value)
