"""Reads a session's calls through the model platform's query services, and verifies the chain over all of it."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from moot.modules.coordinator.domain.ports.session_record import SessionRecord
from moot.modules.coordinator.infrastructure.records import RECORD_KINDS
from moot.modules.llm_platform.application.call_logs import (
    ExternalAPICallLogQueryService,
    LLMCallLogQueryService,
)
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import read_chain, verify


class SessionRecordAdapter(SessionRecord):
    def __init__(
        self,
        trail: AuditTrail,
        llm: LLMCallLogQueryService,
        external: ExternalAPICallLogQueryService,
        close_calls: Callable[[UUID], Awaitable[None]],
    ) -> None:
        self._trail, self._llm, self._external = trail, llm, external
        self._close_calls = close_calls
        trail.vouches_for(*RECORD_KINDS.values())

    async def llm_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        calls = await self._llm.get_by_session_id(session_id, include_text=include_text)
        return [call.model_dump(mode="json") for call in calls]

    async def api_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        calls = await self._external.get_by_session_id(session_id, include_text=include_text)
        return [call.model_dump(mode="json") for call in calls]

    async def close_calls(self, session_id: UUID) -> None:
        await self._close_calls(session_id)

    async def verify(self, session_id: UUID, locale: Locale) -> Verification:
        return await verify(self._trail, session_id, locale)

    async def chain(self, session_id: UUID) -> Chain:
        return await read_chain(self._trail, session_id)
