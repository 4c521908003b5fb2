"""Puts a decision on the record, says in one sentence how it ended and why, and how it would end by other rules."""

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pydantic_core import to_json

from moot.modules.governance.application.corrections import read_pointer
from moot.modules.governance.application.tool_knowledge import find_schema
from moot.modules.governance.domain.decisions import (
    BY_A_PERSON,
    Change,
    DecisionRecord,
    DecisionRequest,
    RecordedResult,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
    digest_json,
    plain,
)
from moot.modules.governance.domain.rules import RuleAction
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message, shorten
from moot.shared.infrastructure.redaction import REDACT

__all__ = ["DecisionRecord", "explain", "make_record"]

LONGEST = {"decision_id": 200, "decision_type": 50, "requester": 100}
"""What an agent calls itself is cut to what the record has room for: a long name must not keep it off the record."""
PLAIN_YES = RecordedResult()
"""What is written down of most decisions: no rule has anything to say."""
FRACTIONS = {"position_percent", "confidence"}
SHOWN_VALUES = 3
LONGEST_SHOWN = 40


def make_record(
    request: DecisionRequest, result: ValidationResult, *, session_id: UUID | None, workspace: str
) -> DecisionRecord:
    """What is written down of a decision: all that is needed to decide again, without secrets."""
    tools, tools_digest = _tools(request)
    context = {**request.context, **tools}
    said = REDACT(plain({**_names(request), "payload": request.payload, "context": context}))
    return DecisionRecord(
        id=uuid4(),
        workspace_id=workspace,
        session_id=session_id,
        ruleset_digest=result.ruleset,
        status=result.status,
        result=_record_result(result, tools_digest),
        requested_at=request.timestamp,
        decided_at=result.timestamp,
        **{**said, **_cut(said)},
    )


def names_of(request: DecisionRequest) -> dict[str, str]:
    """As the record spells them."""
    return _cut(REDACT(_names(request)))


def _names(request: DecisionRequest) -> dict[str, str]:
    return {name: getattr(request, name) for name in LONGEST}


def _cut(said: Mapping[str, str]) -> dict[str, str]:
    return {name: said[name][:length] for name, length in LONGEST.items()}


def _record_result(result: ValidationResult, tools_digest: str | None) -> RecordedResult:
    if result.status is ValidationStatus.APPROVED and not (result.violations or result.notes):
        return RecordedResult(tools_digest=tools_digest) if tools_digest else PLAIN_YES
    said = {name: getattr(result, name) for name in RecordedResult.model_fields if name != "tools_digest"}
    return RecordedResult.model_validate(REDACT(plain({**said, "tools_digest": tools_digest})))


def _tools(request: DecisionRequest) -> tuple[dict[str, Any], str | None]:
    """Of an agent's tools the one that is called, and a digest of them all: their schemas are long."""
    given = request.context.get("tools")
    if not given:
        return {}, None
    called = [tool for tool in given if find_schema(str(request.payload.get("tool")), [tool])]
    return {"tools": called}, hashlib.sha256(to_json(given, fallback=str)).hexdigest()


def explain(record: DecisionRecord) -> Message:
    """For example: position 35% → 20%: single position cap (risk.position_cap@1: payload.position_percent > 0.2)."""
    said, notes = _explain(record), list(record.result.notes)
    return SAY("decisions.noted", said=said, notes=notes) if notes else said


def _explain(record: DecisionRecord) -> Message:
    result = record.result
    enforced = [violation for violation in result.violations if violation.mode == "enforce"]
    if record.status is ValidationStatus.MODIFIED and result.changes:
        return SAY("decisions.modified", parts=_changes_by_rule(result.changes, enforced))
    if record.status is ValidationStatus.APPROVED and not enforced:
        return SAY("decisions.approved")
    reasons = [_reason(violation) for violation in _decisive(record, enforced)]
    return SAY(f"decisions.{_name_ending(record)}", why=reasons or [SAY("decisions.unexplained")])


def _name_ending(record: DecisionRecord) -> str:
    if record.status is ValidationStatus.APPROVED:
        return "waived" if record.answer else "warned"
    if record.answer == "refused":
        return "refused"
    return "terminated" if record.result.terminates else record.status.value


def _decisive(record: DecisionRecord, violations: Sequence[RuleViolation]) -> Sequence[RuleViolation]:
    """Those that made it what it is; all, where none of them can be told to have done so."""
    if record.status is ValidationStatus.ESCALATED or record.answer:
        return [violation for violation in violations if violation.escalates] or violations
    stopping = [v for v in violations if v.action is not RuleAction.LOG_WARNING and not v.corrected]
    return [v for v in stopping if not v.escalates] or stopping or violations


def _changes_by_rule(changes: Iterable[Change], violations: Iterable[RuleViolation]) -> list[Message]:
    reasons = {violation.rule: _reason(violation, shown=0) for violation in violations}
    reasons[BY_A_PERSON] = SAY("decisions.by_a_person")
    by_rule: dict[str, list[Message]] = {}
    for change in changes:
        by_rule.setdefault(change.rule, []).extend(map(_change, _single(change)))
    return [
        SAY("decisions.changed", changes=said, why=reasons.get(rule, rule)) for rule, said in by_rule.items()
    ]


def _single(change: Change) -> Iterator[Change]:
    """Of a map that was replaced as a whole, the fields that are others now."""
    then, now = change.was, change.value
    if not (isinstance(then, Mapping) and isinstance(now, Mapping)):
        yield change
        return
    for name in {**then, **now}:
        path = f"{change.path}/{name}"
        if name not in now:
            yield Change("remove", path, change.rule, was=then[name])
        elif name not in then or then[name] != now[name]:
            yield from _single(Change("replace", path, change.rule, now[name], then.get(name)))


def _change(change: Change) -> Message:
    """What a text was is not repeated, unless it is a verdict's action: it may be what the rule hides."""
    name = change.path.rsplit("/", 1)[-1]
    field, value = _field(change.path), _value(name, change.value)
    if change.op == "remove":
        return SAY("decisions.removed", field=field)
    if change.op == "replace" and (isinstance(change.was, int | float) or change.path == "/action"):
        return SAY("decisions.replaced", field=field, was=_value(name, change.was), value=value)
    return SAY("decisions.set", field=field, value=value)


def _field(path: str) -> str | Message:
    """A JSON pointer in a reader's words, where there are any."""
    dotted = ".".join(map(str, read_pointer(path)))
    key = f"decisions.fields.{dotted}"
    return SAY(key) if key in SAY.texts("en-US") else dotted


def _value(name: str, value: Any) -> str:
    if name in FRACTIONS and isinstance(value, int | float):
        return f"{round(value * 100, 2):g}%"
    shown = f"{value:g}" if isinstance(value, float) else json.dumps(plain(value), ensure_ascii=False)
    said = value if isinstance(value, str) else shown
    return shorten(said, LONGEST_SHOWN)


def _reason(violation: RuleViolation, shown: int = SHOWN_VALUES) -> Message:
    """With as many of the values the condition saw; none, where a change shows them."""
    because = violation.because or violation.error or violation.message
    said = {"name": violation.rule_name, "rule": violation.rule, "because": because}
    values = list(violation.values.items())[:shown]
    seen = [f"{name} = {_value(name.rsplit('.', 1)[-1], value)}" for name, value in values]
    return (
        SAY("decisions.reason_with_values", **said, values=seen) if seen else SAY("decisions.reason", **said)
    )


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
        then, now = ((each.status, digest_json(each.result.modified_payload)) for each in (record, again))
        if then != now:
            eased = again.status.severity < record.status.severity
            because = SAY("decisions.no_longer", was=explain(record)) if eased else explain(again)
            report.changed.append(Difference(record, record.status, again.status, because))
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
    return make_record(request, result, session_id=record.session_id, workspace=record.workspace_id)
