"""Rulesets: kept under numbers, never changed, put in force and taken back; and tried on what was decided."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from moot.modules.governance.application.simulation import Difference, SimulationReport, simulate
from moot.modules.governance.domain.decisions import ValidationStatus
from moot.modules.governance.domain.rulesets import Activation
from moot.modules.governance.presentation.rest.asking import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_KEPT,
    By,
    Decisions,
    From,
    Governance,
    Rulesets,
)
from moot.modules.governance.presentation.rest.rule_shapes import (
    Problem,
    RulesBody,
    RulesetDetail,
    RulesetSummary,
    reading_of,
    refuse_wrong,
    told,
)
from moot.shared.domain.messages import Locale
from moot.shared.presentation.caller import Reader, Workspace

router = APIRouter(prefix="/coordinator/rulesets", tags=["rules"])

MOST_SHOWN = 200
Number = Annotated[int, Path(ge=-(2**31), lt=2**31)]


class RulesetBody(RulesBody):
    note: str = Field(default="", max_length=500, description="what is new about them")


class SavedRuleset(RulesetDetail):
    """`problems` tell which rules are drafts, and so switched off."""

    problems: list[Problem]


class Checked(BaseModel):
    """`ok`: they could be saved."""

    ok: bool
    problems: list[Problem]


class Activated(BaseModel):
    number: int
    sequence: int
    by: str
    at: datetime

    @classmethod
    def of(cls, done: Activation) -> "Activated":
        return cls.model_validate(done._asdict())


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


@router.get("", summary="List the rulesets, newest first", responses=NOT_KEPT)
async def rulesets(stored: Rulesets, workspace: Workspace) -> list[RulesetSummary]:
    active = (await stored.active(workspace)).digest
    return [RulesetSummary.model_validate(told(each, active)) for each in await stored.list(workspace)]


@router.post(
    "", summary="Save rules under the next number", status_code=201, responses=BAD_REQUEST | NOT_KEPT
)
async def save_ruleset(
    body: RulesetBody,
    governance: Governance,
    stored: Rulesets,
    workspace: Workspace,
    by: By,
    reader: Reader,
) -> SavedRuleset:
    """Not in force yet. The same rules are kept once: saved again, they have the number they had."""
    reading = reading_of(body, governance.book)
    refuse_wrong(reading.complaints, reader)
    saved = await stored.save(reading.rules, note=body.note, by=by, workspace=workspace)
    drafts = [Problem.of(found, reader) for found in reading.complaints]
    active = (await stored.active(workspace)).digest
    return SavedRuleset.model_validate(told(saved, active) | {"problems": drafts})


@router.post("/check", summary="Say what is wrong with rules", responses=BAD_REQUEST)
async def check_ruleset(body: RulesBody, governance: Governance, reader: Reader) -> Checked:
    """Everything at once, each with its place and what was meant, perhaps; nothing is stored."""
    found = reading_of(body, governance.book).complaints
    ok = all(complaint.severity != "error" for complaint in found)
    return Checked(ok=ok, problems=[Problem.of(complaint, reader) for complaint in found])


@router.post("/rollback", summary="Back to what was in force before", responses=NOT_KEPT)
async def roll_back(stored: Rulesets, workspace: Workspace, by: By) -> Activated:
    return Activated.of(await stored.rollback(by=by, workspace=workspace))


@router.get("/{number}", summary="One ruleset with its rules", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT)
async def ruleset(number: Number, stored: Rulesets, workspace: Workspace) -> RulesetDetail:
    found = await stored.get(number, workspace)
    return RulesetDetail.model_validate(told(found, (await stored.active(workspace)).digest))


@router.post(
    "/{number}/activate", summary="Put a ruleset in force", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT
)
async def activate(number: Number, stored: Rulesets, workspace: Workspace, by: By) -> Activated:
    """0 are the rules that come with Moot."""
    return Activated.of(await stored.activate(number, by=by, workspace=workspace))


SINCE = Query(description="a day, or a moment with its zone: decisions made from then on")


@router.post(
    "/{number}/simulate",
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
    report = await simulate(rules, history, lambda tried: book.validator(book.repository(tried)))
    return _simulated(report, number, since, reader)


def _simulated(report: SimulationReport, number: Number, since: datetime, reader: Locale) -> Simulated:
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
