"""Where sessions and their nodes are kept."""

from abc import ABC, abstractmethod
from uuid import UUID

from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)


class IResearchSessionRepository(ABC):
    """Every call is its own transaction: parallel nodes share nothing, and what returned is committed.

    All raise `Unavailable` when the store fails; whether research goes on without a row is the caller's decision.
    """

    @abstractmethod
    async def save_session(self, session: ResearchSession) -> None: ...

    @abstractmethod
    async def update_session(self, session: ResearchSession) -> None:
        """Store the state a session has reached, inserting it when its first insert had failed."""

    @abstractmethod
    async def save_node_execution(self, node: NodeExecution) -> None: ...

    @abstractmethod
    async def get_session_by_id(self, session_id: UUID, workspace_id: str) -> ResearchSession | None: ...

    @abstractmethod
    async def list_sessions(self, wanted: SessionFilter) -> SessionPage: ...

    @abstractmethod
    async def get_node_executions_by_session(self, session_id: UUID) -> list[NodeExecution]:
        """In the order in which the nodes started."""
