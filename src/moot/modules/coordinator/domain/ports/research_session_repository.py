"""Where sessions are kept with their nodes and events, who runs them, and what others wrote down meanwhile."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn, Protocol
from uuid import UUID

from pydantic import BaseModel

from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionEvent,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import Lease, Leases, Renewal
from moot.shared.domain.messages import Locale


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


class ISessionLeases(Leases):
    """The leases of sessions that have not ended. All raise `Unavailable` when the store fails."""

    @abstractmethod
    async def left_behind(self, now: datetime, at_most: int) -> list[UUID]:
        """Sessions that have not ended and that nobody holds, oldest first."""

    @abstractmethod
    async def pause(self, session_id: UUID, token: int) -> None:
        """Its owner stops for a person to decide something: nobody takes the session up until it is woken."""

    @abstractmethod
    async def wake(self, session_id: UUID) -> bool:
        """Whoever comes next may go on with it; False when it was not waiting."""

    @abstractmethod
    async def request_cancel(self, session_id: UUID) -> None:
        """Ask the owner, wherever it is, to cancel the session."""


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


class CallTexts(BaseModel, frozen=True):
    """Prompts, answers and responses: of how many calls, in how many sessions, how many bytes."""

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


async def refuse(*_asked: Any, **_more: Any) -> NoReturn:
    raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")


class NothingKept(IResearchSessionRepository, ISessionLeases):
    lasting = False

    async def save_session(self, session: ResearchSession, *, at_leisure: bool = False, **_: Any) -> None:
        if not at_leisure:
            await refuse()

    async def update_session(self, session: ResearchSession, *, events: Sequence[SessionEvent] = ()) -> None:
        return None

    async def save_node_execution(self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()) -> None:
        return None

    async def settle(self) -> None:
        return None

    def note_event(self, session_id: UUID, event: SessionEvent) -> None:
        return None

    events_after = wait_for_events = refuse
    get_session_by_id = get_session_by_key = list_sessions = get_node_executions_by_session = refuse
    acquire = request_cancel = refuse

    async def renew(self, owner: str, rows: Sequence[UUID], until: datetime) -> Renewal:
        return Renewal(set(), set())

    async def release(self, owner: str, now: datetime) -> None:
        return None

    async def left_behind(self, now: datetime, at_most: int) -> list[UUID]:
        return []

    async def pause(self, session_id: UUID, token: int) -> None:
        return None

    async def wake(self, session_id: UUID) -> bool:
        return False


class NoRecord:
    """What others would have written down while a session ran: stands for `SessionRecord` and `TextStore`."""

    llm_calls = api_calls = close_calls = verify = chain = staticmethod(refuse)
    sessions_before = count = drop = drop_loose = staticmethod(refuse)


NOTHING_KEPT = NothingKept()
NO_RECORD = NoRecord()
