"""What is known about a tool: which of its calls change something, and which arguments decide where it goes."""

from typing import Any

from pydantic import Field

from moot.shared.domain.validation import Strict


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
