"""The sessions this process runs: kept under lease while they last, and stopped for a reason."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

import structlog

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.exceptions import (
    ApprovalNeeded,
    SessionCancelled,
    SessionInterrupted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
)
from moot.modules.coordinator.domain.ports.session_leases import ISessionLeases, Lease, Taken
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import LeaseLost

logger = structlog.get_logger(__name__)

Reason = Literal["cancelled", "interrupted", "taken over"]
Work = Coroutine[Any, Any, ResearchResult]

BEATS_PER_LEASE = 3
STORE_AGAIN = (1, 2, 4, 8, *[15] * 240)
"""Seconds between attempts to store what a database that is gone did not take: for an hour."""
STOPPED: dict[Reason, type[SessionCancelled | SessionInterrupted | SessionTakenOver]] = {
    "cancelled": SessionCancelled,
    "interrupted": SessionInterrupted,
    "taken over": SessionTakenOver,
}


@dataclass
class LiveRun:
    session_id: UUID
    task: asyncio.Task[ResearchResult]
    leased: bool = False
    stopped: Reason | None = None

    async def result(self) -> ResearchResult:
        """What the run comes to; who is cancelled while waiting for it cancels it."""
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
        if self.stopped is None and not self.task.done():
            self.stopped = reason
            self.task.cancel()


class LiveRuns:
    """Without `leases` nothing is stored, and there is nothing to hold on to."""

    def __init__(self, leases: ISessionLeases | None, clock: Clock, seconds: float = 15.0) -> None:
        self._leases, self._clock = leases, clock
        self._lease_time = timedelta(seconds=seconds)
        self._owner = f"{socket.gethostname()[:60]}-{os.getpid()}-{uuid4().hex[:8]}"
        self._runs: dict[UUID, LiveRun] = {}
        self._waited_for: set[asyncio.Task[None]] = set()
        self._unstored: dict[UUID, asyncio.Task[None]] = {}
        self._heart: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def __contains__(self, session_id: UUID) -> bool:
        return session_id in self._runs or session_id in self._unstored

    def begin(self, session_id: UUID, work: Work, *, leased: bool) -> LiveRun:
        run = LiveRun(session_id, asyncio.create_task(work), leased)
        self._runs[session_id] = run
        run.task.add_done_callback(lambda _: self._runs.pop(session_id, None))
        if self._leases is not None and (self._heart is None or self._heart.done()):
            self._heart = asyncio.create_task(self._keep_leases(self._leases))
        return run

    def begin_unattended(self, session_id: UUID, work: Work) -> None:
        """For a run nobody waits for: how it ended is in the record, and in the log."""
        waiting = asyncio.create_task(_logged(self.begin(session_id, work, leased=False)))
        self._waited_for.add(waiting)
        waiting.add_done_callback(self._waited_for.discard)

    def store_later(self, session_id: UUID, write: Callable[[], Awaitable[None]]) -> None:
        """For the end of a session that could not be stored: until it is, nobody should take it for unfinished."""

        async def until_stored() -> None:
            for pause in STORE_AGAIN:
                if await passed(self._closing, pause):
                    return
                try:
                    await write()
                except AppError as e:
                    logger.warning("end of session not stored yet", session_id=str(session_id), error=str(e))
                except LeaseLost:
                    return
                else:
                    return

        task = asyncio.create_task(until_stored())
        self._unstored[session_id] = task
        task.add_done_callback(lambda _: self._unstored.pop(session_id, None))

    def first_lease(self) -> Lease | None:
        """For a session about to be stored, and run here."""
        if self._leases is None:
            return None
        return Lease(self._owner, 1, self._clock.now() + self._lease_time)

    async def take(self, session_id: UUID) -> Taken | None:
        """The lease of a session that nobody holds."""
        if self._leases is None:
            return None
        now = self._clock.now()
        taken = await self._leases.acquire(session_id, self._owner, now, now + self._lease_time)
        if taken is not None and session_id in self._runs:
            self._runs[session_id].leased = True
        return taken

    async def pause(self, session_id: UUID, token: int | None) -> None:
        """Leave a session for a person to decide."""
        if self._leases is not None and token is not None:
            await self._leases.pause(session_id, token)

    def why_stopped(self, session_id: UUID) -> Reason | None:
        run = self._runs.get(session_id)
        return run.stopped if run else None

    async def wait(self, session_id: UUID, seconds: float) -> None:
        """Until the run has ended, or that time is over."""
        if run := self._runs.get(session_id):
            await asyncio.wait({run.task}, timeout=seconds)

    async def stop(self, session_id: UUID, reason: Reason, *, within: float = 10.0) -> None:
        """Returns when the run has ended; one that runs elsewhere, or not at all, is left alone."""
        if run := self._runs.get(session_id):
            run.stop(reason)
            await asyncio.wait({run.task}, timeout=within)

    async def drain(self, seconds: float) -> None:
        """Let the runs come to their end, for so long."""
        if tasks := [run.task for run in self._runs.values()]:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Interrupt what still runs, and leave it to whoever comes next."""
        held = any(run.leased for run in self._runs.values())
        tasks = [run.task for run in self._runs.values()]
        for run in list(self._runs.values()):
            run.stop("interrupted")
        if tasks:
            await asyncio.wait(tasks, timeout=10)
        self._closing.set()
        if waiting := [*self._unstored.values(), *([self._heart] if self._heart else [])]:
            await asyncio.wait(waiting)
        if held and self._leases is not None:
            try:
                await self._leases.release(self._owner, self._clock.now())
            except AppError as e:  # then they run out by themselves
                logger.warning("leases not released", error=str(e))

    async def _keep_leases(self, leases: ISessionLeases) -> None:
        beat = self._lease_time.total_seconds() / BEATS_PER_LEASE
        while (self._runs or self._unstored) and not await passed(self._closing, beat):
            sessions = [run.session_id for run in self._runs.values() if run.leased]
            sessions += self._unstored
            if sessions:
                await self._renew(leases, sessions)

    async def _renew(self, leases: ISessionLeases, sessions: list[UUID]) -> None:
        try:
            renewal = await leases.renew(self._owner, sessions, self._clock.now() + self._lease_time)
        except (
            AppError
        ) as e:  # the store may be back before the leases run out; if not, every write is fenced
            logger.warning("leases not renewed", error=str(e))
            return
        for session_id in renewal.lost | renewal.cancel_requested:
            if run := self._runs.get(session_id):
                run.stop("taken over" if session_id in renewal.lost else "cancelled")


async def passed(event: asyncio.Event, seconds: float) -> bool:
    """Whether it came, within that time."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _logged(run: LiveRun) -> None:
    try:
        await run.result()
    except AppError as e:
        logger.info("session ended without an answer", session_id=str(run.session_id), error=str(e))
    except Exception:  # bulkhead: nobody waits for this run; its session says that it failed
        logger.error("session failed", session_id=str(run.session_id), exc_info=True)
