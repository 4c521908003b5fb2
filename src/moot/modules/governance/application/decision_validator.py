"""What the rules make of a decision: approved, changed, put before a person, or stopped; and why.

Rules of source USER and GENERATED only tighten. They are asked after the others have had their say, and whichever of
their corrections are made, nothing else may be broken by it: so there is no rule one could add to get more through.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

from moot.modules.governance.application.corrections import Corrections, operations, patch
from moot.modules.governance.application.facts import facts_of
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.decisions import (
    Change,
    DecisionRequest,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
)
from moot.modules.governance.domain.rules import EnhancedRule, Fired, RuleAction
from moot.modules.governance.domain.rulesets import Active
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import Locale, Message, in_words, locale_of
from moot.shared.infrastructure.redaction import REDACT

APPROVED, MODIFIED = ValidationStatus.APPROVED, ValidationStatus.MODIFIED
ESCALATED, REJECTED = ValidationStatus.ESCALATED, ValidationStatus.REJECTED

MOST_ROUNDS = 3
"""Corrections that break other rules are corrected again so often."""
MOST_TIGHTENINGS = 4
"""More corrections at once by rules that only tighten cannot be tried in all their combinations."""


class Rules(Protocol):
    """The rule repository, as the validator sees it."""

    @property
    def active(self) -> Active:
        """What decides now. It does not change; whoever changes the rules puts another one in its place."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a payload got to: `later` are rules it broke only on the way, `note` is why it goes no further."""

    status: ValidationStatus
    payload: Mapping[str, Any]
    changes: tuple[Change, ...] = ()
    later: tuple[Fired, ...] = ()
    note: Message | None = None

    def worse(
        self, status: ValidationStatus, later: Iterable[Fired] = (), note: Message | None = None
    ) -> "Outcome":
        worst = max(self.status, status, key=lambda each: each.severity)
        return replace(self, status=worst, later=(*self.later, *later), note=note or self.note)


@dataclass
class DecisionValidator:
    """Needs neither a database nor a desk. The same request and the same rules give the same answer, always."""

    rule_repository: Rules
    _tools: Mapping[str, ToolProfile]
    _corrections: Corrections
    _clock: Clock

    def validate(self, request: DecisionRequest, *, waived: bool = False) -> ValidationResult:
        """`waived`: a person has approved it, so that nobody has to be asked once more."""
        return self.validate_by(self.rule_repository.active, request, waived=waived)

    def validate_by(
        self, active: Active, request: DecisionRequest, *, waived: bool = False
    ) -> ValidationResult:
        """By these rules, whichever are in force."""
        facts = facts_of(request, request.payload, self._tools)
        broken, now, digest = active.index.find_broken(facts), self._clock.now(), active.digest
        unheard_of = (
            (SAY("decisions.tool_unknown").in_locale(reader_of(request)),) if facts.is_unheard_of else ()
        )
        if not broken:
            return ValidationResult(APPROVED, request, None, (), (), now, ruleset=digest, notes=unheard_of)
        trial = Trial(
            lambda payload: active.index.find_broken(facts_of(request, payload, self._tools)),
            self._corrections,
            waived,
        )
        outcome = trial.outcome(request.payload, broken)
        reader = reader_of(request)
        stopped = (outcome.note.in_locale(reader),) if outcome.note else ()
        modified = dict(outcome.payload) if outcome.changes else None
        known = {fired.rule.id for fired in broken}
        later = {fired.rule.id: fired for fired in outcome.later if fired.rule.id not in known}
        found = [*broken, *later.values()]
        violations = tuple(violation_of(each, outcome, reader, trial.escalates(each)) for each in found)
        return ValidationResult(
            outcome.status,
            request,
            modified if outcome.status is MODIFIED else None,
            violations,
            tuple(dict.fromkeys(v.suggestion or v.message for v in violations if v.mode == "enforce")),
            now,
            outcome.changes if outcome.status in (MODIFIED, ESCALATED) else (),
            modified if outcome.status is not REJECTED else None,
            terminates=any(map(trial.ends, found)),
            ruleset=digest,
            notes=stopped if outcome.status is REJECTED else unheard_of,
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One decision and the rules it meets: from the payload as it came to one that breaks none, or to an end."""

    _fired: Callable[[Mapping[str, Any]], list[Fired]]
    _corrections: Corrections
    _waived: bool

    def outcome(self, payload: Mapping[str, Any], broken: Sequence[Fired]) -> Outcome:
        if any(map(self.ends, broken)):
            return Outcome(REJECTED, payload)
        outcome = self._settle(payload, [fired for fired in broken if not fired.rule.tightens])
        if outcome.status is REJECTED:
            return outcome
        now = self._fired(outcome.payload) if outcome.changes else broken
        return self._tighten(outcome, [f for f in now if f.rule.tightens and self.binds(f)])

    def binds(self, fired: Fired) -> bool:
        told = fired.rule.mode == "shadow" or fired.rule.action is RuleAction.LOG_WARNING
        return not told and not (self._waived and self.escalates(fired))

    def ends(self, fired: Fired) -> bool:
        """No correction, by whichever rule, takes it back."""
        return fired.rule.action is RuleAction.TERMINATE and self.binds(fired)

    def escalates(self, fired: Fired) -> bool:
        asks = fired.rule.requires_human or fired.finding.escalate
        return asks and fired.rule.action is not RuleAction.TERMINATE

    def _settle(self, payload: Mapping[str, Any], broken: Sequence[Fired]) -> Outcome:
        """Correct until none of the trusted rules is broken."""
        outcome = Outcome(APPROVED, payload)
        for _ in range(MOST_ROUNDS):
            outcome, mending = self._ask(outcome, [fired for fired in broken if self.binds(fired)])
            if not mending:
                return outcome
            outcome = self._mend(outcome, mending)
            broken = [fired for fired in self._fired(outcome.payload) if not fired.rule.tightens]
        binding = [fired for fired in broken if self.binds(fired)]
        if not (left := [fired for fired in binding if not self.escalates(fired)]):
            return self._ask(outcome, binding)[0]
        note = SAY("decisions.too_many_rounds", most=MOST_ROUNDS, rules=[fired.rule.id for fired in left])
        return outcome.worse(REJECTED, left, note)

    def _ask(self, outcome: Outcome, binding: Sequence[Fired]) -> tuple[Outcome, list[Fired]]:
        """Put before a person what is theirs. With the rules that corrections are for: none, if one has none."""
        asking = [fired for fired in binding if self.escalates(fired)]
        outcome = outcome.worse(ESCALATED, asking) if asking else outcome
        mending = [fired for fired in binding if not self.escalates(fired)]
        if all(self._changes(fired, outcome.payload) for fired in mending):
            return outcome, mending
        return outcome.worse(REJECTED, mending), []

    def _tighten(self, outcome: Outcome, broken: Sequence[Fired]) -> Outcome:
        """Make the corrections of the tightening rules, and see that no choice of them would break anything else."""
        outcome, mending = self._ask(outcome, broken)
        if not mending:
            return outcome
        if len(mending) > MOST_TIGHTENINGS:
            rules = [fired.rule.id for fired in mending]
            note = SAY("decisions.too_many_corrections", most=MOST_TIGHTENINGS, count=len(rules), rules=rules)
            return outcome.worse(REJECTED, mending, note)
        every, settled = {fired.rule.id for fired in mending}, outcome
        for size in range(1, len(mending) + 1):
            for chosen in combinations(mending, size):
                outcome = self._mend(settled, chosen)
                excused = every - {fired.rule.id for fired in chosen}
                broken = [
                    f for f in self._fired(outcome.payload) if self.binds(f) and f.rule.id not in excused
                ]
                stopped = [fired for fired in broken if not self.escalates(fired)]
                if broken:
                    settled = settled.worse(REJECTED if stopped else ESCALATED, stopped or broken)
        return replace(outcome, later=settled.later).worse(settled.status)

    def _mend(self, outcome: Outcome, mending: Iterable[Fired]) -> Outcome:
        """With the correction of each rule made in turn, so that each builds on those before it."""
        for fired in mending:
            steps = self._changes(fired, outcome.payload)
            payload = patch(outcome.payload, steps)
            outcome = replace(outcome, payload=payload, changes=(*outcome.changes, *steps))
        return outcome.worse(MODIFIED)

    def _changes(self, fired: Fired, payload: Mapping[str, Any]) -> tuple[Change, ...]:
        rule, finding = fired
        if finding.error is not None or rule.action is RuleAction.TERMINATE:
            return ()
        called = f"{rule.id}@{rule.version}"
        if finding.patch is not None:
            return operations(finding.patch, payload, called)
        return self._corrections.changes(rule.corrector, payload, called) if rule.corrector else ()


def reader_of(request: DecisionRequest) -> Locale:
    return locale_of(str(request.context.get("locale") or ""))


def violation_of(fired: Fired, outcome: Outcome, reader: Locale, escalates: bool) -> RuleViolation:
    rule, finding = fired
    corrected = any(change.rule == f"{rule.id}@{rule.version}" for change in outcome.changes)
    values = REDACT(dict(finding.values))
    because = _fill(in_locale(rule, "because", reader), values) or REDACT(in_words(finding.because, reader))
    error = in_words(finding.error, reader)
    name = in_locale(rule, "name", reader) or rule.name
    return RuleViolation(
        rule_id=rule.id,
        rule_name=name,
        action=rule.action,
        message=_message(name, because, values, error).in_locale(reader),
        version=rule.version,
        category=rule.category,
        source=rule.source,
        mode=rule.mode,
        because=because,
        values=values,
        suggestion=in_words(finding.suggestion, reader) or in_locale(rule, "suggestion", reader) or None,
        error=error,
        escalates=escalates,
        corrected=corrected and outcome.status is not REJECTED,
    )


def in_locale(rule: EnhancedRule, text: str, locale: Locale) -> str:
    """A text of the rule's metadata: one for everybody, or one per locale."""
    given = rule.metadata.get(text)
    if isinstance(given, Mapping):
        return str(given.get(locale) or next(iter(given.values()), ""))
    return str(given or "")


def _fill(text: str, values: Mapping[str, Any]) -> str:
    """A rule's own words, with the values that its condition saw: `{payload.action}`."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _message(name: str, because: str, values: Mapping[str, Any], error: str | None) -> Message:
    if error is not None:
        return SAY("violation.undecided", rule=name, error=error)
    seen = [f"{path} = {value!r}" for path, value in values.items()]
    key = "violation.with_values" if seen else "violation.plain"
    return SAY(key, rule=name, because=because, seen=seen)
