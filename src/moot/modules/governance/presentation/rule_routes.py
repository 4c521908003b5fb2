"""Rules over HTTP: single ones read, added, changed, taken away and made; rulesets kept, put in force and tried.

Rules come in and go out as JSON, or as the text of a YAML file.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, BeforeValidator, Field

from moot.modules.governance.application.decision_log import Difference, simulate
from moot.modules.governance.application.rule_files import Reading, RuleReader, write_rules
from moot.modules.governance.application.rule_generator import Wish
from moot.modules.governance.application.rulesets import RulesetService
from moot.modules.governance.domain.decisions import From, ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.rulesets import (
    Activation,
    Complaint,
    NoSuchRule,
    RuleChanges,
    RuleRefused,
    Ruleset,
    as_data,
)
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.dependencies import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_KEPT,
    By,
    Decisions,
    Governance,
    Responses,
    Rulesets,
    json_only,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Reader, Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator", tags=["rules"])

DUPLICATE: Responses = {409: {"model": ErrorBody, "description": "another rule has this id"}}
Yaml = Annotated[str, Field(max_length=5_000_000)]
MOST_FILES = 100
MOST_SHOWN = 200
Number = Annotated[int, Path(ge=-(2**31), lt=2**31)]


class RuleBody(EnhancedRule):
    """A rule; a condition in code is told by its name: `call:NAME@VERSION`."""

    condition: Annotated[str, Field(min_length=1, max_length=10_000)]

    @classmethod
    def of(cls, rule: EnhancedRule) -> "RuleBody":
        return cls.model_validate(as_data(rule))


SentRule = Annotated[RuleBody, BeforeValidator(json_only)]


class RulesBody(Strict):
    """`rules` as JSON, the text of a file, or the texts of several by their names."""

    rules: list[SentRule] | None = None
    yaml: Yaml | None = None
    files: dict[str, Yaml] | None = Field(default=None, max_length=MOST_FILES)


class RulesetBody(RulesBody):
    note: str = Field(default="", max_length=500, description="what is new about them")


class Problem(BaseModel):
    """`line` is of the YAML text, or of the condition where the rules came as JSON; `column` is of the condition."""

    rule: str | None = None
    field: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    message: str
    suggestion: str | None = None
    severity: str


class RuleChange(BaseModel):
    """The ruleset that is in force now, and what became of the rule; `problems`: why it is a draft."""

    ruleset: int
    digest: str
    rule: RuleBody | None
    problems: list[Problem] = []


class GeneratedRules(BaseModel):
    """In shadow and not stored: `yaml` is for people to read, to change and to save."""

    rules: list[RuleBody]
    yaml: str


class RulesetSummary(BaseModel):
    """Not `intact`: its rules are not those that were stored, so that it cannot decide."""

    number: int
    digest: str
    active: bool
    intact: bool
    note: str
    created_by: str
    created_at: datetime
    rule_count: int


class RulesetDetail(RulesetSummary):
    """`changes`: what would go and what would come if it were put in force now."""

    rules: list[RuleBody]
    changes: RuleChanges


class SavedRuleset(RulesetDetail):
    """`problems` tell which rules are drafts, and so switched off."""

    problems: list[Problem]


class Checked(BaseModel):
    """`ok`: they could be saved."""

    ok: bool
    problems: list[Problem]


class Ending(BaseModel):
    """How many decisions ended the one way and would end the other."""

    was: ValidationStatus
    now: ValidationStatus
    count: int


class ChangedDecision(BaseModel):
    id: UUID
    decision_id: str
    decision_type: str
    session_id: UUID | None
    decided_at: datetime
    was: ValidationStatus
    now: ValidationStatus
    because: str

    @classmethod
    def of(cls, difference: Difference, reader: Locale) -> "ChangedDecision":
        known = difference.decision.model_dump()
        because = difference.because.in_locale(reader)
        return cls.model_validate(known | difference._asdict() | {"because": because})


class Simulated(BaseModel):
    """`changed` shows the first of those that differ, oldest first; `different` counts them all."""

    ruleset: int
    since: datetime
    total: int
    same: int
    different: int
    endings: list[Ending]
    changed: list[ChangedDecision]


@router.post("/rules/generate", summary="Make rules from what a user says", responses=BAD_REQUEST)
async def generate(body: Wish, governance: Governance) -> GeneratedRules:
    """Nothing that is said can loosen a rule, or take one away."""
    made = governance.rule_generator().generate_from_user_input(**body.model_dump())
    return GeneratedRules(rules=[RuleBody.of(rule) for rule in made], yaml=write_rules(made))


@router.get("/rules/{rule_id}", summary="One of the rules in force", responses=NOT_FOUND)
async def one_rule(rule_id: str, governance: Governance, workspace: Workspace) -> RuleBody:
    for rule in (await governance.in_force(workspace)).rules:
        if rule.id == rule_id:
            return RuleBody.of(rule)
    raise NoSuchRule(rule_id)


@router.post("/rules", summary="Add a rule", status_code=201, responses=BAD_REQUEST | DUPLICATE | NOT_KEPT)
async def add_rule(
    body: SentRule, governance: Governance, stored: Rulesets, workspace: Workspace, by: By, reader: Reader
) -> RuleChange:
    """Makes the next ruleset, which is in force from the next decision on."""
    reading = _accept(RulesBody(rules=[body]), governance.book, reader)
    (rule,) = reading.rules
    saved = await stored.edit(
        rule.id, lambda rules: rules.add(rule), note="added", by=by, workspace=workspace
    )
    return _tell_change(saved, body.id, _tell_problems(reading.complaints, reader))


@router.put("/rules/{rule_id}", summary="Change a rule", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT)
async def change_rule(
    rule_id: str,
    body: SentRule,
    governance: Governance,
    stored: Rulesets,
    workspace: Workspace,
    by: By,
    reader: Reader,
) -> RuleChange:
    """The whole rule is sent. If it says something else than before, it gets the next version."""
    if body.id != rule_id:
        raise InvalidInput(SAY("rest.other_id", path=rule_id, body=body.id))
    reading = _accept(RulesBody(rules=[body]), governance.book, reader)
    (rule,) = reading.rules
    saved = await stored.edit(
        rule_id, lambda rules: rules.update(rule), note="changed", by=by, workspace=workspace
    )
    return _tell_change(saved, rule_id, _tell_problems(reading.complaints, reader))


@router.delete("/rules/{rule_id}", summary="Take a rule away", responses=NOT_FOUND | NOT_KEPT)
async def remove_rule(rule_id: str, stored: Rulesets, workspace: Workspace, by: By) -> RuleChange:
    """It stays in the rulesets it was part of, which decisions name."""
    saved = await stored.edit(
        rule_id, lambda rules: rules.remove(rule_id), note="removed", by=by, workspace=workspace
    )
    return _tell_change(saved, rule_id, [])


@router.get("/rulesets", summary="List the rulesets, newest first", responses=NOT_KEPT)
async def rulesets(stored: Rulesets, workspace: Workspace) -> list[RulesetSummary]:
    active = await stored.number_in_force(workspace)
    return [RulesetSummary.model_validate(_summarise(each, active)) for each in await stored.list(workspace)]


@router.post(
    "/rulesets", summary="Save rules under the next number", status_code=201, responses=BAD_REQUEST | NOT_KEPT
)
async def save_ruleset(
    body: RulesetBody, governance: Governance, stored: Rulesets, workspace: Workspace, by: By, reader: Reader
) -> SavedRuleset:
    """Not in force yet. The same rules are kept once: saved again, they have the number they had."""
    reading = _accept(body, governance.book, reader)
    saved = await stored.save(reading.rules, note=body.note, by=by, workspace=workspace)
    told = await _detail(saved, stored, workspace)
    return SavedRuleset.model_validate(told | {"problems": _tell_problems(reading.complaints, reader)})


@router.post("/rulesets/check", summary="Say what is wrong with rules", responses=BAD_REQUEST)
async def check_ruleset(body: RulesBody, governance: Governance, reader: Reader) -> Checked:
    """Everything at once, each with its place and what was meant, perhaps; nothing is stored."""
    found = _inspect(body, governance.book)
    return Checked(ok=not found.errors, problems=_tell_problems(found.complaints, reader))


@router.post("/rulesets/rollback", summary="Back to what was in force before", responses=NOT_KEPT)
async def roll_back(stored: Rulesets, workspace: Workspace, by: By) -> Activation:
    return await stored.rollback(by=by, workspace=workspace)


@router.get(
    "/rulesets/{number}", summary="One ruleset with its rules", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT
)
async def ruleset(number: Number, stored: Rulesets, workspace: Workspace) -> RulesetDetail:
    found = await stored.get(number, workspace)
    stored.rules_of(found)  # what cannot be read as rules is refused, and says why
    return RulesetDetail.model_validate(await _detail(found, stored, workspace))


@router.post(
    "/rulesets/{number}/activate",
    summary="Put a ruleset in force",
    responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT,
)
async def activate(number: Number, stored: Rulesets, workspace: Workspace, by: By) -> Activation:
    """0 are the rules that come with Moot."""
    return await stored.activate(number, by=by, workspace=workspace)


SINCE = Query(description="a day, or a moment with its zone: decisions made from then on")


@router.post(
    "/rulesets/{number}/simulate",
    summary="What a ruleset would have made of the decisions so far",
    responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT,
)
async def simulate_ruleset(
    number: Number,
    since: Annotated[From, SINCE],
    governance: Governance,
    stored: Rulesets,
    decisions: Decisions,
    workspace: Workspace,
    reader: Reader,
) -> Simulated:
    """Decides each again with what was known at its time. Nothing is stored."""
    book, rules = governance.book, stored.rules_of(await stored.get(number, workspace))
    history = decisions.history(workspace, since)
    report = await simulate(book.validator(book.repository(rules)).validate, history)
    return Simulated(
        ruleset=number,
        since=since,
        total=report.total,
        same=report.same,
        different=len(report.changed),
        endings=[
            Ending(was=was, now=now, count=count) for (was, now), count in sorted(report.endings.items())
        ],
        changed=[ChangedDecision.of(difference, reader) for difference in report.changed[:MOST_SHOWN]],
    )


def _accept(body: RulesBody, reader: RuleReader, locale: Locale) -> Reading:
    reading = _inspect(body, reader)
    if reading.errors:
        raise RuleRefused(reading.errors, locale)
    return reading


def _inspect(body: RulesBody, reader: RuleReader) -> Reading:
    texts = {"yaml": body.yaml} if body.yaml is not None else body.files
    if [body.rules, body.yaml, body.files].count(None) != 2:
        raise InvalidInput(SAY("rest.rules_or_yaml"))
    return reader.inspect_rules(body.rules or []) if texts is None else reader.inspect_files(texts)


def _tell_problems(found: Iterable[Complaint], reader: Locale) -> list[Problem]:
    return [Problem.model_validate(complaint.as_details(reader)) for complaint in found]


def _tell_change(saved: Ruleset, rule_id: str, problems: list[Problem]) -> RuleChange:
    rule = next((RuleBody.model_validate(data) for data in saved.rules if data["id"] == rule_id), None)
    return RuleChange(ruleset=saved.number, digest=saved.digest, rule=rule, problems=problems)


async def _detail(ruleset: Ruleset, stored: RulesetService, workspace: str) -> dict[str, Any]:
    known = _summarise(ruleset, await stored.number_in_force(workspace))
    return known | {"changes": await stored.compare(ruleset.rules, workspace)}


def _summarise(ruleset: Ruleset, active: int) -> dict[str, Any]:
    """What a summary and a detail have in common; `active` is the number of what is in force."""
    state = {"active": ruleset.number == active, "intact": ruleset.intact}
    return ruleset._asdict() | state | {"rule_count": len(ruleset.rules)}
