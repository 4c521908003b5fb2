"""What other rules would have made of the decisions that were made."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from moot.modules.governance.application.decision_log import explained, recorded
from moot.modules.governance.domain.decision_record import DecisionRecord, Validator, digest_json
from moot.modules.governance.domain.decisions import ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message

ValidatorFor = Callable[[Sequence[EnhancedRule]], Validator]
PROGRESS_EVERY = 500


class Difference(NamedTuple):
    """`because` is what the new rules say; where they no longer object, what the old ones said."""

    decision: DecisionRecord
    was: ValidationStatus
    now: ValidationStatus
    because: Message


@dataclass
class SimulationReport:
    """`endings` counts all decisions by how they ended and how they would. Equal endings can still differ: in what
    was changed.
    """

    total: int = 0
    same: int = 0
    changed: list[Difference] = field(default_factory=list)
    endings: Counter[tuple[ValidationStatus, ValidationStatus]] = field(default_factory=Counter)


async def simulate(
    rules: Sequence[EnhancedRule],
    records: AsyncIterator[DecisionRecord],
    validator_for: ValidatorFor,
    progress: Callable[[int], None] = lambda done: None,
) -> SimulationReport:
    """Decide again, each decision with what was known at its time; nothing is written down."""
    validator, report = validator_for(rules), SimulationReport()
    async for record in records:
        again = _again(record, validator)
        report.total += 1
        report.endings[record.status, again.status] += 1
        if _same(record, again):
            report.same += 1
        else:
            report.changed.append(_difference(record, again))
        if report.total % PROGRESS_EVERY == 0:
            progress(report.total)
    progress(report.total)
    return report


def _again(record: DecisionRecord, validator: Validator) -> DecisionRecord:
    """A person who was asked is taken to say the same once more."""
    request = record.request
    proposed = request if record.edited is None else replace(request, payload=record.edited)
    result = validator.validate(proposed, waived=record.answer == "approved")
    if record.answer == "refused" and result.status is ValidationStatus.ESCALATED:
        result = replace(result, status=ValidationStatus.REJECTED)
    if record.edited is not None and result.may_proceed:
        result = replace(result, status=ValidationStatus.MODIFIED, modified_payload=dict(result.payload))
    return recorded(request, result, session_id=record.session_id, workspace=record.workspace_id)


def _same(then: DecisionRecord, now: DecisionRecord) -> bool:
    return then.status is now.status and _went_on_with(then) == _went_on_with(now)


def _went_on_with(record: DecisionRecord) -> str | None:
    payload = record.result.modified_payload
    return None if payload is None else digest_json(payload)


def _difference(then: DecisionRecord, now: DecisionRecord) -> Difference:
    eased = now.status.severity < then.status.severity
    because = SAY("decisions.no_longer", was=explained(then)) if eased else explained(now)
    return Difference(then, then.status, now.status, because)
