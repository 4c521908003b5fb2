"""A run: one session under way in this process, what it tells on the way, and how it is stopped.

And the journal, what is stored of the sessions that run here: opening, end, and whose they are.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID, uuid4

import structlog

from moot.modules.coordinator.application.results import copy_reused, request_of, tally_of
from moot.modules.coordinator.application.session_queue import BATCH
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult, view_of
from moot.modules.coordinator.domain.exceptions import (
    ApprovalNeeded,
    SessionCancelled,
    SessionInterrupted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
)
from moot.modules.coordinator.domain.model.session import (
    EventType,
    IdempotencyKey,
    NodeExecution,
    ResearchSession,
    SessionEvent,
    SessionStatus,
    Told,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.domain.leases import LeaseHolder, Taken, passed
from moot.shared.infrastructure.execution_context import ExecutionContext, LeaseLost, Tally
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)

Watch = Callable[[SessionEvent], None]
Reason = Literal["cancelled", "interrupted", "taken over"]
STOPPED: dict[Reason, type[SessionCancelled | SessionInterrupted | SessionTakenOver]] = {
    "cancelled": SessionCancelled,
    "interrupted": SessionInterrupted,
    "taken over": SessionTakenOver,
}

STORE_AGAIN = (1, 2, 4, 8, *[15] * 240)
"""Seconds between attempts to store what a database that is gone did not take: for an hour."""


@dataclass(eq=False)
class Run:
    """Of a session that is opened here, or was by a process that died: then `recorded` is what its nodes did there.

    It may run while it is being stored: what follows is stored after it. `told` counts its events.
    """

    session_id: UUID
    repository: IResearchSessionRepository
    clock: Clock
    watch: Watch | None = None
    session: ResearchSession = field(init=False)
    request: ResearchRequest = field(init=False)
    lease_token: int | None = None
    recorded: Mapping[str, NodeExecution] | None = None
    tally: Tally = field(default_factory=Tally)
    told: int = 0
    storing: asyncio.Task[bool] | None = None
    task: asyncio.Task[ResearchResult] | None = None
    stopped: Reason | None = None
    on_begun: Callable[[], None] | None = None
    on_progress: Callable[[], None] | None = None

    def context(self) -> ExecutionContext:
        session = self.session
        return ExecutionContext(
            session_id=str(session.id) if self.repository.lasting else "",
            as_of=session.as_of,
            locale=session.locale,
            workspace=session.workspace_id,
            experts=tuple(self.request.panel),
            max_cost=session.max_cost,
            batch_id=str(session.batch_id or ""),
            batch_max_cost=session.batch_max_cost,
            caller=session.requested_by or "",
            priority="batch" if session.trigger_source == BATCH else "interactive",
            began_at=session.created_at,
            answers="live" if self.recorded is None else "resume",
            analyst="rubric" if session.contest else None,
            lease_token=self.lease_token,
            asked=session,
            run=self,
            tally=self.tally,
        )

    def note(self, kind: EventType, **data: Any) -> None:
        """Tell something that is not part of a row, and have it stored soon."""
        if kind == "node_started" and self.on_begun is not None:
            self.on_begun()
        for event in self.events([(kind, data)]):
            self.repository.note_event(self.session_id, event)
            self.tell([event])

    def events(self, told: Iterable[Told]) -> list[SessionEvent]:
        """The next ones, for somebody who stores and tells them; none where nobody would hear them."""
        if self.watch is None and not self.repository.lasting:
            return []
        now, first = self.clock.now(), self.told + 1
        events = [
            SessionEvent(seq=n, type=kind, at=now, data=data) for n, (kind, data) in enumerate(told, first)
        ]
        self.told += len(events)
        return events

    def tell(self, events: Iterable[SessionEvent]) -> None:
        for event in events:
            if event.type in ("node_finished", "node_failed") and self.on_progress is not None:
                self.on_progress()
            if self.watch is not None:
                show(self.watch, event)

    async def wait_until_stored(self) -> None:
        """Return when the session is, or cannot be, stored."""
        if self.storing is not None:
            await asyncio.wait([self.storing])

    async def result(self) -> ResearchResult:
        """What the run comes to; who is cancelled while waiting for it cancels it."""
        assert self.task is not None
        try:
            return await self.task
        except asyncio.CancelledError:
            if self.stopped is None:
                raise
            raise STOPPED[self.stopped](self.session_id) from None
        except LeaseLost:
            raise SessionTakenOver(self.session_id) from None
        except SessionStopped as e:
            raise e.error from None
        except ApprovalNeeded as e:
            raise SessionWaiting(self.session_id, e) from None

    def stop(self, reason: Reason) -> None:
        if self.stopped is None and self.task is not None and not self.task.done():
            self.stopped = reason
            self.task.cancel()


def show(watch: Watch, event: SessionEvent) -> None:
    try:
        watch(event)
    except Exception:  # bulkhead: whoever watches must not change what is watched
        logger.warning("watcher failed", event_type=event.type, exc_info=True)


class Journal:
    """A store that fails is logged and counted on the session; it never stops research.

    The sessions in `unstored` have ended, and nobody should take them for unfinished until that is stored.
    """

    def __init__(self, repository: IResearchSessionRepository, clock: Clock, held: LeaseHolder) -> None:
        self.repository, self.clock, self.held = repository, clock, held
        self.unstored: dict[UUID, asyncio.Task[None]] = {}
        self._closing = asyncio.Event()

    async def open(
        self,
        request: ResearchRequest,
        *,
        status: SessionStatus = "running",
        key: IdempotencyKey | None = None,
        watch: Watch | None = None,
    ) -> Run:
        """A new session, stored together with the results it reuses; one that is `running` runs here, and need not
        be stored yet when this returns. Raises `KeyTaken` when `key` has a session already."""
        now, lease = self.clock.now(), self.held.first() if status == "running" else None
        run = Run(uuid4(), self.repository, self.clock, watch, lease_token=lease.token if lease else None)
        run.request = request
        run.session = ResearchSession(
            id=run.session_id, status=status, created_at=now, **request.pick_asked()
        )
        nodes = list(copy_reused(request, run.session_id, now))
        told = run.events(
            [("session", tell_start(run.session)), *(e for node in nodes for e in tell_node(node))]
        )
        at_leisure = lease is not None and key is None
        saving = self.repository.save_session(
            run.session, nodes=nodes, events=told, lease=lease, key=key, at_leisure=at_leisure
        )
        if at_leisure:
            run.storing = asyncio.create_task(_best_effort(saving, run))
        else:
            await saving
        run.tell(told)
        return run

    async def reopen(self, run: Run, taken: Taken) -> None:
        """Make `run` that of its session as it was found; calls that nobody has completed are closed.

        The first owner of one that reuses nothing finds nothing there, and runs it like any other.
        """
        session, nodes, told = taken.found
        calls: list[dict[str, Any]] = []
        if nodes or taken.lease.token > 1:
            await self.repository.close_calls(session.id)
            calls = await self.repository.calls(session.id, "models", include_text=False)
            run.recorded, run.tally = {node.node_type: node for node in nodes}, tally_of(calls)
        run.session = session.model_copy(update={"status": "running"})
        run.request = request_of(session, nodes)
        run.lease_token = taken.lease.token
        run.told = told[-1].seq if told else 0
        run.tell(told)
        run.note("session", **tell_start(run.session, resumed=bool(nodes or calls)))

    async def keep(self, run: Run, work: Coroutine[Any, Any, ResearchResult]) -> ResearchResult:
        """What `work` comes to, done in the context of the run. However it ends is stored."""
        with run.context().active():
            try:
                result = await work
            except SessionStopped as e:
                await self._close(run, _outcome_of_error(run.session, e.error))
                raise
            except ApprovalNeeded:  # it is left as it stands, for a person to decide
                await run.wait_until_stored()
                self.held.let_go(run.session_id)
                if run.lease_token is not None:
                    await self.repository.pause(run.session_id, run.lease_token)
                raise
            except (Exception, asyncio.CancelledError) as e:
                await run.wait_until_stored()
                if run.stopped not in ("interrupted", "taken over"):
                    await self._close(run, _outcome_of_error(run.session, e))
                raise
            outcome = {
                "status": result.overall_status,
                "verdict_status": result.verdict_status,
                "verdict_action": result.verdict["action"] if result.verdict else None,
                "reason": result.reason,
            }
            await self._close(run, outcome)
            return result

    async def end(self, run: Run, error: AppError) -> None:
        """Close a session that will not be run."""
        with run.context().active():
            await self._close(run, _outcome_of_error(run.session, error))

    async def close(self, *, release: bool) -> None:
        self._closing.set()
        if self.unstored:
            await asyncio.wait(self.unstored.values())
        await self.held.close(release=release)

    async def _close(self, run: Run, outcome: dict[str, Any]) -> None:
        await run.wait_until_stored()
        now = self.clock.now()
        took = round((now - run.session.created_at).total_seconds() * 1000)
        outcome |= {"completed_at": now, "duration_ms": took, "audit_gaps": run.tally.audit_gaps}
        closed = run.session.model_copy(update=outcome)
        known = closed.model_dump(include={"status", "verdict_status", "verdict_action", "reason"})
        told = run.events([("done", known)])
        if not await _best_effort(self.repository.update_session(closed, events=told), run):
            task = asyncio.create_task(self._store_later(closed, told))
            self.unstored[closed.id] = task
            task.add_done_callback(lambda _: self._give_up(closed.id))
        run.tell(told)

    async def _store_later(self, closed: ResearchSession, told: list[SessionEvent]) -> None:
        for pause in STORE_AGAIN:
            if await passed(self._closing, pause):
                break
            try:
                await self.repository.update_session(closed, events=told)
                break
            except AppError as e:
                logger.warning("end of session not stored yet", session_id=str(closed.id), error=str(e))
            except LeaseLost:
                break

    def _give_up(self, session_id: UUID) -> None:
        del self.unstored[session_id]
        self.held.let_go(session_id)


async def _best_effort(write: Awaitable[None], run: Run) -> bool:
    try:
        await write
    except Exception:  # bulkhead: the record must never stop the research
        run.tally.audit_gaps += 1
        session = run.session
        logger.error("session not stored", session_id=str(session.id), symbol=session.symbol, exc_info=True)
        return False
    return True


def _outcome_of_error(session: ResearchSession, error: BaseException) -> dict[str, Any]:
    if isinstance(error, asyncio.CancelledError | SessionCancelled):
        said, status = SAY("no_verdict.cancelled"), "cancelled"
    else:
        why = error_text(error, session.locale) if isinstance(error, Exception) else repr(error)
        said, status = SAY("no_verdict.crashed", why=why), "failed"
    return {"status": status, "verdict_status": "failed", "reason": said.in_locale(session.locale)}


OWN_EVENTS: Mapping[str, tuple[EventType, tuple[str, ...]]] = {
    "debate": ("debate", ("direction", "confidence")),
    "judge": ("verdict", ("action", "position_percent", "confidence")),
}
"""What these two come to is told by itself too: as what, and what of it."""


def tell_start(session: ResearchSession, *, resumed: bool = False) -> dict[str, Any]:
    told = {"status", "symbol", "locale", "skip_debate", "experts"}
    return session.model_dump(include=told, by_alias=False) | {"resumed": resumed}


def tell_node(node: NodeExecution) -> Iterator[Told]:
    """How a node ended, and which way it points."""
    known = {"node": node.node_type, "duration_ms": node.duration_ms}
    if node.status == "failed":
        yield "node_failed", known | {"error": node.error_message}
        return
    known |= {"status": node.status, "reused": node.reused}
    result = node.result_data or {}
    yield "node_finished", known | view_of(node.node_type, result)
    if result and node.node_type in OWN_EVENTS:
        kind, fields = OWN_EVENTS[node.node_type]
        yield kind, {name: result.get(name) for name in fields}
