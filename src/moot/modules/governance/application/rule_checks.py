"""What keeps a rule from working, told when it is read: names nobody has, correctors that could never mend anything,
examples that come out otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from moot.modules.governance.application.corrections import Corrections, patch
from moot.modules.governance.application.facts import facts_of, fits
from moot.modules.governance.domain.conditions import DECISION_TYPES, DecisionType, Kind, ToolProfile
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import (
    Clamp,
    Complaint,
    ConditionEngine,
    Corrector,
    Drop,
    EnhancedRule,
    Example,
    Mask,
    NamedCondition,
    RewriteSql,
    RuleAction,
    RuleIndex,
    SetValue,
    decision_type_for,
)
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import nearest

TEXTS = ("name", "description", "suggestion")
"""What `metadata` may say in several languages."""
METADATA = (*TEXTS, "because", "replaces", "kind")
"""What in it means something to Moot."""
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""When examples take place."""
OPEN: frozenset[Kind] = frozenset({"map", "list", "any"})
"""Nobody knows what is inside."""
ARGUMENTS = "args."
NOWHERE = "rules.unknown_path"


def name_unknown(key: str, name: str, known: Iterable[str], field: str, **said: Any) -> Complaint:
    """With all there are, and the one that was meant, perhaps."""
    names = list(known)
    near = next(iter(nearest(name, names)), None)
    return Complaint(SAY(key, **{"name": name, **said}, known=names or ["-"]), field=field, nearest=near)


@dataclass
class RuleChecker:
    """What rules may name, and whether they are sound. `conditions` are those in code, by name and version.

    `engine` is called when there is something for it to do. `replaceable` are the rules in whose place another may
    stand.
    """

    engine: Callable[[], ConditionEngine]
    tools: Mapping[str, ToolProfile]
    conditions: Mapping[str, NamedCondition]
    corrections: Corrections
    replaceable: Callable[[], Sequence[str]]

    def index(self, rules: Sequence[EnhancedRule]) -> RuleIndex:
        return self.engine().index(rules, self.tools)

    def complaints(self, rule: EnhancedRule) -> list[Complaint]:
        """What is wrong with what the rule says; whether its examples bear it out is `try_examples`' business."""
        strange = [name for name in rule.decision_types if name not in DECISION_TYPES]
        found = [
            name_unknown("rules.unknown_type", name, DECISION_TYPES, "decision_types") for name in strange
        ]
        if not found:
            found = [*find_flaws(rule, self.tools), *self.engine().problems(rule, self.tools)]
        return [replace(complaint, rule=rule.id) for complaint in found]

    def try_examples(self, rule: EnhancedRule) -> list[Complaint]:
        """Which of the rule's examples do not come out as they say."""
        index = self.index([rule.model_copy(update={"enabled": True})])
        outcomes = [self._try(rule, example, index) for example in rule.examples]
        return [
            Complaint(why, rule.id, f"examples.{place}")
            for place, why in enumerate(outcomes)
            if why is not None
        ]

    def _try(self, rule: EnhancedRule, example: Example, index: RuleIndex) -> Any:
        request = _request(rule, example)
        if request is None:
            return SAY("rules.example_without_type", known=list(rule.for_types or DECISION_TYPES))
        fired = index.find_broken(facts_of(request, example.payload, self.tools))
        finding = fired[0].finding if fired else None
        if finding is not None and finding.error is not None:  # it proves nothing
            return SAY("rules.example_undecided", error=finding.error)
        if finding is not None and not example.violates:
            seen = ", ".join(f"{name} = {value!r}" for name, value in finding.values.items()) or "-"
            return SAY("rules.example_fired", because=finding.because, seen=seen)
        return SAY("rules.example_did_not_fire") if finding is None and example.violates else None

    def find_idle(self, rule: EnhancedRule) -> list[Complaint]:
        """What in the rule would never have an effect."""
        shown = {example.payload.get("tool") for example in rule.examples}
        strange = [name for name in rule.tools if name not in self.tools and name not in shown]
        tools = [name_unknown("rules.unknown_tool", name, self.tools, "tools") for name in strange]
        found = chain(self._find_unused(rule), tools, self._idle_metadata(rule))
        return [replace(complaint, rule=rule.id) for complaint in found]

    def _find_unused(self, rule: EnhancedRule) -> Iterator[Complaint]:
        passive = rule.action in (RuleAction.TERMINATE, RuleAction.LOG_WARNING)
        if passive and rule.requires_human:
            yield Complaint(SAY("correctors.never_asked", action=rule.action), field="requires_human")
        if rule.corrector and (passive or rule.requires_human):
            said = f"action {rule.action}" if passive else "requires_human"
            yield Complaint(SAY("correctors.never_used", why=said), field="corrector")
        elif rule.corrector and not self._mends(rule, rule.corrector):
            yield Complaint(SAY("correctors.mends_nothing"), field="corrector")

    def _idle_metadata(self, rule: EnhancedRule) -> Iterator[Complaint]:
        for name in (name for name in rule.metadata if name not in METADATA):
            unknown = name_unknown("rules.unknown_key", name, METADATA, f"metadata.{name}")
            if unknown.nearest:  # what people note beside is theirs
                yield unknown
        replaced = rule.metadata.get("replaces")
        if replaced is None:
            return
        if rule.tightens:
            yield Complaint(SAY("rules.replaces_nothing", source=rule.source), field="metadata.replaces")
        elif replaced not in (known := self.replaceable()) or replaced == rule.id:
            yield name_unknown("rules.unknown_replaced", str(replaced), known, "metadata.replaces")

    def _mends(self, rule: EnhancedRule, corrector: Corrector) -> bool:
        """Whether it does what it is for on one of the rule's own examples, if there are any to try it on.

        A statement that cannot be rewritten proves nothing: another may.
        """
        index = self.index([rule.model_copy(update={"enabled": True})])
        broken = [_request(rule, example) for example in rule.examples if example.violates]
        for request in filter(None, broken):
            changes = self.corrections.changes(corrector, request.payload, rule.id)
            mended = facts_of(request, patch(request.payload, changes), self.tools)
            if not (index.find_broken(mended) if changes else corrector.kind != "sql"):
                return True
        return not broken


def _request(rule: EnhancedRule, example: Example) -> DecisionRequest | None:
    """None: nobody can tell which decision the example is, or it is none of the rule's."""
    types = [example.decision_type] if example.decision_type else list(rule.for_types)
    if len(types) != 1 or types[0] not in (rule.for_types or DECISION_TYPES):
        return None
    return DecisionRequest("example", types[0], example.payload, example.context, "example", NOON)


def find_flaws(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Complaint]:
    """Of its corrector, for each decision the rule is for; for all decisions, it has to work for one of them."""
    if rule.corrector is None:
        return []
    kinds = [decision_type_for(rule, name, tools) for name in rule.for_types or DECISION_TYPES]
    found = [list(_flaws(rule.corrector, kind)) for kind in kinds]
    if rule.for_types:
        return [*chain.from_iterable(found)]
    return min(
        found, key=lambda each: (bool(each), sum(getattr(flaw.why, "key", "") == NOWHERE for flaw in each))
    )


def _flaws(corrector: Corrector, shape: DecisionType) -> Iterator[Complaint]:
    path = (corrector.path or "").removeprefix("payload.")
    kind = shape.kind_at(path) if path else "map"
    if kind is None:
        yield _nowhere(shape, f"payload.{path}", [f"payload.{name}" for name in shape.payload], "path")
    elif isinstance(corrector, Mask | Drop):
        yield from _name_flaws(corrector, shape, path, kind)
    elif path in shape.fixed:
        yield _refuse_fixed(shape, path, "path")
    else:
        yield from _value_flaws(corrector, shape, path, kind)


def _value_flaws(
    corrector: Clamp | SetValue | RewriteSql, shape: DecisionType, path: str, kind: Kind
) -> Iterator[Complaint]:
    match corrector:
        case Clamp() if kind not in ("number", "integer", "any"):
            yield _refuse("wrong_kind", "path", path, kind, needed=SAY("schema.kind.number"))
        case Clamp(at_least=low, at_most=high) if kind == "integer":
            for name, bound in (("at_least", low), ("at_most", high)):
                if bound is not None and bound != int(bound):
                    yield _refuse("value", name, path, kind, value=bound)
        case SetValue(value=value) if not fits(value, kind, path in shape.optional):
            yield _refuse("value", "value", path, kind, value=value)
        case RewriteSql() if not path.startswith(ARGUMENTS) or kind not in ("string", "any"):
            yield _refuse("no_statement", "path", path, kind)


def _name_flaws(corrector: Mask | Drop, shape: DecisionType, path: str, kind: Kind) -> Iterator[Complaint]:
    """Names may be anywhere below `path`: those of declared fields, or of whatever an open one holds."""
    opening = OPEN if isinstance(corrector, Mask) else OPEN | {"strings"}
    if kind not in opening:
        yield _refuse("wrong_kind", "path", path, kind, needed=SAY("schema.kind.map"))
        return
    inside = [field for field in shape.payload if f"{field}.".startswith(f"{path}." if path else "")]
    opens = any(shape.payload[field] in opening for field in inside) or (not inside and bool(path))
    steps = len(path.split(".")) if path else 0
    for name in corrector.fields:
        called = [field for field in inside if name in field.split(".")[steps:]]
        if not called and not opens:
            known = sorted({step for field in inside for step in field.split(".")})
            yield _nowhere(shape, name, known, "fields")
        for field in called:
            yield from _field_flaws(corrector, shape, field, name)


def _field_flaws(corrector: Mask | Drop, shape: DecisionType, field: str, name: str) -> Iterator[Complaint]:
    """`mask` puts text where a value was, and `drop` leaves the field out: neither goes everywhere."""
    kind = shape.payload[field]
    if field in shape.fixed:
        yield _refuse_fixed(shape, field, "fields")
    elif isinstance(corrector, Mask):
        if kind not in ("string", "any") or field.rsplit(".", maxsplit=1)[-1] != name:
            yield _refuse("value", "fields", field, kind, value=corrector.replacement)
    elif field not in shape.optional:
        known = [f"payload.{each}" for each in sorted(shape.optional)] or ["-"]
        yield _refuse("required", "fields", field, kind, type=shape.name, known=known)


def _nowhere(shape: DecisionType, path: str, known: list[str], part: str) -> Complaint:
    return name_unknown(NOWHERE, path, known, f"corrector.{part}", path=path, type=shape.name)


def _refuse(key: str, part: str, path: str, kind: Kind, **said: Any) -> Complaint:
    why = SAY(f"correctors.{key}", path=f"payload.{path}", kind=SAY(f"schema.kind.{kind}"), **said)
    return Complaint(why, field=f"corrector.{part}")


def _refuse_fixed(shape: DecisionType, path: str, part: str) -> Complaint:
    known = [f"payload.{name}" for name in shape.payload if name not in shape.fixed]
    return _refuse("fixed", part, path, shape.payload[path], known=known)
