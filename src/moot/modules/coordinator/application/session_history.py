"""Looking back: which sessions there were, and what each node of one did."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.results import notices, past_result
from moot.modules.coordinator.application.session_events import (
    NodeProgress,
    events_of,
    progress_of,
)
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.exceptions import SessionRunning
from moot.modules.coordinator.domain.model.events import SessionEvent
from moot.modules.coordinator.domain.model.session import (
    MOST_PER_PAGE,
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.nothing_kept import NO_RECORD
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.ports.session_record import SessionRecord
from moot.shared.domain.audit import Verification
from moot.shared.domain.messages import Locale

__all__ = [
    "NodeExecution",
    "ResearchSession",
    "SessionDetail",
    "SessionEvent",
    "SessionFilter",
    "SessionHistory",
    "SessionPage",
]


class SessionDetail(ResearchSession):
    """A session with its nodes, in the order in which they started; `retries` are the sessions that retried it."""

    nodes: list[NodeExecution]
    progress: list[NodeProgress]
    retries: list[UUID]
    notices: list[str]


class SessionHistory:
    def __init__(
        self, repository: IResearchSessionRepository, record: SessionRecord = NO_RECORD, currency: str = ""
    ) -> None:
        self._repository, self._record, self._currency = repository, record, currency

    async def sessions(self, wanted: SessionFilter) -> SessionPage:
        return await self._repository.list_sessions(wanted)

    async def session(self, session_id: UUID, workspace_id: str) -> SessionDetail:
        session = await self._repository.known_session(session_id, workspace_id)
        nodes = await self._repository.get_node_executions_by_session(session_id)
        events = await self._repository.events_after(session_id, 0)
        return SessionDetail(
            **session.model_dump(),
            nodes=nodes,
            progress=progress_of(session, events),
            retries=await self._retries(session),
            notices=notices(session.symbol, session.locale),
        )

    async def events(
        self,
        session_id: UUID,
        workspace_id: str,
        *,
        after: int = 0,
        closing: Callable[[], bool] = lambda: False,
    ) -> AsyncIterator[SessionEvent | None]:
        """What the session tells, after that event; nothing (None) now and then while there is nothing to tell."""
        session = await self._repository.known_session(session_id, workspace_id)
        async for event in events_of(self._repository, session, after=after, closing=closing):
            yield event

    async def result(self, session_id: UUID, workspace_id: str) -> ResearchResult:
        """The answer the session gave, from its record; raises `SessionRunning` until it has ended."""
        session = await self._repository.known_session(session_id, workspace_id)
        if not session.ended:
            raise SessionRunning(session_id)
        nodes = await self._repository.get_node_executions_by_session(session_id)
        calls = await self._record.llm_calls(session_id, include_text=False)
        return past_result(session, nodes, calls, self._currency)

    async def llm_calls(
        self, session_id: UUID, workspace_id: str, *, include_text: bool = True
    ) -> list[dict[str, Any]]:
        await self._repository.known_session(session_id, workspace_id)
        return await self._record.llm_calls(session_id, include_text=include_text)

    async def api_calls(
        self, session_id: UUID, workspace_id: str, *, include_text: bool = True
    ) -> list[dict[str, Any]]:
        await self._repository.known_session(session_id, workspace_id)
        return await self._record.api_calls(session_id, include_text=include_text)

    async def verify(self, session_id: UUID, workspace_id: str, locale: Locale | None = None) -> Verification:
        """Whether the record of the session is still what was written, in the reader's language or its own."""
        session = await self._repository.known_session(session_id, workspace_id)
        return await self._record.verify(session_id, locale or session.locale)

    async def _retries(self, session: ResearchSession) -> list[UUID]:
        """Oldest first; of very many, the newest page."""
        children = SessionFilter(
            workspace_id=session.workspace_id, parent_session_id=session.id, page_size=MOST_PER_PAGE
        )
        return [child.id for child in reversed((await self._repository.list_sessions(children)).items)]
