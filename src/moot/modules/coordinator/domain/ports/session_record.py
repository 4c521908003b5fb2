"""What others wrote down while a session ran, as the coordinator reads it back."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.messages import Locale


class SessionRecord(Protocol):
    async def llm_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        """Every model call of the session, in the order in which they were made."""

    async def api_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        """Every other call to the outside, in that order too."""

    async def close_calls(self, session_id: UUID) -> None:
        """Say of the calls that were never completed that nobody knows how they ended."""

    async def verify(self, session_id: UUID, locale: Locale) -> Verification:
        """Whether the record is still what was written; raises `NotFound` when there is none."""

    async def chain(self, session_id: UUID) -> Chain:
        """The record with the chain that vouches for it, all of one moment; raises `NotFound` when there is none."""


Examine = Callable[[Chain, Locale], Verification]
"""Whether a chain holds, said in that language. Needs nothing but the chain."""


class CallTexts(BaseModel):
    """Prompts, answers and responses: of how many calls, in how many sessions, how many bytes."""

    model_config = ConfigDict(frozen=True)

    sessions: int = 0
    calls: int = 0
    size: int = 0

    def __add__(self, other: "CallTexts") -> "CallTexts":
        return CallTexts(
            sessions=self.sessions + other.sessions,
            calls=self.calls + other.calls,
            size=self.size + other.size,
        )


class TextStore(Protocol):
    """Where the texts of calls are, and how they go. What has gone leaves the chain over it verifiable."""

    async def sessions_before(self, before: datetime, workspace: str) -> list[UUID]:
        """Those that ended before that moment and have texts left."""

    async def count(self, before: datetime, workspace: str) -> int:
        """The calls that `drop` would empty, those of no session included."""

    async def drop(self, session_id: UUID) -> CallTexts | None:
        """Empty the calls of a session; None, and nothing done, when its record is not intact."""

    async def drop_loose(self, before: datetime, workspace: str) -> CallTexts:
        """Empty some of the calls that belong to no session; nothing when none are left."""
