"""What a condition is given, and what it finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from pydantic import Field

from moot.shared.domain.messages import Message
from moot.shared.domain.validation import Strict

Kind = Literal["string", "number", "integer", "boolean", "strings", "list", "map", "time", "any"]
"""`number` is written with a point in a condition (`1.0`), `integer` without. `map` and `list` are untyped inside."""
Fields = Mapping[str, Kind]


def _declare(**names: str) -> dict[str, Kind]:
    return {name: cast(Kind, kind) for kind, listed in names.items() for name in listed.split()}


CONTEXT = _declare(
    string="decision_type goal workspace trigger_source market",
    time="now",
    integer="iteration_count token_used consecutive_failures running",
    number="cost execution_time alignment_score",
    strings="open_breakers unasked_acts",
    boolean="is_demo",
)
"""What the framework may know about any decision. `execution_time` is in seconds, `alignment_score` from 0 to 1.

`now` is always there: the moment of the request, which is on the record, unless the framework names another.
`unasked_acts` are words of the action for what its goal does not have: to delete, to send, to pay.
"""

STOCK = _declare(
    boolean="st suspended at_limit_up at_limit_down",
    integer="days_listed t_plus lot_size",
    number="limit_percent change_percent",
)
"""Trading facts of the symbol, as of the decision's moment."""


class DecisionType(NamedTuple):
    """All of the context may be missing, and of the payload what is `optional`: a condition asks `has()` first.

    `fixed` is what a decision is about: whoever acts on it goes by what they asked, so that no corrector changes it.
    """

    name: str
    payload: Fields
    context: Fields = CONTEXT
    optional: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()

    def kind_at(self, path: str) -> Kind | None:
        """Of a place in the payload, by its dotted name; None: there is no such place."""
        if path in self.payload:
            return self.payload[path]
        if any(name.startswith(f"{path}.") for name in self.payload):
            return "map"
        above = next((name for name in self.payload if path.startswith(f"{name}.")), "")
        first = path[len(above) + 1 :].partition(".")[0]
        kind = self.payload.get(above)
        if kind in ("map", "any") or (kind == "list" and first.isdecimal()):
            return "any"
        return "string" if kind == "strings" and path == f"{above}.{first}" and first.isdecimal() else None


KNOWN_TYPES = (
    DecisionType(
        "research_request",
        _declare(
            string="symbol locale trigger_source",
            strings="experts",
            map="options",
            boolean="skip_debate",
            number="max_cost",
        ),
        CONTEXT | STOCK,
        frozenset({"max_cost"}),
        frozenset({"symbol", "locale", "trigger_source"}),
    ),
    DecisionType(
        "plan", _declare(string="title locale", list="steps", integer="step_count", strings="symbols")
    ),
    DecisionType(
        "node",
        _declare(string="node symbol", map="options"),
        CONTEXT | STOCK,
        fixed=frozenset({"node", "symbol"}),
    ),
    DecisionType("tool_call", _declare(string="tool", map="args")),
    DecisionType(
        "verdict",
        _declare(
            string="symbol action stop_loss take_profit entry_strategy time_horizon reasoning engine "
            "departs.action",
            number="position_percent confidence levels.entry levels.stop levels.target grounding.score "
            "departs.confidence",
            strings="risk_warnings",
        ),
        CONTEXT
        | STOCK
        | _declare(
            integer="experts_asked experts_heard", strings="grave_facts grave_grounds", number="unaided_lean"
        ),
        frozenset(
            {
                *("levels.entry", "levels.stop", "levels.target", "grounding.score"),
                *("departs.action", "departs.confidence"),
            }
        ),
        frozenset({"symbol"}),
    ),
)
DECISION_TYPES = {known.name: known for known in KNOWN_TYPES}


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


def moment_in(value: Any) -> datetime | None:
    """A moment with its zone, as an object or as text; None: it is none."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found if isinstance(found, datetime) and found.tzinfo else None


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
    """Of the tool, where somebody registered it."""
    goal: str | None = None

    @property
    def is_unheard_of(self) -> bool:
        """A call of a tool that nobody registered, by an agent that tells neither its tools nor its goal."""
        told = "tools" in self.context or self.context.get("goal")
        return self.tool is not None and self.profile is None and not told


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
