"""The record of a session as its chain vouches for it, and what an examination of it comes to."""

import hashlib
import hmac
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

OfARecord = Literal["changed", "removed", "reordered", "cut_off", "added", "unreadable"]
InTheLedger = Literal["gone", "unlisted", "other_end", "ledger", "unsigned", "forged"]
Problem = OfARecord | InTheLedger
"""Of a record by itself, and of how it stands in its workspace's ledger, and signed."""


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
    UTC in ISO form; a row that cannot be read is empty. `signature` is of the head, where the desk has a key.
    """

    session_id: UUID
    length: int
    head: str
    signature: str | None = None
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


class WorkspaceVerification(BaseModel, frozen=True):
    """All sessions of a workspace, and the ledger that lists them, whose `head` this is."""

    intact: bool
    sessions: int
    head: str
    broken: list[Verification]
    explanation: str


class Seal:
    """Signs heads with a secret that the database does not hold: who rewrites a record there cannot sign it."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def sign(self, chain: UUID, length: int, head: str) -> str:
        return hmac.new(self._key, f"{chain}|{length}|{head}".encode(), hashlib.sha256).hexdigest()

    def holds(self, chain: UUID, length: int, head: str, signature: str | None) -> bool:
        return signature is not None and hmac.compare_digest(self.sign(chain, length, head), signature)
