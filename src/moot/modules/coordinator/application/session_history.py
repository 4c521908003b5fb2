"""Looking back: which sessions there were, and what each node of one did."""

from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.research_orchestration_service import notices
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import Unavailable

__all__ = ["NodeExecution", "SessionDetail", "SessionFilter", "SessionHistory", "SessionPage"]


class SessionDetail(ResearchSession):
    """A session with its nodes, in the order in which they started."""

    nodes: list[NodeExecution]
    notices: list[str]


class SessionHistory:
    def __init__(self, repository: IResearchSessionRepository | None) -> None:
        self._repository = repository

    async def sessions(self, wanted: SessionFilter) -> SessionPage:
        return await self._kept().list_sessions(wanted)

    async def session(self, session_id: UUID, workspace_id: str) -> SessionDetail:
        repository = self._kept()
        session = await repository.get_session_by_id(session_id, workspace_id)
        if session is None:
            raise SessionNotFound(session_id)
        known: dict[str, Any] = session.model_dump()
        nodes = await repository.get_node_executions_by_session(session_id)
        return SessionDetail(**known, nodes=nodes, notices=notices(session.symbol, session.locale))

    def _kept(self) -> IResearchSessionRepository:
        if self._repository is None:
            raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")
        return self._repository
