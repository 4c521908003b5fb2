"""Conditions in code: what no expression can tell. Rules name them as `call:NAME@VERSION`."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from moot.modules.governance.application.provenance import assess
from moot.modules.governance.domain.conditions import (
    DECISION_TYPES,
    DecisionType,
    Facts,
    Finding,
    Kind,
    ToolProfile,
)
from moot.modules.governance.domain.rules import NamedCondition
from moot.modules.governance.domain.texts import SAY, joined

KINDS: dict[Kind, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: _is_number(value) and math.isfinite(value),
    "integer": lambda value: _is_number(value) and math.isfinite(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "strings": lambda value: isinstance(value, list | tuple) and all(isinstance(each, str) for each in value),
    "list": lambda value: isinstance(value, list | tuple),
    "map": lambda value: isinstance(value, Mapping),
}


def payload_schema(facts: Facts) -> Finding | None:
    """A decision whose type is known has the fields of that type, and of the right kind."""
    known = DECISION_TYPES.get(facts.decision_type)
    if known is None:
        return None
    wrong = [n for n in known.payload if not _fits(facts.values.get(f"payload.{n}"), n, known)]
    if not wrong:
        return None
    kinds = [SAY("schema.field", name=n, kind=SAY(f"schema.kind.{known.payload[n]}")) for n in wrong]
    seen = {f"payload.{name}": facts.values.get(f"payload.{name}") for name in wrong}
    return Finding(because=SAY("schema.wrong", fields=kinds), values=seen)


def unproven_argument(profiles: Mapping[str, ToolProfile]) -> NamedCondition:
    """Side effects that nobody asked for, and sinks that nobody vouches for.

    Where a framework tells neither a goal, nor facts, nor the tools it has, there is nothing to hold a call against.
    """

    def condition(facts: Facts) -> Finding | None:
        context, args = facts.context, facts.payload.get("args")
        told = facts.goal is not None or "tools" in context or "facts" in context
        if facts.tool is None or not told or not isinstance(args, Mapping):
            return None
        found = assess(facts.tool, args, facts.goal, profiles, context.get("tools"), context.get("facts"))
        if found.verdict == "fine":
            return None
        values = {f"payload.args.{each.argument}": each.value for each in found.unproven}
        return Finding(
            because=joined(found.why),
            values={"payload.tool": facts.tool, **values},
            escalate=found.verdict == "doubtful",
        )

    return condition


def _fits(value: Any, name: str, known: DecisionType) -> bool:
    return name in known.optional if value is None else KINDS[known.payload[name]](value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
