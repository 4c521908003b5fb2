"""Many sessions at once: what they wait for beside the models, what it costs to survive a crash, what each weighs."""

import asyncio
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from tests.postgres import running_postgres

from bench import bare_langgraph
from bench.desk import QUESTION, TURNS_ON_THE_CRITICAL_PATH, desk_of_stubs
from bench.line import Line
from moot.cli import server
from moot.shared.infrastructure.database import Database

BURST = 200
BURSTS = 3
LATENCY = 2.0
AT_ONCE = 100
SESSIONS = 150
WARM = 20
ROUNDS = 5
# What the saver's own `from_conn_string` sets.
CONNECTION = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
Run = Callable[[], Awaitable[object]]
Rivals = AbstractAsyncContextManager[tuple[Database, BaseCheckpointSaver[Any]]]


async def lines() -> list[Line]:
    return [
        *await started_at_once(),
        await crash_safe("AsyncSqliteSaver", on_sqlite()),
        await crash_safe("AsyncPostgresSaver", on_postgres()),
        await in_memory(),
    ]


async def started_at_once() -> list[Line]:
    """Journal and chain on SQLite, against what the calls of a single session would take, and against as many runs of
    a bare LangGraph that keeps nothing: starting them takes a processor too. Rounds alternate, and the best of each
    is taken: a machine has other things to do, which only makes them slower.
    """
    async with fresh_sqlite() as database:
        quick, service = desk_of_stubs(0.0, database), desk_of_stubs(LATENCY, database)
        bare, rounds = bare_langgraph.compiled(), []
        token = bare_langgraph.LATENCY.set(LATENCY)
        await many(lambda: quick.execute(QUESTION), WARM)
        with server.settle():
            for _ in range(BURSTS):
                await settled()  # the last round's rows are not this one's to write
                ours = await many(lambda: service.execute(QUESTION), BURST, at_once=BURST)
                rounds.append((ours, await many(lambda: bare.ainvoke({"query": "q"}), BURST, at_once=BURST)))
        bare_langgraph.LATENCY.reset(token)
    path = TURNS_ON_THE_CRITICAL_PATH * LATENCY
    ours, theirs = (min(walls) for walls in zip(*rounds, strict=True))
    detail = f"{ours:.2f} s of {path:.0f} s, persistence on"
    against = f"{ours:.2f} s against {theirs:.2f} s of a graph that keeps nothing"
    return [
        Line(f"{BURST} sessions at once / critical path", ours / path, 1.10, detail),
        Line(f"{BURST} sessions at once / bare LangGraph", ours / theirs, 1.05, against),
    ]


async def crash_safe(saver: str, rivals: Rivals) -> Line:
    """Sessions a second when nothing takes time but to keep what a crash must not lose. Rounds alternate, and
    the best of each is taken.

    Both commit to a disk that is told to sync. LangGraph has its default durability, which does not wait for a
    checkpoint before it goes on; Moot does wait.
    """
    async with rivals as (database, checkpointer):
        service, bare = desk_of_stubs(0.0, database), bare_langgraph.compiled(checkpointer)
        runs: list[Run] = [lambda: service.execute(QUESTION), lambda: bare.ainvoke({"query": "q"}, thread())]
        for run in runs:
            await many(run, WARM)
        with server.settle():
            rounds = [[SESSIONS / await many(run, SESSIONS) for run in runs] for _ in range(ROUNDS)]
    moot, langgraph = (max(rates) for rates in zip(*rounds, strict=True))
    detail = f"{langgraph:.0f} against {moot:.0f} crash-safe sessions/s, {AT_ONCE} at once"
    return Line(f"LangGraph + {saver} / Moot", langgraph / moot, 0.5, detail)


async def in_memory() -> Line:
    """What a session holds while its experts are out."""
    async with fresh_sqlite() as database:
        service, bare = desk_of_stubs(60.0, database), bare_langgraph.compiled()
        token = bare_langgraph.LATENCY.set(60.0)
        moot = await held(lambda: service.execute(QUESTION))
        langgraph = await held(lambda: bare.ainvoke({"query": "q"}))
        bare_langgraph.LATENCY.reset(token)
    detail = f"{moot / 1024:.0f} kB against {langgraph / 1024:.0f} kB, {BURST} in flight"
    return Line("memory per session / bare LangGraph", moot / langgraph, 2.0, detail)


@asynccontextmanager
async def fresh_sqlite() -> AsyncIterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'moot.db'}")
        await database.prepare()
        yield database
        await database.close()


@asynccontextmanager
async def on_sqlite() -> AsyncIterator[tuple[Database, BaseCheckpointSaver[Any]]]:
    """Files beside each other, both in WAL mode and with `synchronous` at FULL."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            fresh_sqlite() as database,
            AsyncSqliteSaver.from_conn_string(str(Path(folder) / "langgraph.db")) as saver,
        ):
            await saver.setup()
            yield database, saver


@asynccontextmanager
async def on_postgres() -> AsyncIterator[tuple[Database, BaseCheckpointSaver[Any]]]:
    """Two databases of one server as it comes: every commit is synced."""
    with running_postgres() as postgres:
        database = Database(await postgres.create(migrated=False))
        await database.upgrade()
        url = await postgres.create(migrated=False)
        async with AsyncConnectionPool[Any](
            url, min_size=10, max_size=20, open=False, kwargs=CONNECTION
        ) as pool:
            saver = AsyncPostgresSaver(pool)
            await saver.setup()
            yield database, saver
        await database.close()


def thread() -> dict[str, Any]:
    return {"configurable": {"thread_id": uuid4().hex}}


async def many(run: Run, count: int, at_once: int = AT_ONCE) -> float:
    """The wall time of `count` runs, `at_once` of them under way at any moment."""
    left = iter(range(count))

    async def caller() -> None:
        for _ in left:
            await run()

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(at_once)))
    return time.perf_counter() - started


async def held(run: Run) -> float:
    """Bytes a run holds once all runs wait for their models."""
    tracemalloc.start()
    runs = [asyncio.ensure_future(run()) for _ in range(BURST)]
    await settled()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for running in runs:
        running.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    return size / BURST


async def settled() -> None:
    """Return when no task has come or gone for a second."""
    tasks = 0
    while tasks != len(asyncio.all_tasks()):
        tasks = len(asyncio.all_tasks())
        await asyncio.sleep(1.0)
