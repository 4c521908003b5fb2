"""The record of a session as its chain vouches for it, and what an examination of it comes to."""

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

Problem = Literal["changed", "removed", "reordered", "cut_off", "added"]


class Link(BaseModel, frozen=True):
    """One entry of a chain; see `AuditEntryRow`."""

    seq: int
    kind: str
    row_id: UUID
    digest: str
    previous_hash: str
    hash: str


class Chain(BaseModel, frozen=True):
    """All that is needed to examine a session's record, wherever it was kept: links, their end, and the rows.

    `rows` are by table and id, with the columns that links can vouch for, as JSON values: ids as text, moments as
    UTC in ISO form.
    """

    session_id: UUID
    length: int
    head: str
    links: list[Link]
    rows: dict[str, dict[UUID, dict[str, Any]]]


class Break(BaseModel, frozen=True):
    """The first link that does not hold. `kind` and `row_id` name the row it vouches for, where that is known."""

    seq: int
    problem: Problem
    kind: str | None = None
    row_id: UUID | None = None


class Verification(BaseModel, frozen=True):
    """`head` is the hash everything was measured against; `pruned` calls have lost their texts on purpose."""

    session_id: UUID
    intact: bool
    links: int
    head: str
    pruned: int = 0
    first_break: Break | None = None
    explanation: str = ""
