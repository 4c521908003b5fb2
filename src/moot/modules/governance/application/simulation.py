"""What other rules would have made of the decisions that were made."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from moot.modules.governance.application.decision_log import explain, recorded
from moot.modules.governance.domain.decision_record import DecisionRecord, digest_json
from moot.modules.governance.domain.decisions import ValidationResult, ValidationStatus
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message

Validate = Callable[..., ValidationResult]
"""`DecisionValidator.validate` by the rules that are tried."""


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
    changed: list[Difference] = field(default_factory=list)
    endings: Counter[tuple[ValidationStatus, ValidationStatus]] = field(default_factory=Counter)

    @property
    def same(self) -> int:
        return self.total - len(self.changed)


async def simulate(
    validate: Validate, records: AsyncIterator[DecisionRecord], progress: Callable[[int], None] | None = None
) -> SimulationReport:
    """Decide again, each decision with what was known at its time; nothing is written down."""
    report = SimulationReport()
    async for record in records:
        again = _again(record, validate)
        report.total += 1
        report.endings[record.status, again.status] += 1
        if (record.status, _acted_on(record)) != (again.status, _acted_on(again)):
            report.changed.append(_difference(record, again))
        if progress is not None:
            progress(report.total)
    return report


def _again(record: DecisionRecord, validate: Validate) -> DecisionRecord:
    """A person who was asked is taken to say the same once more."""
    request = record.request
    proposed = request if record.edited is None else replace(request, payload=record.edited)
    result = validate(proposed, waived=record.answer == "approved")
    if record.answer == "refused" and result.status is ValidationStatus.ESCALATED:
        result = replace(result, status=ValidationStatus.REJECTED)
    if record.edited is not None and result.may_proceed:
        result = replace(result, status=ValidationStatus.MODIFIED, modified_payload=dict(result.payload))
    return recorded(request, result, session_id=record.session_id, workspace=record.workspace_id)


def _acted_on(record: DecisionRecord) -> str:
    return digest_json(record.result.modified_payload)


def _difference(then: DecisionRecord, now: DecisionRecord) -> Difference:
    eased = now.status.severity < then.status.severity
    because = SAY("decisions.no_longer", was=explain(then)) if eased else explain(now)
    return Difference(then, then.status, now.status, because)
