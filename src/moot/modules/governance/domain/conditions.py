"""What a condition is given, and what it finds."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from pydantic import Field

from moot.shared.domain.messages import Message
from moot.shared.domain.validation import Strict

Kind = Literal["string", "number", "integer", "boolean", "strings", "list", "map", "time", "any"]
"""`map` and `list` are untyped inside."""


class FieldType(NamedTuple):
    kind: Kind
    optional: bool = False
    """May be missing; a condition asks `has(payload.stop)` first."""


MAP = FieldType("map")


class DecisionType(NamedTuple):
    payload: dict[str, FieldType]
    context: dict[str, FieldType]


def _fields(*tables: dict[str, str]) -> dict[str, FieldType]:
    kinds = {name: kind for table in tables for name, kind in table.items()}
    return {name: FieldType(cast(Kind, kind.rstrip("?")), kind.endswith("?")) for name, kind in kinds.items()}


_DATA = tomllib.loads(Path(__file__).with_name("decision_types.toml").read_text(encoding="utf-8"))
CONTEXT = _fields(_DATA["context"])
"""What the framework may know about any decision."""
DECISION_TYPES = {
    name: DecisionType(_fields(payload), _fields(*(_DATA[table] for table in _DATA["knows"][name])))
    for name, payload in _DATA["types"].items()
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
