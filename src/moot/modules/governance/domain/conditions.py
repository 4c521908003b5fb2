"""What a condition is given, and what it finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pydantic import Field

from moot.shared.domain.messages import Message
from moot.shared.domain.validation import Strict

Kind = Literal["string", "number", "integer", "boolean", "strings", "list", "map", "time", "any"]
"""`number` is written with a point in a condition (`1.0`), `integer` without. `map` and `list` are untyped inside."""


class FieldType(NamedTuple):
    kind: Kind
    optional: bool = False
    """May be missing; a condition asks `has(payload.stop)` first."""


def optional(kind: Kind) -> FieldType:
    return FieldType(kind, optional=True)


STRING, NUMBER, INTEGER, BOOLEAN = (
    FieldType("string"),
    FieldType("number"),
    FieldType("integer"),
    FieldType("boolean"),
)
STRINGS, LIST, MAP = FieldType("strings"), FieldType("list"), FieldType("map")

CONTEXT: dict[str, FieldType] = {
    "goal": optional("string"),
    "iteration_count": optional("integer"),
    "token_used": optional("integer"),
    "cost": optional("number"),
    "execution_time": optional("number"),
    "consecutive_failures": optional("integer"),
    "open_breakers": optional("strings"),
    "alignment_score": optional("number"),
    "running": optional("integer"),
    "workspace": optional("string"),
    "trigger_source": optional("string"),
    "market": optional("string"),
    "is_demo": optional("boolean"),
}
"""What the framework may know about any decision. `execution_time` is in seconds, `alignment_score` from 0 to 1."""

STOCK: dict[str, FieldType] = {
    "st": optional("boolean"),
    "suspended": optional("boolean"),
    "days_listed": optional("integer"),
    "limit_percent": optional("number"),
    "change_percent": optional("number"),
    "at_limit_up": optional("boolean"),
    "at_limit_down": optional("boolean"),
    "t_plus": optional("integer"),
    "lot_size": optional("integer"),
}
"""Trading facts of the symbol, as of the decision's moment."""


class DecisionType(NamedTuple):
    payload: dict[str, FieldType]
    context: dict[str, FieldType]


DECISION_TYPES: dict[str, DecisionType] = {
    "research_request": DecisionType(
        {
            "symbol": STRING,
            "experts": STRINGS,
            "options": MAP,
            "skip_debate": BOOLEAN,
            "max_cost": optional("number"),
            "locale": STRING,
            "trigger_source": STRING,
        },
        CONTEXT | STOCK,
    ),
    "plan": DecisionType(
        {"title": STRING, "locale": STRING, "steps": LIST, "step_count": INTEGER, "symbols": STRINGS}, CONTEXT
    ),
    "node": DecisionType({"node": STRING, "symbol": STRING, "options": MAP}, CONTEXT | STOCK),
    "tool_call": DecisionType({"tool": STRING, "args": MAP}, CONTEXT),
    "verdict": DecisionType(
        {
            "symbol": STRING,
            "action": STRING,
            "position_percent": NUMBER,
            "confidence": NUMBER,
            "stop_loss": STRING,
            "take_profit": STRING,
            "entry_strategy": STRING,
            "time_horizon": STRING,
            "risk_warnings": STRINGS,
            "reasoning": STRING,
            "engine": STRING,
            "levels.entry": optional("number"),
            "levels.stop": optional("number"),
            "levels.target": optional("number"),
            "grounding.score": optional("number"),
        },
        CONTEXT | STOCK | {"experts_asked": optional("integer"), "experts_heard": optional("integer")},
    ),
}


class ToolProfile(Strict):
    """`parameters` is the JSON schema of its arguments. None of the rest: nobody said, so it is told from the schema.

    A sink is an argument that decides who receives something, what is changed or destroyed, or what is paid.
    """

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    side_effects: bool | None = None
    sinks: tuple[str, ...] | None = None
    sql: str | None = None
    """The argument that is a SQL statement."""


class PastCall(NamedTuple):
    """A tool call that was allowed earlier in the same workflow."""

    tool: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """One decision, as conditions see it: `values` by dotted name (`payload.args.limit`, `context.token_used`).

    Nothing of the payload is ever found under a name that begins with `context.`. `payload` and `context` are the
    values of the request as they came.
    """

    decision_type: str
    tool: str | None
    values: Mapping[str, Any]
    payload: Mapping[str, Any]
    context: Mapping[str, Any]
    now: datetime
    history: Sequence[PastCall] = ()
    tainted: Callable[[str], bool] = field(default=lambda _argument: True)
    """Whether an argument of the tool call holds what no trusted source vouches for."""
    profile: ToolProfile | None = None
    goal: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a condition holds: the part of it that does, with the values it saw. Sentences wait for their reader.

    `error`: it could not be decided, which counts as broken. `suggestion` and `patch` (JSON Patch operations on the
    payload) come from conditions in code that know better than their rule.
    """

    because: str | Message
    values: Mapping[str, Any] = field(default_factory=dict)
    error: str | Message | None = None
    suggestion: str | Message | None = None
    patch: tuple[Mapping[str, Any], ...] | None = None
    escalate: bool = False


class Problem(NamedTuple):
    """What is wrong with a condition, and where; `suggestion` is the nearest thing that would be right."""

    line: int
    column: int
    message: Message
    suggestion: Message | None = None
