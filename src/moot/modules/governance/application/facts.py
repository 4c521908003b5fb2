"""A request as conditions see it, and conditions in code, for what no expression can tell: `call:NAME@VERSION`."""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from moot.modules.governance.application.arguments import leaves
from moot.modules.governance.application.provenance import assess, check_form
from moot.modules.governance.domain.conditions import (
    DECISION_TYPES,
    DecisionType,
    Facts,
    Finding,
    Kind,
    PastCall,
    ToolProfile,
    moment_in,
)
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import NamedCondition
from moot.modules.governance.domain.texts import SAY, join

Profiles = Callable[[str, Mapping[str, Any]], ToolProfile | None]
"""What is known about the tool of that name, given the context of a call to it."""
Taint = Callable[[Mapping[str, Any], Mapping[str, Any], str], bool]
"""Whether, in this payload and this context, an argument holds what no trusted source vouches for."""


class Alignment(Protocol):
    def check_alignment(self, goal: str, action_description: str) -> float:
        """How well, from 0 to 1, an action described in words serves a goal."""

    def find_unasked_acts(self, goal: str, action_description: str) -> list[str]:
        """Words of acts that the goal does not have."""


PLAIN = frozenset({str, int, float, bool, type(None), list})
"""What most values are, and has no names inside."""
DESCRIBED_IN = ("action_description", "description", "title")


class FactFinder:
    def __init__(self, profiles: Profiles, taint: Taint, alignment: Alignment | None = None) -> None:
        self._profiles, self._taint, self._alignment = profiles, taint, alignment

    def facts(self, request: DecisionRequest, payload: Mapping[str, Any]) -> Facts:
        """Those of `request`, as if it had this payload."""
        context = request.context
        values: dict[str, Any] = {}
        _flatten("payload", payload, values)
        _flatten("context", context, values)
        values.setdefault("context.now", request.timestamp)
        goal = context.get("goal")
        tool = payload.get("tool") if request.decision_type == "tool_call" else None
        values["context.decision_type"] = request.decision_type
        if goal and self._alignment and (action := _describe(request, payload)):
            values.setdefault("context.alignment_score", self._alignment.check_alignment(str(goal), action))
            values["context.unasked_acts"] = self._alignment.find_unasked_acts(str(goal), action)
        return Facts(
            request.decision_type,
            tool if isinstance(tool, str) else None,
            values,
            payload,
            context,
            (moment_in(context["now"]) if "now" in context else None) or request.timestamp,
            tuple(_history(context["history"])) if context.get("history") else (),
            lambda argument: self._taint(payload, context, argument),
            self._profiles(tool, context) if isinstance(tool, str) else None,
            goal if isinstance(goal, str) else None,
        )


def to_align(request: DecisionRequest, payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Goal and action in words, if there are both and nobody has said how well the one serves the other."""
    context = request.context
    goal = context.get("goal")
    if not goal or "alignment_score" in context:
        return None
    action = _describe(request, payload)
    return (str(goal), action) if action else None


def _flatten(prefix: str, tree: Mapping[str, Any], into: dict[str, Any]) -> None:
    """A name with a dot in it is not a way into the tree, so nothing can pass itself off as something else."""
    for name, value in tree.items():
        if isinstance(name, str) and "." not in name:
            dotted = f"{prefix}.{name}"
            into[dotted] = value
            if type(value) in PLAIN:
                continue
            if isinstance(value, Mapping):
                _flatten(dotted, value, into)


def _describe(request: DecisionRequest, payload: Mapping[str, Any]) -> str:
    """What the action is said to be. The arguments of a tool call are not a description of it."""
    said = request.context.get("action_description")
    if isinstance(said, str):
        return said
    texts = (payload.get(name) for name in DESCRIBED_IN)
    return next((text for text in texts if isinstance(text, str)), "") if "tool" not in payload else ""


def _history(calls: Any) -> Iterator[PastCall]:
    for call in calls:
        if isinstance(call, PastCall):
            yield call
        else:
            at = call["at"]
            yield PastCall(call["tool"], at if isinstance(at, datetime) else datetime.fromisoformat(at))


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

    Where a framework tells neither a goal, nor facts, nor the tools it has, only its form is held against a call.
    """

    def condition(facts: Facts) -> Finding | None:
        context, args = facts.context, facts.payload.get("args")
        if facts.tool is None or not isinstance(args, Mapping):
            return None
        told = facts.goal is not None or "tools" in context or "facts" in context
        given = (facts.goal, profiles, context.get("tools"), context.get("facts"))
        found = assess(facts.tool, args, *given) if told else check_form(leaves(args))
        if found.verdict == "fine":
            return None
        values = {f"payload.args.{each.argument}": each.value for each in found.unproven}
        return Finding(
            because=join(found.why),
            values={"payload.tool": facts.tool, **values},
            escalate=found.verdict == "doubtful",
        )

    return condition


def _fits(value: Any, name: str, known: DecisionType) -> bool:
    return name in known.optional if value is None else KINDS[known.payload[name]](value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
