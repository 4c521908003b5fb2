"""The kinds of decision the desk makes, and what rules may say about each: names and types of their fields.

`context` is trusted: the framework fills it in, never the agent whose decision it is.
"""

from typing import Literal, NamedTuple

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
