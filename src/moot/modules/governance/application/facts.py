"""A request as conditions see it, and conditions in code, for what no expression can tell: `call:NAME@VERSION`."""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, TypeAdapter

from moot.modules.governance.application.goal_alignment_checker import GoalAlignmentChecker, compare, describe
from moot.modules.governance.application.provenance import assess, check_form, tainted
from moot.modules.governance.application.tool_knowledge import leaves
from moot.modules.governance.domain.conditions import (
    DECISION_TYPES,
    Facts,
    Finding,
    Kind,
    PastCall,
    ToolProfile,
    moment_in,
)
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.texts import SAY, join
from moot.shared.domain.validation import validate

PLAIN = frozenset({str, int, float, bool, type(None), list})
"""What most values are, and has no names inside."""


MOMENT: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)


class CallBefore(BaseModel):
    tool: str
    at: AwareDatetime


class ToldInContext(BaseModel):
    """What in a context is read, and not only compared."""

    tools: list[dict[str, Any]] | None = None
    history: list[CallBefore] | None = None


class _Asked(BaseModel):
    context: ToldInContext


def check_context(context: dict[str, Any]) -> dict[str, Any]:
    """Raises `InvalidInput` for what could not be read when it is needed."""
    validate(_Asked, {"context": context})
    return context


def facts_of(request: DecisionRequest, payload: Mapping[str, Any], tools: Mapping[str, ToolProfile]) -> Facts:
    """Those of `request`, as if it had this payload. `tools` are those somebody registered; it may tell of more."""
    context = request.context
    values: dict[str, Any] = {}
    _flatten("payload", payload, values)
    _flatten("context", context, values)
    values.setdefault("context.now", request.timestamp)
    goal = context.get("goal")
    named = payload.get("tool") if request.decision_type == "tool_call" else None
    tool = named if isinstance(named, str) else None
    values["context.decision_type"] = request.decision_type
    if goal and (action := describe(request, payload)):
        score = GoalAlignmentChecker().check_alignment(str(goal), action)
        values.setdefault("context.alignment_score", score)
        values["context.unasked_acts"] = list(compare(str(goal), action).hazards)
    return Facts(
        request.decision_type,
        tool,
        values,
        payload,
        context,
        (moment_in(context["now"]) if "now" in context else None) or request.timestamp,
        tuple(_history(context["history"])) if context.get("history") else (),
        lambda argument: tainted(payload.get("args"), argument, goal, context.get("facts")),
        tools.get(tool) if tool is not None else None,
        goal if isinstance(goal, str) else None,
    )


def _flatten(prefix: str, tree: Mapping[str, Any], into: dict[str, Any]) -> None:
    """A name with a dot in it is not a way into the tree, so nothing can pass itself off as something else."""
    for name, value in tree.items():
        if isinstance(name, str) and "." not in name:
            dotted = f"{prefix}.{name}"
            into[dotted] = value
            if type(value) not in PLAIN and isinstance(value, Mapping):
                _flatten(dotted, value, into)


def _history(calls: Any) -> Iterator[PastCall]:
    for call in calls:
        if isinstance(call, PastCall):
            yield call
        else:
            yield PastCall(call["tool"], MOMENT.validate_python(call["at"]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


KINDS: dict[Kind, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "strings": lambda value: isinstance(value, list | tuple) and all(isinstance(each, str) for each in value),
    "list": lambda value: isinstance(value, list | tuple),
    "map": lambda value: isinstance(value, Mapping),
}


def fits(value: Any, kind: Kind, optional: bool) -> bool:
    """Whether a field of that kind may hold it; nothing, where it is optional."""
    return kind == "any" or (optional if value is None else KINDS[kind](value))


def payload_schema(facts: Facts) -> Finding | None:
    """A decision whose type is known has the fields of that type, and of the right kind."""
    known = DECISION_TYPES.get(facts.decision_type)
    if known is None:
        return None
    given = {name: facts.values.get(f"payload.{name}") for name in known.payload}
    wrong = [n for n, value in given.items() if not fits(value, known.payload[n], n in known.optional)]
    if not wrong:
        return None
    kinds = [SAY("schema.field", name=n, kind=SAY(f"schema.kind.{known.payload[n]}")) for n in wrong]
    return Finding(
        because=SAY("schema.wrong", fields=kinds), values={f"payload.{n}": given[n] for n in wrong}
    )


def unproven_argument(facts: Facts) -> Finding | None:
    """Side effects that nobody asked for, and sinks that nobody vouches for.

    Where a framework tells neither a goal, nor facts, nor the tools it has, only its form is held against a call.
    """
    context, args = facts.context, facts.payload.get("args")
    if facts.tool is None or not isinstance(args, Mapping):
        return None
    told = facts.goal is not None or "tools" in context or "facts" in context
    given = (facts.goal, facts.profile, context.get("tools"), context.get("facts"))
    found = assess(facts.tool, args, *given) if told else check_form(leaves(args))
    if found.verdict == "fine":
        return None
    values = {f"payload.args.{each.argument}": each.value for each in found.unproven}
    return Finding(
        because=join(found.why),
        values={"payload.tool": facts.tool, **values},
        escalate=found.verdict == "doubtful",
    )
