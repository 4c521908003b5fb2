"""What others wrote down while a session ran, as the coordinator reads it back."""

from typing import Any, Protocol
from uuid import UUID

from moot.shared.domain.audit import Verification
from moot.shared.domain.messages import Locale


class SessionRecord(Protocol):
    async def llm_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        """Every model call of the session, in the order in which they were made."""

    async def api_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        """Every other call to the outside, in that order too."""

    async def verify(self, session_id: UUID, locale: Locale) -> Verification:
        """Whether the record is still what was written; raises `NotFound` when there is none."""
