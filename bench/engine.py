"""What the engine adds to a session, and what a second worker brings."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from tests.postgres import running_postgres

from bench.desk import QUESTION, StubDesk, stub_desk
from bench.line import Line
from moot.modules.coordinator.domain.model.session import SessionFilter
from moot.modules.jobs.application.worker import Worker
from moot.modules.jobs.container import Engine
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

JOBS, PLACES, ROUNDS = 40, 8, 7
OVERHEAD = {"SQLite": 12.0, "PostgreSQL": 25.0}
"""Milliseconds of CPU a session may take more because it stood in the queue."""
LATENCY = 0.25
LATENCY_BOUND = 96


@asynccontextmanager
async def a_desk(url: str, latency: float) -> AsyncIterator[tuple[StubDesk, Engine]]:
    database = Database(url)
    await database.upgrade()
    await database.prepare()
    trail = AuditTrail(database)
    engine = Engine(trail)
    try:
        yield stub_desk(latency, trail, lambda: engine), engine
    finally:
        await trail.finish()
        await engine.close()
        await database.close()


async def run_queued(desk: StubDesk, count: int) -> None:
    """Begin so many and return when all have ended, with a look at all of them at once now and then: what a look
    costs is no part of a session."""
    for _ in range(count):
        await desk.service.start(QUESTION)
    for status in ("queued", "running"):
        still = SessionFilter(workspace_id=DEFAULT_WORKSPACE, status=status, page_size=1)
        while (await desk.sessions._repository.list_sessions(still)).total:  # noqa: ASYNC110
            await asyncio.sleep(0.2)


class NoBatches:
    """Sessions alone are measured."""

    async def work_on(self, session_id: UUID, run: Callable[[UUID], Awaitable[None]]) -> None:
        await run(session_id)

    async def look_after(self) -> None: ...
    async def close(self) -> None: ...


async def overhead(name: str, url: str) -> Line:
    """CPU of a session that is put into the queue and run by a worker, against one that is run where it was asked
    for; what a worker takes while it waits is measured alone, and no part of it. Rounds alternate, and the best of
    each is taken: a machine has other things to do, which only makes them slower."""
    async with a_desk(url, 0.0) as (desk, engine):
        await asyncio.gather(*(desk.service.execute(QUESTION) for _ in range(JOBS)))  # warm
        worker = Worker(engine, desk.sessions, NoBatches(), name="bench", at_once=PLACES, lease_seconds=60)
        worker.start()
        await run_queued(desk, PLACES)
        idle = await _idle()
        took, alone = [], []
        for _ in range(ROUNDS):
            began, at = time.process_time(), time.perf_counter()
            await run_queued(desk, JOBS)
            took.append((time.process_time() - began - idle * (time.perf_counter() - at)) / JOBS)
            began = time.process_time()
            for _ in range(JOBS // PLACES):
                await asyncio.gather(*(desk.service.execute(QUESTION) for _ in range(PLACES)))
            alone.append((time.process_time() - began) / (JOBS // PLACES * PLACES))
        await worker.stop()
    queued, placed = min(took), min(alone)
    more = 1e3 * (queued - placed)
    waits = f"a worker that waits takes {100 * idle:.1f} % of a CPU"
    detail = f"{1e3 * queued:.1f} ms against {1e3 * placed:.1f}; {waits}"
    return Line(f"CPU of a queued session beyond its own, {name}, ms", more, OVERHEAD[name], detail)


async def _idle(seconds: float = 4.0) -> float:
    began = time.process_time()
    await asyncio.sleep(seconds)
    return (time.process_time() - began) / seconds


async def two_workers(url: str) -> Line:
    """Sessions a second of which nearly all is waiting: two workers against one, places fixed."""
    rates = []
    async with a_desk(url, LATENCY) as (desk, _):
        for count in (1, 2):
            workers = [_spawn_worker(url) for _ in range(count)]
            await run_queued(desk, PLACES * count)  # until all of them work
            at = time.perf_counter()
            await run_queued(desk, LATENCY_BOUND)
            rates.append(LATENCY_BOUND / (time.perf_counter() - at))
            for process in workers:
                process.terminate()
            for process in workers:
                process.wait(60)
    detail = f"{rates[0]:.1f} and {rates[1]:.1f} sessions a second, {PLACES} places each, {LATENCY} s a turn"
    return Line("1.8 x one worker / two", 1.8 * rates[0] / rates[1], 1.0, detail)


def _spawn_worker(url: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "bench.engine", url])


async def work(url: str) -> None:
    """A worker of stubs, until it is told to stop."""
    async with a_desk(url, LATENCY) as (desk, engine):
        name = f"bench-{os.getpid()}"
        worker = Worker(engine, desk.sessions, NoBatches(), name=name, at_once=PLACES, lease_seconds=60)
        worker.start()
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(15, stop.set)
        await stop.wait()
        await worker.stop()


async def lines() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder, running_postgres() as postgres:
        sqlite = f"sqlite:///{Path(folder) / 'bench.db'}"
        return [
            await overhead("SQLite", sqlite),
            await overhead("PostgreSQL", await postgres.create(migrated=False)),
            await two_workers(await postgres.create(migrated=False)),
        ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(sys.argv[1]))
    else:
        print(json.dumps([line._asdict() for line in asyncio.run(lines())], indent=1))
