"""The door of the desk: sessions run while somebody waits, or stand in the queue until a worker takes them.

Of those somebody waits for it takes on so many at once, so many that wait, and no more.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

import structlog

from moot.modules.coordinator.application.results import complete
from moot.modules.coordinator.application.run import Journal, Reason, Run, Watch
from moot.modules.coordinator.application.session_history import LOOK_AGAIN, SessionHistory
from moot.modules.coordinator.application.session_queue import SessionQueue
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.exceptions import (
    AllExpertsFailed,
    ApprovalNeeded,
    DeskBusy,
    DeskClosing,
    KeyTaken,
    SessionCancelled,
    SessionEnded,
    SessionGivenUp,
    SessionHeld,
    SessionInterrupted,
    SessionWaiting,
)
from moot.modules.coordinator.domain.model.session import IdempotencyKey, ResearchSession
from moot.modules.coordinator.domain.ports.permission import NodePolicy
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.leases import LeaseHolder, passed

logger = structlog.get_logger(__name__)

MOST_OWNERS = 10
"""A session is taken to be the cause when so many processes in a row died while they worked on it."""
SUSPICIOUS = 2
"""After so many it works alone among its like: when the next one dies, it is known which of them was there."""
AT_MOST_LEFT_BEHIND = 500
STARTING = 16
"""So many begin at a time. A session begins with a burst of work and then waits for its experts: when hundreds come
at once, the first are waiting before the last begin, instead of all of them working, and then all waiting."""


class Sessions:
    """First come, first served. What was accepted keeps its pace, because what would slow it down is refused."""

    def __init__(
        self,
        orchestrator: IResearchOrchestrationPort,
        *,
        repository: IResearchSessionRepository | None = None,
        queue: Callable[[], SessionQueue] | None = None,
        clock: Clock | None = None,
        lease_clock: Clock | None = None,
        currency: str = "",
        lease_seconds: float = 15.0,
        at_once: int = 256,
        waiting: int = 256,
        policy: NodePolicy | None = None,
    ) -> None:
        self._orchestrator, self._currency = orchestrator, currency
        self._repository, self._open_queue = repository or IResearchSessionRepository(), queue
        self._clock, self._policy = clock or SystemClock(), policy or NodePolicy()
        self._lease_clock, self._lease_seconds = lease_clock or self._clock, lease_seconds
        held = LeaseHolder(self._repository, self._lease_clock, lease_seconds)
        self._journal = Journal(self._repository, self._clock, held)
        self._runs: dict[UUID, Run] = {}
        self._unattended: set[asyncio.Task[None]] = set()
        self._unfinished: list[UUID] = []
        self._slots, self._starting = asyncio.Semaphore(at_once), asyncio.Semaphore(STARTING)
        self._suspects = asyncio.Semaphore(1)
        self._at_once, self._most = at_once, at_once + waiting
        self._inside = 0
        self._closed = asyncio.Event()
        self._spared_until: datetime | None = None

    @cached_property
    def _queue(self) -> SessionQueue:
        """For those who have something to wait in it."""
        return self._open_queue() if self._open_queue else SessionQueue()

    async def answer(
        self, request: ResearchRequest, key: IdempotencyKey | None = None, *, watch: Watch | None = None
    ) -> ResearchResult:
        """Run `request` here and now. Under a known `key` it is not run again: the answer is that session's."""
        if key and (known := await self._repository.get_session_by_key(request.workspace_id, key)):
            return await self.outcome(known.id, request.workspace_id)
        try:
            async with self._turn() as begun:
                run = await self._journal.open(request, key=key, watch=watch)
                run.on_begun = begun
                self._journal.held.hold(run.session_id, run.stop)
                return await self._begin(run, self._run(run)).result()
        except KeyTaken:
            return await self.answer(request, key=key, watch=watch)

    async def start(self, request: ResearchRequest, key: IdempotencyKey | None = None) -> ResearchSession:
        """Accept `request` and return; it is stored and stands in the queue by then, or neither."""
        if key and (known := await self._repository.get_session_by_key(request.workspace_id, key)):
            return known
        if self.closing:
            raise DeskClosing
        await self._queue.open()
        try:
            return (await self._journal.open(request, status="queued", key=key)).session
        except KeyTaken:
            return await self.start(request, key=key)

    async def work_on(self, session_id: UUID) -> None:
        """Run a session from the queue to its end; how that was is in its record, and in the log.

        Who holds it already, or ended it, is left alone. What this process has no time left for is for others. While
        the store is gone it is waited for: a session that nobody has begun would be left in it for good.
        """
        run = self._runs.get(session_id)
        if run and run.task:  # it has still to end, as one has that was just woken
            await asyncio.wait([run.task])
        if session_id in self:
            return
        while not await self._work_on(self._carry_on(session_id)):
            await passed(self._closed, LOOK_AGAIN)

    async def _work_on(self, run: Run) -> bool:
        """Whether it could be begun, or need not be."""
        try:
            await run.result()
        except (DeskClosing, SessionInterrupted):
            self._unfinished.append(run.session_id)
        except AppError as e:
            if isinstance(e, Unavailable) and run.lease_token is None:
                logger.warning("session not begun", session_id=str(run.session_id), error=str(e))
                return False
            logger.info("session ended without an answer", session_id=str(run.session_id), error=str(e))
        except Exception:  # bulkhead: nobody waits for this run; its session says that it failed
            logger.error("session failed", session_id=str(run.session_id), exc_info=True)
        return True

    async def resume(self, session_id: UUID, workspace: str, *, watch: Watch | None = None) -> ResearchResult:
        """Go on with a session whose process died. Raises `SessionEnded`, or `SessionHeld` while somebody runs it."""
        session = await self._repository.require_session(session_id, workspace)
        if session.ended:
            raise SessionEnded(session_id, session.status)
        if session.status == "waiting":
            await self._require_answered(session)
            await self._repository.wake(session_id)
        if session_id in self:
            raise SessionHeld(session_id)
        return await self._carry_on(session_id, watch).result()

    async def wake(self, session_id: UUID) -> None:
        """Somebody has decided what a session was waiting for: it goes on."""
        if await self._repository.wake(session_id):
            await self._queue.put_back([session_id])

    async def find_batch(self, session_id: UUID) -> UUID | None:
        """Whose part a session is that has not begun."""
        session = await self._repository.get_session_by_id(session_id, None)
        return session.batch_id if session and session.status == "queued" else None

    async def queue_again(self, session_ids: Collection[UUID]) -> None:
        """Those of a batch whose turn in the queue is over, though they have not begun."""
        await self._queue.put_back(session_ids, priority="batch", if_taken=False)

    async def find_left_behind(self, taken: Collection[UUID] = ()) -> list[UUID]:
        """Sessions that were begun, or `taken` by somebody, that nobody runs and that have not ended, of all
        workspaces."""
        mine = {*self._runs, *self._journal.unstored}
        now = self._lease_clock.now()
        found = await self._repository.find_left_behind(now, AT_MOST_LEFT_BEHIND, taken)
        return [session_id for session_id in found if session_id not in mine and session_id not in self]

    async def find_interrupted(self, workspace: str) -> list[ResearchSession]:
        found = [
            await self._repository.get_session_by_id(i, workspace) for i in await self.find_left_behind()
        ]
        return [session for session in found if session is not None]

    async def cancel(self, session_id: UUID, workspace: str) -> None:
        """Stop a session, wherever it runs; elsewhere that takes until its owner looks up. Raises `SessionEnded`."""
        session = await self._repository.require_session(session_id, workspace)
        if session.status == "cancelled":
            return
        if session.ended:
            raise SessionEnded(session_id, session.status)
        await self._repository.wake(session_id)
        if run := self._runs.get(session_id):
            await _stop([run], "cancelled")
        if (await self._repository.require_session(session_id, workspace)).ended:
            return
        await self._repository.request_cancel(session_id)
        if taken := await self._journal.held.take(session_id):
            run = Run(session_id, self._repository, self._clock)
            await self._journal.reopen(run, taken)
            await self._journal.end(run, SessionCancelled(session_id))

    async def outcome(self, session_id: UUID, workspace: str) -> ResearchResult:
        """The answer of a session, when it has one; one that was begun and left behind is run on here."""
        while not (session := await self._repository.require_session(session_id, workspace)).ended:
            if session.status == "waiting":
                await self._require_answered(session)
                await self.wake(session_id)
            if session_id not in self and self.closing:
                raise SessionInterrupted(session_id)
            if session.status == "running" and session_id not in self:
                await self._set_about(session_id)
            if (run := self._runs.get(session_id)) and run.task:
                await asyncio.wait({run.task}, timeout=LOOK_AGAIN)
            ended = (await self._repository.require_session(session_id, workspace)).ended
            if session_id not in self._runs and not ended:  # others run it, or its end is not stored yet
                await self._repository.wait_for_events(session_id, LOOK_AGAIN)
        if session.status == "cancelled":
            raise SessionCancelled(session_id)
        history = SessionHistory(self._repository, self._currency)
        return _require_answer(await history.result(session_id, workspace))

    async def look_after(self) -> None:
        """Put back into the queue whatever is left behind. Who took a session a moment ago is about to begin it; who
        could not renew a lease while the store was gone, to renew it."""
        try:
            await self._policy.upkeep()
            taken = await self._queue.find_taken()
            if self._spared_until and self._lease_clock.now() < self._spared_until:
                return
            long_ago = {session_id for session_id, ago in taken.items() if ago > self._lease_seconds}
            left = set(await self.find_left_behind(long_ago)) - (taken.keys() - long_ago)
            if back := await self._queue.put_back(left):
                logger.info("sessions taken up again", session_ids=[str(session_id) for session_id in back])
        except AppError as e:  # the store may be back next time
            logger.warning("no look at what was left behind", error=str(e))
            self._spared_until = self._lease_clock.now() + timedelta(seconds=self._lease_seconds)

    async def hand_over(self) -> None:
        """Put back what a worker took and this process had no time for; the next look at what is left finds it."""
        with suppress(AppError):
            await self._queue.put_back(self._unfinished)

    def close_doors(self) -> None:
        self._closed.set()

    @property
    def closing(self) -> bool:
        return self._closed.is_set()

    @property
    def busy(self) -> bool:
        return bool(self._runs)

    @property
    def waiting(self) -> int:
        return max(0, self._inside - self._at_once)

    async def close(self, *, grace: float = 0.0) -> None:
        """Let what runs come to its end for so long; what has not is left to be resumed."""
        self.close_doors()
        if tasks := [run.task for run in self._runs.values() if run.task]:
            await asyncio.wait(tasks, timeout=grace)
        left = list(self._runs.values())
        await _stop(left, "interrupted")
        await self._journal.close(release=any(run.lease_token is not None for run in left))

    def __contains__(self, session_id: UUID) -> bool:
        return session_id in self._runs or session_id in self._journal.unstored

    def _begin(self, run: Run, work: Coroutine[Any, Any, ResearchResult]) -> Run:
        self._runs[run.session_id] = run
        run.task = asyncio.create_task(work)
        run.task.add_done_callback(lambda _: self._forget(run.session_id))
        return run

    def _forget(self, session_id: UUID) -> None:
        self._runs.pop(session_id, None)
        if session_id not in self._journal.unstored:
            self._journal.held.let_go(session_id)

    def _carry_on(self, session_id: UUID, watch: Watch | None = None) -> Run:
        run = Run(session_id, self._repository, self._clock, watch)

        async def work() -> ResearchResult:
            async with self._turn(accepted=True) as begun:
                taken = await self._journal.held.take(session_id)
                if taken is None:
                    raise SessionHeld(session_id)
                self._journal.held.hold(session_id, run.stop)
                run.on_begun = begun
                await self._journal.reopen(run, taken)
                if taken.cancel_requested:
                    await self._journal.end(run, cancelled := SessionCancelled(session_id))
                    raise cancelled
                return await self._run(run)

        return self._begin(run, work())

    async def _set_about(self, session_id: UUID) -> None:
        """Work on it with nobody waiting: who hears of it may hang up."""
        task = asyncio.create_task(self.work_on(session_id))
        self._unattended.add(task)
        task.add_done_callback(self._unattended.discard)
        await asyncio.sleep(0)  # until it is among the runs

    async def _run(self, run: Run) -> ResearchResult:
        try:
            return _require_answer(await self._journal.keep(run, self._research(run)))
        except ApprovalNeeded as needed:
            if await self._policy.is_answered(needed, run.session.workspace_id):
                await self.wake(run.session_id)  # whoever answered before it had stopped found nobody to wake
            raise

    async def _require_answered(self, session: ResearchSession) -> None:
        """The answer may be there, and could not be told. Raises `SessionWaiting` where there is none."""
        if needed := await self._policy.waits_for(session.id, session.workspace_id):
            raise SessionWaiting(session.id, needed)

    async def _research(self, run: Run) -> ResearchResult:
        with ExitStack() as suspicion:
            await self._set_to_work(run, suspicion)
            await self._policy.session_begins(run.request.node_types)
            try:
                result = await self._orchestrator.run(await self._policy.admit(run.request))
            finally:
                await self._policy.session_ends()
        await run.wait_until_stored()
        completed = complete(result, run.session, run.tally, self._currency)
        return completed if self._repository.lasting else completed.model_copy(update={"session_id": ""})

    async def _set_to_work(self, run: Run, suspicion: ExitStack) -> None:
        """Note that a session is taken up again before it works: a process that dies of it at once counts too."""
        if run.recorded is None or run.lease_token is None:
            return
        if run.recorded.keys() >= set(run.session.node_types):  # nothing is left to die of
            return
        if run.session.begun >= MOST_OWNERS:
            raise SessionGivenUp(run.session_id, attempts=MOST_OWNERS)
        if run.session.begun >= SUSPICIOUS:
            if run.on_begun is not None:  # others need not wait with it
                run.on_begun()
            await self._suspects.acquire()
            suspicion.callback(self._suspects.release)
            run.on_progress = suspicion.close
        try:
            await self._repository.begin(run.session_id, run.lease_token)
        except AppError as e:  # the record must never stop the research
            logger.warning("not noted that a session goes on", session_id=str(run.session_id), error=str(e))

    @asynccontextmanager
    async def _turn(self, *, accepted: bool = False) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn and keep it for the length of the block, which says when it has begun, so that others can.

        What was `accepted` before is never refused a place in the line; nobody gets a turn when the desk has closed.
        """
        if self.closing and not accepted:
            raise DeskClosing
        if self._inside >= self._most and not accepted:
            raise DeskBusy
        self._inside += 1
        try:
            async with self._slots:
                await self._starting.acquire()
                with ExitStack() as beginning:
                    beginning.callback(self._starting.release)
                    if self.closing:
                        raise DeskClosing
                    yield beginning.close
        finally:
            self._inside -= 1


async def _stop(runs: list[Run], reason: Reason) -> None:
    """Return when they have ended."""
    for run in runs:
        run.stop(reason)
    if tasks := [run.task for run in runs if run.task]:
        await asyncio.wait(tasks, timeout=10)


def _require_answer(result: ResearchResult) -> ResearchResult:
    if result.overall_status == "failed":
        raise AllExpertsFailed(result)
    return result
