"""History decided again: the same by the same rules, and by others with what would differ."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from moot.modules.governance.application.decision_log import explain, make_record, simulate
from moot.modules.governance.domain.decisions import (
    BY_A_PERSON,
    Change,
    DecisionRecord,
    DecisionRequest,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
)
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.infrastructure.persistence.decision_log import SqlDecisionLog
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from tests.governance.factories import NOON, request, rule

DESK = "desk"
APPROVED, MODIFIED, ESCALATED, REJECTED = ValidationStatus


@dataclass
class CapValidator:
    """Each rule is a cap on the position: `suggest` cuts it, `reject` stops it, or puts it before a person.

    In the morning twice as much is allowed, so that the moment of a decision matters.
    """

    rules: Sequence[EnhancedRule]

    def validate(self, request: DecisionRequest, *, waived: bool = False) -> ValidationResult:
        position, status = request.payload["position_percent"], APPROVED
        broken: list[RuleViolation] = []
        changes: list[Change] = []
        for each in self.rules:
            cap = float(str(each.condition)) * (2 if request.timestamp.hour < 12 else 1)
            if position <= cap:
                continue
            ending = self._ending(each)
            broken.append(self._violation(each, cap, escalates=ending is ESCALATED))
            if ending is MODIFIED:
                changes.append(Change("replace", "/position_percent", broken[-1].rule, cap, position))
            if not (waived and ending is ESCALATED):
                status = max(status, ending, key=lambda one: one.severity)
        if status is not REJECTED:
            changed = {change.rule for change in changes}
            broken = [replace(each, corrected=each.rule in changed) for each in broken]
        modified = {**request.payload, "position_percent": changes[-1].value} if status is MODIFIED else None
        return ValidationResult(status, request, modified, tuple(broken), (), NOON, tuple(changes))

    def _ending(self, rule: EnhancedRule) -> ValidationStatus:
        if rule.requires_human:
            return ESCALATED
        return MODIFIED if rule.action == "suggest" else REJECTED

    def _violation(self, rule: EnhancedRule, cap: float, *, escalates: bool) -> RuleViolation:
        because = f"payload.position_percent > {cap:g}"
        return RuleViolation(rule.id, rule.name, rule.action, because, because=because, escalates=escalates)


def cap(at: float, **changes: Any) -> EnhancedRule:
    return rule(str(at), **({"id": f"cap.{at}", "name": "cap", "category": "data"} | changes))


RULES = [cap(0.2, action="suggest"), cap(0.5), cap(0.4, requires_human=True)]
POSITIONS = [0.1, 0.3, 0.45, 0.6]


@pytest.fixture
def log(database: Database) -> SqlDecisionLog:
    return SqlDecisionLog(AuditTrail(database))


async def decide(log: SqlDecisionLog, *, hour: int = 12, waived: bool = False) -> None:
    """One decision of each position, by `RULES`, and its record."""
    validator = CapValidator(RULES)
    for n, position in enumerate(POSITIONS):
        moment = NOON + timedelta(hours=hour - 12, minutes=n)
        asked = replace(request({"position_percent": position}, "verdict"), timestamp=moment)
        result = replace(validator.validate(asked, waived=waived), timestamp=moment)
        await log.write(make_record(asked, result, session_id=None, workspace=DESK))


def history(log: SqlDecisionLog) -> AsyncIterator[DecisionRecord]:
    return log.history(DESK, NOON - timedelta(days=1))


async def test_the_same_rules_decide_the_same_every_time(log):
    await decide(log)
    await decide(log, hour=9)
    await decide(log, hour=15, waived=True)
    report = await simulate(CapValidator(RULES).validate, history(log))
    assert (report.total, report.same, report.changed) == (12, 12, [])
    assert sum(report.endings.values()) == 12
    assert {was for was, _ in report.endings} == set(ValidationStatus)
    assert all(was is now for was, now in report.endings)


async def test_other_rules_show_what_would_differ_and_why(log):
    await decide(log)
    report = await simulate(CapValidator([cap(0.05, action="suggest"), cap(0.5)]).validate, history(log))
    assert report.endings == {
        (APPROVED, MODIFIED): 1,
        (MODIFIED, MODIFIED): 1,
        (ESCALATED, MODIFIED): 1,
        (REJECTED, REJECTED): 1,
    }
    assert (report.total, report.same) == (4, 1)
    stricter, other_cap, eased = report.changed
    assert (stricter.decision.payload, stricter.was, stricter.now) == (
        {"position_percent": 0.1},
        APPROVED,
        MODIFIED,
    )
    assert str(stricter.because) == "position 10% → 5%: cap (cap.0.05@1: payload.position_percent > 0.05)"
    assert str(other_cap.because) == "position 30% → 5%: cap (cap.0.05@1: payload.position_percent > 0.05)"
    said = "no longer: waits for a person: cap (cap.0.4@1: payload.position_percent > 0.4)"
    assert (str(eased.because), eased.now) == (said, MODIFIED)


async def test_what_a_person_had_approved_is_not_asked_about_again(log):
    await decide(log, waived=True)
    report = await simulate(CapValidator([cap(0.01, requires_human=True)]).validate, history(log))
    endings = [(each.was, each.now) for each in report.changed]
    assert endings == [
        (APPROVED, ESCALATED),
        (MODIFIED, ESCALATED),
        (MODIFIED, APPROVED),
        (REJECTED, ESCALATED),
    ]


async def answered(log: SqlDecisionLog, position: float, edited: float | None) -> DecisionRecord:
    """Put before a person, who writes something else, or refuses."""
    asked = request({"position_percent": position}, "verdict")
    result = CapValidator(RULES).validate(asked)
    if edited is None:
        ended = replace(result, status=REJECTED, timestamp=NOON)
    else:
        change = Change("replace", "", BY_A_PERSON, {"position_percent": edited}, dict(asked.payload))
        again = CapValidator(RULES).validate(request(change.value, "verdict"), waived=True)
        modified = dict(again.payload)
        ended = replace(again, status=MODIFIED, modified_payload=modified, changes=(change, *again.changes))
    return await log.write(make_record(asked, ended, session_id=None, workspace=DESK))


async def test_what_a_person_answered_is_their_answer_still(log):
    small = await answered(log, 0.45, 0.1)
    cut = await answered(log, 0.45, 0.3)
    refused = await answered(log, 0.45, None)
    assert [each.answer for each in (small, cut, refused)] == ["approved", "approved", "refused"]
    assert cut.result.modified_payload == {"position_percent": 0.2}
    report = await simulate(CapValidator(RULES).validate, history(log))
    assert (report.total, report.same) == (3, 3)

    report = await simulate(CapValidator([cap(0.05)]).validate, history(log))
    assert report.endings == {(MODIFIED, REJECTED): 2, (REJECTED, REJECTED): 1}
    said = "position 45% → 10%: a person wanted it so"
    assert explain(small).in_locale("en-US") == said
    assert explain(refused).in_locale("en-US") == (
        "rejected, for no person approved it: cap (cap.0.4@1: payload.position_percent > 0.4)"
    )


async def test_nothing_is_written_and_progress_is_told(log):
    await decide(log)
    told: list[int] = []
    await simulate(CapValidator([]).validate, history(log), told.append)
    assert told == [1, 2, 3, 4]
    assert (await log.statistics(DESK)).total == 4


async def test_without_history_there_is_nothing_to_differ(log):
    report = await simulate(CapValidator(RULES).validate, history(log))
    assert (report.total, report.same, report.changed) == (0, 0, [])
