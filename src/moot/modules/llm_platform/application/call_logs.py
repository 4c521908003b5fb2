"""The calls of a session, for whoever looks back: history, export, audit."""

from uuid import UUID

from moot.modules.llm_platform.domain.call_record import CallLogItem, CallLogReader, ExternalCallItem

__all__ = ["CallLogItem", "ExternalAPICallLogQueryService", "ExternalCallItem", "LLMCallLogQueryService"]


class LLMCallLogQueryService:
    def __init__(self, reader: CallLogReader) -> None:
        self._reader = reader

    async def get_by_session_id(self, session_id: UUID, *, include_text: bool = True) -> list[CallLogItem]:
        """In the order in which they were made. Nothing for a session nobody knows."""
        return await self._reader.model_calls(session_id, include_text=include_text)


class ExternalAPICallLogQueryService:
    def __init__(self, reader: CallLogReader) -> None:
        self._reader = reader

    async def get_by_session_id(
        self, session_id: UUID, *, include_text: bool = True
    ) -> list[ExternalCallItem]:
        """In the order in which they were made. Nothing for a session nobody knows."""
        return await self._reader.external_calls(session_id, include_text=include_text)
