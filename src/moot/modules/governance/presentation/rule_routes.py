"""Rules over HTTP: single ones read, added, changed, taken away and made; rulesets kept, put in force and tried.

Rules come in and go out as JSON, or as the text of a YAML file.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, BeforeValidator, Field

from moot.modules.governance.application.decision_log import simulate
from moot.modules.governance.application.rule_files import Reading, write_rules
from moot.modules.governance.application.rule_generator import Wish
from moot.modules.governance.application.rulesets import Change, Edited
from moot.modules.governance.domain.decisions import ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.rulesets import Activation, RuleChanges, Ruleset, as_data
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.dependencies import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_KEPT,
    NOT_THERE,
    By,
    Decisions,
    Governance,
    Rulesets,
    json_only,
)
from moot.shared.domain.clock import Instant
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Reader, Workspace
from moot.shared.presentation.errors import refusals

router = APIRouter(prefix="/coordinator", tags=["rules"])

DUPLICATE = refusals({409: "another rule has this id"})
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


class Simulated(BaseModel):
    """`changed` shows the first of those that differ, oldest first; `different` counts them all."""

    ruleset: int
    since: datetime
    total: int
    same: int
    different: int
    endings: list[Ending]
    changed: list[ChangedDecision]


@dataclass
class RuleDesk:
    """The rules of the workspace that asks: who changes them, and who reads the answer."""

    governance: Governance
    stored: Rulesets
    workspace: Workspace
    by: By
    reader: Reader

    def accept(self, body: RulesBody) -> Reading:
        reading = _inspect(body, self.governance)
        reading.accept(self.reader)
        return reading

    async def edit(
        self, rule_id: str, note: Edited, change: Change, reading: Reading | None = None
    ) -> RuleChange:
        saved = await self.stored.edit(rule_id, change, note=note, by=self.by, workspace=self.workspace)
        rule = next((RuleBody.model_validate(data) for data in saved.rules if data["id"] == rule_id), None)
        problems = _tell_problems(reading, self.reader) if reading else []
        return RuleChange(ruleset=saved.number, digest=saved.digest, rule=rule, problems=problems)

    async def detail(self, ruleset: Ruleset) -> dict[str, Any]:
        known = _summarise(ruleset, await self.stored.number_in_force(self.workspace))
        return known | {"changes": await self.stored.compare(ruleset.rules, self.workspace)}


Desk = Annotated[RuleDesk, Depends()]


@router.post("/rules/generate", summary="Make rules from what a user says", responses=BAD_REQUEST)
async def generate(body: Wish, governance: Governance) -> GeneratedRules:
    """Nothing that is said can loosen a rule, or take one away."""
    made = governance.rule_generator.generate_from_user_input(**body.model_dump())
    return GeneratedRules(rules=[RuleBody.of(rule) for rule in made], yaml=write_rules(made))


@router.get("/rules/{rule_id}", summary="One of the rules in force", responses=NOT_FOUND)
async def one_rule(rule_id: str, governance: Governance, workspace: Workspace) -> RuleBody:
    return RuleBody.of((await governance.in_force(workspace)).find(rule_id))


@router.post("/rules", summary="Add a rule", status_code=201, responses=BAD_REQUEST | DUPLICATE | NOT_KEPT)
async def add_rule(body: SentRule, desk: Desk) -> RuleChange:
    """Makes the next ruleset, which is in force from the next decision on."""
    reading = desk.accept(RulesBody(rules=[body]))
    return await desk.edit(body.id, "added", lambda rules: rules.load(reading.rules), reading)


@router.put("/rules/{rule_id}", summary="Change a rule", responses=NOT_THERE)
async def change_rule(rule_id: str, body: SentRule, desk: Desk) -> RuleChange:
    """The whole rule is sent. If it says something else than before, it gets the next version."""
    if body.id != rule_id:
        raise InvalidInput(SAY("rest.other_id", path=rule_id, body=body.id))
    reading = desk.accept(RulesBody(rules=[body]))
    return await desk.edit(rule_id, "changed", lambda rules: rules.update(*reading.rules), reading)


@router.delete("/rules/{rule_id}", summary="Take a rule away", responses=NOT_FOUND | NOT_KEPT)
async def remove_rule(rule_id: str, desk: Desk) -> RuleChange:
    """It stays in the rulesets it was part of, which decisions name."""
    return await desk.edit(rule_id, "removed", lambda rules: rules.remove(rule_id))


@router.get("/rulesets", summary="List the rulesets, newest first", responses=NOT_KEPT)
async def rulesets(stored: Rulesets, workspace: Workspace) -> list[RulesetSummary]:
    active = await stored.number_in_force(workspace)
    return [RulesetSummary.model_validate(_summarise(each, active)) for each in await stored.list(workspace)]


@router.post(
    "/rulesets", summary="Save rules under the next number", status_code=201, responses=BAD_REQUEST | NOT_KEPT
)
async def save_ruleset(body: RulesetBody, desk: Desk) -> SavedRuleset:
    """Not in force yet. The same rules are kept once: saved again, they have the number they had."""
    reading = desk.accept(body)
    saved = await desk.stored.save(reading.rules, note=body.note, by=desk.by, workspace=desk.workspace)
    told = {"problems": _tell_problems(reading, desk.reader), **await desk.detail(saved)}
    return SavedRuleset.model_validate(told)


@router.post("/rulesets/check", summary="Say what is wrong with rules", responses=BAD_REQUEST)
async def check_ruleset(body: RulesBody, governance: Governance, reader: Reader) -> Checked:
    """Everything at once, each with its place and what was meant, perhaps; nothing is stored."""
    reading = _inspect(body, governance)
    return Checked(ok=not reading.errors, problems=_tell_problems(reading, reader))


@router.post("/rulesets/rollback", summary="Back to what was in force before", responses=NOT_KEPT)
async def roll_back(stored: Rulesets, workspace: Workspace, by: By) -> Activation:
    return await stored.rollback(by=by, workspace=workspace)


@router.get("/rulesets/{number:int}", summary="One ruleset with its rules", responses=NOT_THERE)
async def ruleset(number: Number, desk: Desk) -> RulesetDetail:
    found = await desk.stored.get(number, desk.workspace)
    desk.stored.rules_of(found)  # what cannot be read as rules is refused, and says why
    return RulesetDetail.model_validate(await desk.detail(found))


@router.post("/rulesets/{number}/activate", summary="Put a ruleset in force", responses=NOT_THERE)
async def activate(number: Number, stored: Rulesets, workspace: Workspace, by: By) -> Activation:
    """0 are the rules that come with Moot."""
    return await stored.activate(number, by=by, workspace=workspace)


SINCE = Query(description="a day, or a moment with its zone: decisions made from then on")


@router.post(
    "/rulesets/{number}/simulate",
    summary="What a ruleset would have made of the decisions so far",
    responses=NOT_THERE,
)
async def simulate_ruleset(
    number: Number, since: Annotated[Instant, SINCE], desk: Desk, decisions: Decisions
) -> Simulated:
    """Decides each again with what was known at its time. Nothing is stored."""
    book, rules = desk.governance.book, desk.stored.rules_of(await desk.stored.get(number, desk.workspace))
    history = decisions.history(desk.workspace, since)
    report = await simulate(book.validator(book.repository(rules)).validate, history)
    counted = sorted(report.endings.items())
    shown = [
        dict(each.decision) | each._asdict() | {"because": each.because.in_locale(desk.reader)}
        for each in report.changed[:MOST_SHOWN]
    ]
    return Simulated(
        ruleset=number,
        since=since,
        total=report.total,
        same=report.same,
        different=len(report.changed),
        endings=[Ending(was=was, now=now, count=count) for (was, now), count in counted],
        changed=[ChangedDecision.model_validate(each) for each in shown],
    )


def _inspect(body: RulesBody, governance: Governance) -> Reading:
    if [body.rules, body.yaml, body.files].count(None) != 2:
        raise InvalidInput(SAY("rest.rules_or_yaml"))
    texts = body.files or {} if body.yaml is None else {"yaml": body.yaml}
    reading = governance.book.inspect_files(texts)
    reading.add_entries(map(as_data, body.rules or []))
    return reading


def _tell_problems(reading: Reading, reader: Reader) -> list[Problem]:
    return [Problem.model_validate(complaint.as_details(reader)) for complaint in reading.complaints]


def _summarise(ruleset: Ruleset, active: int) -> dict[str, Any]:
    """What a summary and a detail have in common; `active` is the number of what is in force."""
    state = {"active": ruleset.number == active, "intact": ruleset.intact}
    return ruleset._asdict() | state | {"rule_count": len(ruleset.rules)}
