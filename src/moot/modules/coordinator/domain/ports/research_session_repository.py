"""Where sessions and their nodes are kept, and what they tell while they run."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.domain.model.events import SessionEvent
from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)
from moot.shared.domain.leases import Lease


class IdempotencyKey(NamedTuple):
    """A client's name for a request, and the digest of what it asked for under that name."""

    key: str
    digest: str


class KeyedSession(NamedTuple):
    """The session that was opened under a key, and the digest it was opened for."""

    session: ResearchSession
    digest: str


class IResearchSessionRepository(ABC):
    """Every call is its own transaction: parallel nodes share nothing, and what returned is committed.

    All raise `Unavailable` when the store fails; whether research goes on without a row is the caller's decision.
    `events` are committed together with the row they tell about. What is not `lasting` has no id to come back with.
    """

    lasting = True

    @abstractmethod
    async def save_session(
        self,
        session: ResearchSession,
        *,
        nodes: Sequence[NodeExecution] = (),
        events: Sequence[SessionEvent] = (),
        lease: Lease | None = None,
        key: IdempotencyKey | None = None,
        at_leisure: bool = False,
    ) -> None:
        """Store a new session, with the `nodes` it reuses. Raises `Conflict` when `key` has a session already.

        `at_leisure`: nobody waits for it yet, so it may wait a moment for others that are stored along.
        """

    @abstractmethod
    async def update_session(self, session: ResearchSession, *, events: Sequence[SessionEvent] = ()) -> None:
        """Store the state a session has reached, inserting it when its first insert had failed."""

    @abstractmethod
    async def save_node_execution(
        self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()
    ) -> None: ...

    @abstractmethod
    async def settle(self) -> None:
        """Return when everything noted so far is stored, or cannot be."""

    @abstractmethod
    def note_event(self, session_id: UUID, event: SessionEvent) -> None:
        """Store an event soon, without anybody waiting for it; one that cannot be stored is logged."""

    @abstractmethod
    async def events_after(self, session_id: UUID, seq: int) -> list[SessionEvent]: ...

    @abstractmethod
    async def wait_for_events(self, session_id: UUID, seconds: float) -> None:
        """Return when this process has stored more of them, or after that time."""

    @abstractmethod
    async def get_session_by_id(self, session_id: UUID, workspace_id: str | None) -> ResearchSession | None:
        """Of that workspace; None is for the desk's own upkeep, which serves all of them."""

    async def known_session(self, session_id: UUID, workspace_id: str | None) -> ResearchSession:
        """The same; raises `SessionNotFound`."""
        session = await self.get_session_by_id(session_id, workspace_id)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    @abstractmethod
    async def get_session_by_key(self, workspace_id: str, key: str) -> KeyedSession | None: ...

    @abstractmethod
    async def list_sessions(self, wanted: SessionFilter) -> SessionPage: ...

    @abstractmethod
    async def get_node_executions_by_session(self, session_id: UUID) -> list[NodeExecution]:
        """In the order in which the nodes started."""
