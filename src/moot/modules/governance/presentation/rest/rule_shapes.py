"""Rules as they come in and go out over HTTP: as JSON or as the text of a YAML file."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from moot.modules.governance.application.rule_files import Reading, complaints, write_rules
from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.exceptions import Complaint, RuleRefused
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.rulesets import CALL, Ruleset, as_data
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.rest.asking import json_only
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import Strict

LONGEST_YAML = 5_000_000


class RuleBody(EnhancedRule):
    """A rule; a condition in code is told by its name: `call:NAME@VERSION`."""

    condition: Annotated[str, Field(min_length=1, max_length=10_000)]

    @classmethod
    def of(cls, rule: EnhancedRule) -> "RuleBody":
        return cls.model_validate(as_data(rule))


SentRule = Annotated[RuleBody, BeforeValidator(json_only)]


class RulesBody(Strict):
    """`rules` as JSON, or the text of a file."""

    rules: list[SentRule] | None = None
    yaml: Annotated[str, Field(max_length=LONGEST_YAML)] | None = None


class Problem(BaseModel):
    """`line` is of the YAML text, or of the condition where the rules came as JSON; `column` is of the condition."""

    rule: str | None = None
    field: str | None = None
    line: int | None = None
    column: int | None = None
    message: str
    suggestion: str | None = None
    severity: str

    @classmethod
    def of(cls, complaint: Complaint, reader: Locale) -> "Problem":
        return cls.model_validate(complaint.as_details(reader))


class RulesetSummary(BaseModel):
    number: int
    digest: str
    active: bool
    note: str
    created_by: str
    created_at: datetime
    rule_count: int


class RulesetDetail(RulesetSummary):
    rules: list[RuleBody]


def told(ruleset: Ruleset, active: str) -> dict[str, Any]:
    """What a summary and a detail have in common; `active` is the digest of what is in force."""
    known = ruleset._asdict() | {"active": ruleset.digest == active}
    return known | {"rule_count": len(ruleset.rules)}


def reading_of(body: RulesBody, book: RuleBook) -> Reading:
    if (body.rules is None) == (body.yaml is None):
        raise InvalidInput(SAY("rest.rules_or_yaml"))
    reading = Reading("yaml", book.engine, book.tools, book.conditions, book.facts)
    return reading.of(body.yaml) if body.yaml is not None else _of_json(body.rules or [], reading)


def _of_json(rules: Sequence[RuleBody], reading: Reading) -> Reading:
    """By the same way as a file. The lines of that file nobody has seen, but for those of a condition's own text."""
    written = [rule for rule in rules if not rule.condition.startswith(CALL)]
    wrong = [found for rule in written for found in complaints(rule, reading.engine, reading.tools)]
    if not wrong:
        reading = reading.of(write_rules(rules))
        wrong = [replace(found, file=None, line=None) for found in reading.complaints]
    reading.complaints = wrong
    return reading


def refuse_wrong(found: Iterable[Complaint], reader: Locale) -> None:
    if errors := [complaint for complaint in found if complaint.severity == "error"]:
        raise RuleRefused(errors, reader)
