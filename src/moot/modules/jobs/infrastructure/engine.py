"""The engine is DBOS: what waits, who takes it, and when. All that Moot knows of DBOS is in this file.

DBOS has no eye for a worker that died and no fence against one that comes back: sessions have leases for that. It
takes half a second to load, which only those pay who queue something.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from moot.modules.coordinator.application.session_queue import BATCH, SessionQueue
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.rate_limits import Priority
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.transactions import store_errors

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

NAME = "moot"
VERSION = "journal-1"
"""Of what a worker must understand to go on with a session: changed with the format of the journal, and only then."""
QUEUES: dict[Priority, str] = {"interactive": "sessions", "batch": "batch"}
BEHIND_BEGUN = 1
"""The place in the line of what is new; what is put back with a new job stands before it, at 0."""
WORKFLOW = "session"
POLLING = 0.25
MIGRATIONS = 5
"""How often they are tried: of two that begin at once, one finds half of the other's tables."""
LEEWAY = 15
"""Seconds for what was interrupted to say so."""
WAITING = "ENQUEUED"
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
KEPT = timedelta(hours=1)
"""So long a job that has ended is there for whoever looks for what went wrong."""
AT_A_TIME = 500
WITHOUT_DATA: dict[str, Any] = {"load_input": False, "load_output": False}

Run = Callable[[UUID], Awaitable[None]]


class Engine(SessionQueue):
    """One door for those who put sessions into the queue, and for the one worker a process may have."""

    at_work: ClassVar[Engine | None] = None
    """DBOS is one to a process."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail, self._database = trail, trail.database
        self._client: DBOSClient | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)
                self._trail.follow("session_opened", self._put)

    def _connect(self) -> DBOSClient:
        """The tables are the engine's own; where they are missing they are made, as those of a fresh file are."""
        from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer  # noqa: PLC0415

        with _engine_errors():
            for attempt in range(MIGRATIONS):
                try:
                    DBOS.migrate(self._database.plain_url)
                    break
                except OperationalError:
                    if attempt + 1 == MIGRATIONS:
                        raise
                    sleep(1)
            return DBOSClient(
                system_database_url=self._database.plain_url,
                serializer=DBOSPortableJSONSerializer(),
                application_name=NAME,
                lazy=True,
                retry_connection_errors=False,
            )

    def _put(self, db: Connection, sessions: Sequence[Mapping[str, Any]]) -> None:
        """In the transaction that stores them: a session that waits has its job, or there is neither."""
        assert self._client is not None
        for row in sessions:
            if row["status"] == "queued":
                priority: Priority = "batch" if row["trigger_source"] == BATCH else "interactive"
                job: EnqueueOptions = {**_job(row["id"], priority), "priority": BEHIND_BEGUN}
                self._client.enqueue_in_transaction(db, job, str(row["id"]))

    async def put_back(
        self, session_ids: Collection[UUID], *, priority: Priority = "interactive", if_taken: bool = True
    ) -> list[UUID]:
        """One that has ended, as of a session that waited for a person, is as good as none: it gets a new job."""
        if not session_ids:
            return []
        await self.open()
        assert self._client is not None
        ids = [str(session_id) for session_id in session_ids]
        with _engine_errors():
            jobs = await self._client.list_workflows_async(workflow_ids=ids, **WITHOUT_DATA)
            ended = [job.workflow_id for job in jobs if job.status in ENDED]
            if ended:
                await self._client.delete_workflows_async(ended)
            there = {job.workflow_id: job for job in jobs if job.status not in ENDED}
            new = [job_id for job_id in ids if job_id not in there]
            for job_id in new:
                await self._client.enqueue_async(_job(UUID(job_id), priority), job_id)
            taken = [job for job in there.values() if if_taken and job.status != WAITING]
            for job in taken:
                await self._client.resume_workflows_async([job.workflow_id], queue_name=job.queue_name)
        return [UUID(job_id) for job_id in (*new, *(job.workflow_id for job in taken))]

    async def clear_ended(self) -> None:
        """Remove the jobs that ended some time ago: what they came to is on the record of their sessions, which is
        packed by now unless its process died before."""
        await self.open()
        assert self._client is not None
        before = (self._database.clock.now() - KEPT).isoformat()
        full = True
        while full:
            with _engine_errors():
                jobs = await self._client.list_workflows_async(
                    status=list(ENDED), completed_before=before, limit=AT_A_TIME, **WITHOUT_DATA
                )
                if jobs:
                    sessions = [UUID(job.workflow_id) for job in jobs if job.name == WORKFLOW]
                    await self._trail.pack_heavy(sessions)
                    await self._client.delete_workflows_async([job.workflow_id for job in jobs])
            full = len(jobs) == AT_A_TIME

    async def find_taken(self) -> dict[UUID, float]:
        await self.open()
        assert self._client is not None
        with _engine_errors():
            taken = await self._client.list_workflows_async(status="PENDING", name=WORKFLOW, **WITHOUT_DATA)
        now = self._database.clock.now().timestamp()
        return {UUID(job.workflow_id): now - (job.dequeued_at or 0) / 1000 for job in taken}

    async def work(self, run: Run, *, worker: str, at_once: int) -> None:
        """Take sessions from the queue from now on, on this loop, so many at once of those somebody waits for.

        There is one worker in a process. Raises `Unavailable`, also where another desk has it.
        """
        from dbos import DBOS, DBOSPortableJSONSerializer  # noqa: PLC0415

        await self.open()
        if Engine.at_work is not None:
            raise Unavailable(
                SAY("database.store_failed", reason="another desk of this process has a worker")
            )
        Engine.at_work = self

        async def session(session_id: str) -> None:
            await run(UUID(session_id))

        config: dict[str, Any] = {
            "name": NAME,
            "system_database_url": self._database.plain_url,
            "executor_id": worker,
            "application_version": VERSION,
            "serializer": DBOSPortableJSONSerializer(),
            "use_listen_notify": False,
            "run_migrations": False,
            "log_level": "ERROR",
            "console_log_level": "ERROR",
        }
        async with AsyncExitStack() as failing:
            failing.push_async_callback(self.rest, 0.0, busy=False)
            with _engine_errors():
                DBOS(config=cast(Any, config))
                DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(session)
                DBOS.launch()
                await self._open_queues(at_once)
            failing.pop_all()

    async def _open_queues(self, at_once: int) -> None:
        """A batch never has all places of a worker: one is kept for what somebody waits for."""
        from dbos import DBOS  # noqa: PLC0415

        for priority, queue in QUEUES.items():
            most = at_once if priority == "interactive" else max(1, at_once - 1)
            await DBOS.register_queue_async(
                queue,
                worker_concurrency=most,
                polling_interval_sec=POLLING,
                on_conflict="always_update",
            )

    async def rest(self, grace: float, *, busy: bool) -> None:
        """Take nothing more, and return when what runs has ended; its owner sees to that within `grace`."""
        if Engine.at_work is self:
            from dbos import DBOS  # noqa: PLC0415

            ended_within = math.ceil(grace) + LEEWAY if busy else 0
            end = partial(DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=ended_within)
            await asyncio.to_thread(end)
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())  # DBOS took its own away
            Engine.at_work = None

    async def close(self) -> None:
        await self.rest(0.0, busy=False)
        if self._client is not None:
            await asyncio.to_thread(self._client.destroy)
            self._client = None


def _job(session_id: UUID, priority: Priority) -> EnqueueOptions:
    return {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUES[priority],
        "workflow_id": str(session_id),
        "app_version": VERSION,
    }


@contextmanager
def _engine_errors() -> Iterator[None]:
    """As the store's own: whoever asks can only try again."""
    from dbos import error  # noqa: PLC0415

    with store_errors():
        try:
            yield
        except error.DBOSException as e:
            raise OSError(str(e)) from e
