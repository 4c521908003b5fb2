"""Correctors that could never mend anything, told when a rule is read: by the shapes of the decisions it is for."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moot.modules.governance.application.facts import KINDS
from moot.modules.governance.domain.conditions import DECISION_TYPES, Kind, ToolProfile
from moot.modules.governance.domain.rules import (
    Clamp,
    Corrector,
    Drop,
    EnhancedRule,
    Mask,
    RewriteSql,
    SetValue,
    arguments_of,
)
from moot.modules.governance.domain.rulesets import Complaint
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.validation import guess

OPEN: frozenset[Kind] = frozenset({"map", "list", "any"})
"""Nobody knows what is inside."""
ARGUMENTS = "args."
NOWHERE = "rules.unknown_path"


class Shape(NamedTuple):
    """The payload of one kind of decision, its fields by their dotted names below it."""

    type: str
    fields: Mapping[str, Kind]
    optional: frozenset[str]
    fixed: frozenset[str]

    def kind_at(self, path: str) -> Kind | None:
        """None: there is no such place."""
        if path in self.fields:
            return self.fields[path]
        if any(name.startswith(f"{path}.") for name in self.fields):
            return "map"
        above = next((name for name in self.fields if path.startswith(f"{name}.")), "")
        first = path[len(above) + 1 :].partition(".")[0]
        kind = self.fields.get(above)
        if kind in ("map", "any") or (kind == "list" and first.isdecimal()):
            return "any"
        return "string" if kind == "strings" and path == f"{above}.{first}" and first.isdecimal() else None

    def inside(self, path: str) -> dict[str, Kind]:
        """The declared fields at `path` and below."""
        return {
            name: kind
            for name, kind in self.fields.items()
            if f"{name}.".startswith(f"{path}." if path else "")
        }

    def called(self, name: str, path: str) -> dict[str, Kind]:
        """The declared fields below `path` that go by this name, or are part of one that does."""
        steps = path.count(".") + 1 if path else 0
        return {field: kind for field, kind in self.inside(path).items() if name in field.split(".")[steps:]}


def find_flaws(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Complaint]:
    """For each decision the rule is for; for all decisions, it has to work for one of them."""
    if rule.corrector is None:
        return []
    shapes = [_shape(name, rule, tools) for name in rule.for_types or DECISION_TYPES]
    found = [list(_flaws(rule.corrector, shape)) for shape in shapes]
    if rule.for_types:
        return [complaint for each in found for complaint in each]
    return min(
        found, key=lambda each: (bool(each), sum(getattr(flaw.why, "key", "") == NOWHERE for flaw in each))
    )


def _shape(name: str, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Shape:
    known, arguments = DECISION_TYPES[name], arguments_of(rule, tools)
    fields = dict(known.payload)
    if arguments is not None:
        del fields["args"]
        fields |= {f"{ARGUMENTS}{argument}": kind for argument, kind in arguments.items()}
    free = {field for field in fields if field.startswith(ARGUMENTS)}
    return Shape(name, fields, known.optional | free, known.fixed)


def _flaws(corrector: Corrector, shape: Shape) -> Iterator[Complaint]:
    path = (corrector.path or "").removeprefix("payload.")
    kind = shape.kind_at(path) if path else "map"
    if kind is None:
        known = [f"payload.{name}" for name in shape.fields]
        why = SAY(NOWHERE, path=corrector.path, type=shape.type, known=known)
        yield Complaint(why, field="corrector.path", nearest=guess(str(corrector.path), known))
    elif isinstance(corrector, Mask | Drop):
        yield from _name_flaws(corrector, shape, path, kind)
    elif path in shape.fixed:
        yield _refuse_fixed(shape, path, "path")
    else:
        yield from _value_flaws(corrector, shape, path, kind)


def _value_flaws(
    corrector: Clamp | SetValue | RewriteSql, shape: Shape, path: str, kind: Kind
) -> Iterator[Complaint]:
    match corrector:
        case Clamp() if kind not in ("number", "integer", "any"):
            yield _refuse("wrong_kind", "path", path, kind, needed=_words("number"))
        case Clamp(at_least=low, at_most=high) if kind == "integer":
            bounds = {"at_least": low, "at_most": high}
            for name in (name for name, bound in bounds.items() if bound is not None and bound != int(bound)):
                yield _refuse("value", name, path, kind, value=bounds[name])
        case SetValue(value=value) if not _fits(value, path, kind, shape):
            yield _refuse("value", "value", path, kind, value=value)
        case RewriteSql() if not path.startswith(ARGUMENTS) or kind not in ("string", "any"):
            yield _refuse("no_statement", "path", path, kind)


def _name_flaws(corrector: Mask | Drop, shape: Shape, path: str, kind: Kind) -> Iterator[Complaint]:
    """Names may be anywhere below `path`: those of declared fields, or of whatever an open one holds."""
    opening = OPEN if isinstance(corrector, Mask) else OPEN | {"strings"}
    if kind not in opening:
        yield _refuse("wrong_kind", "path", path, kind, needed=_words("map"))
        return
    inside = shape.inside(path)
    opens = not opening.isdisjoint(inside.values()) or (not inside and bool(path))
    for name in corrector.fields:
        called = shape.called(name, path)
        if not called and not opens:
            known = sorted({step for field in inside for step in field.split(".")})
            why = SAY(NOWHERE, path=name, type=shape.type, known=known)
            yield Complaint(why, field="corrector.fields", nearest=guess(name, known))
        for field in called:
            yield from _field_flaws(corrector, shape, field, name)


def _field_flaws(corrector: Mask | Drop, shape: Shape, field: str, name: str) -> Iterator[Complaint]:
    """`mask` puts text where a value was, and `drop` leaves the field out: neither goes everywhere."""
    kind = shape.fields[field]
    if field in shape.fixed:
        yield _refuse_fixed(shape, field, "fields")
    elif isinstance(corrector, Mask):
        if kind not in ("string", "any") or field.rsplit(".", maxsplit=1)[-1] != name:
            yield _refuse("value", "fields", field, kind, value=corrector.replacement)
    elif field not in shape.optional:
        known = [f"payload.{each}" for each in sorted(shape.optional)] or ["-"]
        yield _refuse("required", "fields", field, kind, type=shape.type, known=known)


def _refuse(key: str, part: str, path: str, kind: Kind, **said: Any) -> Complaint:
    why = SAY(f"correctors.{key}", path=f"payload.{path}", kind=_words(kind), **said)
    return Complaint(why, field=f"corrector.{part}")


def _refuse_fixed(shape: Shape, path: str, part: str) -> Complaint:
    known = [f"payload.{name}" for name in shape.fields if name not in shape.fixed]
    return _refuse("fixed", part, path, shape.fields[path], known=known)


def _words(kind: Kind) -> Any:
    return SAY(f"schema.kind.{kind}")


def _fits(value: Any, path: str, kind: Kind, shape: Shape) -> bool:
    if value is None:
        return kind == "any" or path in shape.optional
    return kind == "any" or KINDS[kind](value)
