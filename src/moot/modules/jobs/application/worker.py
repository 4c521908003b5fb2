"""A worker: it runs what waits in the queue, and puts back what others have left behind."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol
from uuid import UUID

import structlog

from moot.modules.jobs.application.schedules import Scheduler
from moot.shared.domain.errors import AppError
from moot.shared.domain.leases import passed

logger = structlog.get_logger(__name__)

LOOKS_PER_LEASE = 4
"""How often a worker looks for what others left behind, in the time they have to be silent."""
LOOKS_PER_CLEARING = 16
"""At every so many looks the jobs that have ended are removed."""


class JobQueue(Protocol):
    """What a worker needs of the engine."""

    async def work(self, run: Callable[[UUID], Awaitable[None]], *, worker: str, at_once: int) -> None: ...
    async def clear_ended(self) -> None: ...
    async def rest(self, grace: float, *, busy: bool) -> None: ...


class Sessions(Protocol):
    """The desk's sessions, as a worker knows them."""

    @property
    def busy(self) -> bool: ...
    async def work_on(self, session_id: UUID) -> None: ...
    async def look_after(self) -> None: ...
    async def close(self, *, grace: float) -> None: ...
    async def hand_over(self) -> None: ...


class Batches(Protocol):
    """As a worker knows them."""

    async def work_on(self, session_id: UUID, run: Callable[[UUID], Awaitable[None]]) -> None: ...
    async def look_after(self) -> None: ...
    async def close(self) -> None: ...


class Worker:
    """It starts as soon as there is a database to work with, and goes when what it runs has ended."""

    def __init__(
        self,
        engine: JobQueue,
        sessions: Sessions,
        batches: Batches,
        schedules: Scheduler | None = None,
        *,
        name: str,
        at_once: int,
        lease_seconds: float,
    ) -> None:
        self.name, self._engine, self._sessions, self._batches = name, engine, sessions, batches
        self._schedules = schedules
        self._at_once, self._seconds = at_once, lease_seconds / LOOKS_PER_LEASE
        self._stopping = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self.working = False

    def start(self) -> None:
        if self._life is None:
            self._life = asyncio.create_task(self._live())

    async def stop(self, *, grace: float = 0.0) -> None:
        """Take nothing more; what runs may come to its end for so long, and the rest goes back into the queue."""
        self._stopping.set()
        self.working = False
        if self._life is None:
            return
        await self._life
        if self._schedules:
            await self._schedules.close()
        await self._batches.close()
        resting = asyncio.create_task(self._engine.rest(grace, busy=self._sessions.busy))
        await self._sessions.close(grace=grace)
        await resting
        await self._sessions.hand_over()

    async def _live(self) -> None:
        while not self.working:
            try:
                await self._engine.work(self._run, worker=self.name, at_once=self._at_once)
                self.working = True
            except AppError as e:  # the store may be there a moment later
                logger.warning("worker not at work yet", error=str(e))
            except Exception:  # bulkhead: who knows what ails the engine; the next try may find it well
                logger.exception("worker not at work yet")
            if await passed(self._stopping, 0.0 if self.working else self._seconds):
                return
        for look in count():
            await self._look(self._sessions.look_after)
            if self._schedules:
                await self._look(self._schedules.look)
            await self._look(self._batches.look_after)
            if look % LOOKS_PER_CLEARING == 0:
                await self._look(self._engine.clear_ended)
            if await passed(self._stopping, self._seconds):
                return

    async def _run(self, session_id: UUID) -> None:
        await self._batches.work_on(session_id, self._sessions.work_on)

    async def _look(self, after: Callable[[], Awaitable[object]]) -> None:
        """What cannot be done now is done the next time, and keeps nobody from the rest."""
        try:
            await after()
        except AppError as e:
            logger.warning("worker could not look after its work", error=str(e))
        except Exception:  # bulkhead: a worker that dies in silence leaves all that waits
            logger.exception("worker could not look after its work")
