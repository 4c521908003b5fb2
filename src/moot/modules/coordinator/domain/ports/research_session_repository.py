"""Where sessions are kept with their nodes and events, who runs them, and what others wrote down meanwhile."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from moot.modules.coordinator.domain.exceptions import SessionNotFound, SessionRunning
from moot.modules.coordinator.domain.model.session import (
    Called,
    IdempotencyKey,
    Judged,
    NodeExecution,
    Past,
    ResearchSession,
    SessionEvent,
    SessionFilter,
    SessionOutcome,
    SessionPage,
)
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.audit import Chain, Verification, WorkspaceVerification
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import Lease, Leases, Loss, Taken
from moot.shared.domain.messages import Locale


def refuse() -> NoReturn:
    raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")


class IResearchSessionRepository(Leases):
    """Every call is its own transaction: parallel nodes share nothing, and what returned is committed.

    All raise `Unavailable` when the store fails; whether research goes on without a row is the caller's decision.
    `events` are committed together with the row they tell about. As it stands here nothing is kept: what is told is
    dropped, what is asked refused. What is not `lasting` has no id to come back with.
    """

    lasting = False

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
        """Store a new session, with the `nodes` it reuses. Raises `KeyTaken` when `key` has a session already.

        `at_leisure`: nobody waits for it yet, so it may wait a moment for others that are stored along.
        """
        if not at_leisure:
            refuse()

    async def update_session(self, session: ResearchSession, *, events: Sequence[SessionEvent] = ()) -> None:
        """Store the state a session has reached, inserting it when its first insert had failed."""

    async def save_node_execution(self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()) -> None:
        return

    def note_event(self, session_id: UUID, event: SessionEvent) -> None:
        """Store an event soon, without anybody waiting for it; one that cannot be stored is logged."""

    async def events_after(self, session_id: UUID, seq: int) -> list[SessionEvent]:
        refuse()

    async def wait_for_events(self, session_id: UUID, seconds: float) -> None:
        """Return when this process has stored more of them, or after that time."""

    async def get_session_by_id(self, session_id: UUID, workspace_id: str | None) -> ResearchSession | None:
        """Of that workspace; None is for the desk's own upkeep, which serves all of them."""
        refuse()

    async def require_session(self, session_id: UUID, workspace_id: str | None) -> ResearchSession:
        """The same; raises `SessionNotFound`."""
        session = await self.get_session_by_id(session_id, workspace_id)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    async def last_judged(self, workspace_id: str, symbol: str, as_of: datetime) -> Judged | None:
        """The verdict of the latest moment before that one, of those that were reached last. No what-if is one."""
        return None

    async def past_session(self, session_id: UUID, workspace_id: str) -> Past:
        """Raises `SessionNotFound`, or `SessionRunning` until it has ended."""
        session = await self.require_session(session_id, workspace_id)
        if not session.ended:
            raise SessionRunning(session_id)
        return Past(session, await self.get_node_executions_by_session(session_id))

    async def get_session_by_key(self, workspace_id: str, key: IdempotencyKey) -> ResearchSession | None:
        """Raises `KeyReused` when it was opened for another question."""
        refuse()

    async def list_sessions(self, wanted: SessionFilter) -> SessionPage:
        refuse()

    async def list_outcomes(self, batch_ids: Sequence[UUID]) -> list[SessionOutcome]:
        """Of the sessions of these batches, in any order."""
        refuse()

    async def get_node_executions_by_session(self, session_id: UUID) -> list[NodeExecution]:
        """In the order in which the nodes started."""
        refuse()

    async def acquire(self, row_id: UUID, owner: str, now: datetime, until: datetime) -> Taken | None:
        refuse()

    async def renew(self, owner: str, rows: Sequence[UUID], until: datetime) -> dict[UUID, Loss]:
        return {}

    async def release(self, owner: str, now: datetime) -> None:
        return

    async def find_left_behind(self, now: datetime, at_most: int, taken: Collection[UUID] = ()) -> list[UUID]:
        """Sessions that somebody has begun, or `taken`, that have not ended and that nobody holds, oldest first."""
        return []

    async def begin(self, session_id: UUID, token: int) -> None:
        """Its owner sets to work: should it die before a node has ended, it may have died of this session."""

    async def pause(self, session_id: UUID, token: int) -> None:
        """Its owner stops for a person to decide something: nobody takes the session up until it is woken.

        All that was noted before is stored by then, or cannot be.
        """

    async def wake(self, session_id: UUID) -> bool:
        """Whoever comes next may go on with it; False when it was not waiting."""
        return False

    async def request_cancel(self, session_id: UUID) -> None:
        """Ask the owner, wherever it is, to cancel the session."""

    async def calls(self, session_id: UUID, to: Called, *, include_text: bool) -> list[dict[str, Any]]:
        """Every call of the session to models, or else to the outside, in the order in which they were made."""
        refuse()

    async def close_calls(self, session_id: UUID) -> None:
        """Say of the calls that were never completed that nobody knows how they ended."""

    async def verify(self, session_id: UUID, workspace_id: str, locale: Locale | None = None) -> Verification:
        """Whether the record is still what was written, in that language or the session's.

        Raises `SessionNotFound` for what the workspace never had, `NotFound` when there is no record.
        """
        refuse()

    async def verify_all(self, workspace_id: str, locale: Locale, *, sign: bool) -> WorkspaceVerification:
        """The same of every session there is or was: one that was removed, or cut off, is named.

        What holds but for a signature is signed when told to.
        """
        refuse()

    async def bind_answer(self, session_id: UUID, moot: str, files: Mapping[str, str]) -> None:
        """Put on the record what that version of Moot hands on as the session's answer: digests by file."""
        refuse()

    async def chain(self, session_id: UUID) -> Chain:
        """The record with the chain that vouches for it, all of one moment; raises `NotFound` when there is none."""
        refuse()
