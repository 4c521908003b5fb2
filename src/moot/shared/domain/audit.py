"""What an examination of a session's record comes to."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

Problem = Literal["changed", "removed", "reordered", "cut_off", "added"]


class Break(BaseModel):
    """The first link that does not hold. `kind` and `row_id` name the row it vouches for, where that is known."""

    model_config = ConfigDict(frozen=True)

    seq: int
    problem: Problem
    kind: str | None = None
    row_id: UUID | None = None


class Verification(BaseModel):
    """`head` is the hash everything was measured against."""

    model_config = ConfigDict(frozen=True)

    session_id: UUID
    intact: bool
    links: int
    head: str
    first_break: Break | None = None
    explanation: str = ""
