"""What keeps a rule from being used: names nobody knows, a condition that cannot be tried, examples that fail."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches

from moot.modules.governance.application.facts import FactFinder
from moot.modules.governance.domain.conditions import Finding, Problem, ToolProfile
from moot.modules.governance.domain.decision_types import DECISION_TYPES
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.exceptions import Complaint
from moot.modules.governance.domain.rules import ConditionEngine, EnhancedRule, Example, RuleIndex
from moot.modules.governance.domain.texts import SAY

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""When examples take place."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def complaints(
    rule: EnhancedRule, engine: ConditionEngine, tools: Mapping[str, ToolProfile]
) -> list[Complaint]:
    """What is wrong with what the rule says; whether its examples bear it out is `tried`'s business."""
    found = [*_unknown_types(rule), *_unknown_paths(rule)]
    if not found:
        found = [_in_condition(problem) for problem in engine.problems(rule, tools)]
    return [replace(complaint, rule=rule.id) for complaint in found]


def _in_condition(problem: Problem) -> Complaint:
    line, column, why, advice = problem
    return Complaint(why, field="condition", line=line, column=column, advice=advice)


def _unknown_types(rule: EnhancedRule) -> Iterator[Complaint]:
    for name in rule.decision_types:
        if name not in DECISION_TYPES:
            why = SAY("rules.unknown_type", name=name, known=list(DECISION_TYPES))
            yield Complaint(why, field="decision_types", nearest=nearest(name, DECISION_TYPES))


def _unknown_paths(rule: EnhancedRule) -> Iterator[Complaint]:
    """A corrector that aims at a field no such decision has would never correct anything."""
    path: str | None = getattr(rule.corrector, "path", None)
    if path is None:
        return
    for name in (known for known in rule.for_types if known in DECISION_TYPES):
        fields = {f"payload.{field}": kind for field, kind in DECISION_TYPES[name].payload.items()}
        open_ended = [field for field, kind in fields.items() if kind.kind in ("map", "list")]
        if path not in fields and not any(path.startswith(f"{field}.") for field in open_ended):
            why = SAY("rules.unknown_path", path=path, type=name, known=list(fields))
            yield Complaint(why, field="corrector.path", nearest=nearest(path, fields))


def tried(
    rule: EnhancedRule,
    engine: ConditionEngine,
    tools: Mapping[str, ToolProfile],
    facts: FactFinder | None = None,
) -> list[tuple[int, Complaint]]:
    """Which of the rule's examples do not come out as they say, by their place in the list."""
    index = engine.index([rule.model_copy(update={"enabled": True})], tools)
    facts = facts or FactFinder(lambda tool, _context: tools.get(tool), lambda *_: True)
    outcomes = [_outcome(rule, example, index, facts) for example in rule.examples]
    return [(place, replace(found, rule=rule.id)) for place, found in enumerate(outcomes) if found]


def _outcome(rule: EnhancedRule, example: Example, index: RuleIndex, facts: FactFinder) -> Complaint | None:
    types = [example.decision_type] if example.decision_type else list(rule.for_types)
    if len(types) != 1:
        return Complaint(SAY("rules.example_without_type", known=types or list(DECISION_TYPES)))
    if rule.for_types and types[0] not in rule.for_types:
        return Complaint(SAY("rules.example_of_other_type", type=types[0], known=list(rule.for_types)))
    request = DecisionRequest("example", types[0], example.payload, example.context, "example", NOON)
    fired = index.fired(facts.facts(request, example.payload))
    return _disappointed(example, fired[0].finding if fired else None)


def _disappointed(example: Example, finding: Finding | None) -> Complaint | None:
    """A rule that is broken only because it could not be decided proves nothing."""
    if finding is not None and finding.error is not None:
        return Complaint(SAY("rules.example_undecided", error=finding.error))
    if example.violates and finding is None:
        return Complaint(SAY("rules.example_did_not_fire"))
    if not example.violates and finding is not None:
        return Complaint(SAY("rules.example_fired", because=finding.because, seen=_seen(finding)))
    return None


def _seen(finding: Finding) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in finding.values.items()) or "-"
