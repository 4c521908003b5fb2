"""A request as conditions see it: every value under its dotted name, and what can be found out about the call."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from moot.modules.governance.domain.conditions import Facts, PastCall, ToolProfile
from moot.modules.governance.domain.decisions import DecisionRequest

Profiles = Callable[[str, Mapping[str, Any]], ToolProfile | None]
"""What is known about the tool of that name, given the context of a call to it."""
Taint = Callable[[Mapping[str, Any], Mapping[str, Any], str], bool]
"""Whether, in this payload and this context, an argument holds what no trusted source vouches for."""
Alignment = Callable[[str, str], float]
"""How well, from 0 to 1, an action described in words serves a goal."""

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
        goal = context.get("goal")
        tool = payload.get("tool") if request.decision_type == "tool_call" else None
        if goal and self._alignment and (unmeasured := to_align(request, payload)):
            values["context.alignment_score"] = self._alignment(*unmeasured)
        return Facts(
            request.decision_type,
            tool if isinstance(tool, str) else None,
            values,
            payload,
            context,
            request.timestamp,
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
    action = _described(request, payload)
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


def _described(request: DecisionRequest, payload: Mapping[str, Any]) -> str:
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
