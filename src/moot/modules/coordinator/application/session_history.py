"""Looking back: which sessions there were, and what each node of one did."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.past_result import past_result, past_usage
from moot.modules.coordinator.application.research_run import notices
from moot.modules.coordinator.application.session_events import (
    NodeProgress,
    events_of,
    progress_of,
    told_by,
)
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.domain.model.events import SessionEvent
from moot.modules.coordinator.domain.model.session import (
    MOST_PER_PAGE,
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.ports.session_record import SessionRecord
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.audit import Verification
from moot.shared.domain.errors import Conflict, Unavailable
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
    """Without a repository and a record nothing is kept, and there is nothing to look at."""

    def __init__(
        self,
        repository: IResearchSessionRepository | None,
        record: SessionRecord | None = None,
        currency: str = "",
    ) -> None:
        self._repository, self._record, self._currency = repository, record, currency

    async def sessions(self, wanted: SessionFilter) -> SessionPage:
        return await self._kept().list_sessions(wanted)

    async def session(self, session_id: UUID, workspace_id: str) -> SessionDetail:
        session = await self._known(session_id, workspace_id)
        known: dict[str, Any] = session.model_dump()
        nodes = await self._kept().get_node_executions_by_session(session_id)
        events = await self._kept().events_after(session_id, 0) or told_by(session, nodes)
        return SessionDetail(
            **known,
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
        session = await self._known(session_id, workspace_id)
        async for event in events_of(self._kept(), session, after=after, closing=closing):
            yield event

    async def result(self, session_id: UUID, workspace_id: str) -> ResearchResult:
        """The answer the session gave, from its record; raises `Conflict` while it is still running."""
        session = await self._known(session_id, workspace_id)
        if not session.ended:
            raise Conflict(SAY("sessions.running", session_id=session_id), code="SESSION_RUNNING")
        nodes = await self._kept().get_node_executions_by_session(session_id)
        calls = await self._recorded().llm_calls(session_id, include_text=False)
        return past_result(session, nodes, past_usage(calls, self._currency))

    async def llm_calls(
        self, session_id: UUID, workspace_id: str, *, include_text: bool = True
    ) -> list[dict[str, Any]]:
        await self._known(session_id, workspace_id)
        return await self._recorded().llm_calls(session_id, include_text=include_text)

    async def api_calls(
        self, session_id: UUID, workspace_id: str, *, include_text: bool = True
    ) -> list[dict[str, Any]]:
        await self._known(session_id, workspace_id)
        return await self._recorded().api_calls(session_id, include_text=include_text)

    async def verify(self, session_id: UUID, workspace_id: str, locale: Locale | None = None) -> Verification:
        """Whether the record of the session is still what was written, in the reader's language or its own."""
        session = await self._known(session_id, workspace_id)
        return await self._recorded().verify(session_id, locale or session.locale)

    async def _retries(self, session: ResearchSession) -> list[UUID]:
        """Oldest first; of very many, the newest page."""
        children = SessionFilter(
            workspace_id=session.workspace_id, parent_session_id=session.id, page_size=MOST_PER_PAGE
        )
        return [child.id for child in reversed((await self._kept().list_sessions(children)).items)]

    async def _known(self, session_id: UUID, workspace_id: str) -> ResearchSession:
        session = await self._kept().get_session_by_id(session_id, workspace_id)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    def _recorded(self) -> SessionRecord:
        if self._record is None:
            raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")
        return self._record

    def _kept(self) -> IResearchSessionRepository:
        if self._repository is None:
            raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")
        return self._repository
