"""Sessions in the queue: stored with their jobs or not at all, run by a worker, put back when it is gone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError

from moot.desk import Moot
from moot.modules.jobs.infrastructure import engine
from moot.modules.jobs.infrastructure.engine import Engine
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure import packing
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from moot.shared.infrastructure.tables import TextRow
from moot.shared.infrastructure.transactions import GroupCommit
from tests.fakes.clock import PATIENCE

ASKED: dict[str, Any] = {
    "symbol": "900001.DEMO",
    "experts": ["macro_intelligence"],
    "skip_debate": True,
    "locale": "en-US",
}


@pytest.fixture
def settings(home: Path, database: Database) -> Settings:
    return Settings(home=home, database_url=database.safe_url, log_level="error", lease_seconds=1)


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Moot]:
    """Which takes nothing from the queue itself."""
    async with Moot(settings) as desk:
        yield desk


def working(settings: Settings) -> Moot:
    return Moot(settings.model_copy(update={"worker": True}))


async def ended(desk: Moot, session_id: UUID) -> str:
    async with asyncio.timeout(PATIENCE):
        async for _ in desk.events(session_id):
            pass
    return (await desk.session(session_id)).status


async def jobs(desk: Moot) -> dict[str, str]:
    await desk.jobs.engine.open()
    client = desk.jobs.engine._client
    assert client is not None
    found = await client.list_workflows_async()
    return {job.workflow_id: job.status for job in found}


async def test_what_is_started_waits_for_a_worker_and_is_run_by_it(settings: Settings, desk: Moot) -> None:
    started = [(await desk.start(**ASKED)).id for _ in range(3)]
    assert {(await desk.session(session_id)).status for session_id in started} == {"queued"}
    assert await jobs(desk) == dict.fromkeys(map(str, started), "ENQUEUED")
    async with working(settings) as worker:
        worker.work()
        assert [await ended(desk, session_id) for session_id in started] == ["completed"] * 3
        assert all([(await desk.verify(session_id)).intact for session_id in started])


async def test_a_session_and_its_job_are_stored_together_or_not_at_all(
    desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: Callable[..., None] = Engine._put

    def put_and_fail(self: Engine, db: Any, sessions: Any) -> None:
        put(self, db, sessions)
        raise SQLAlchemyError("no space left on device")

    monkeypatch.setattr(Engine, "_put", put_and_fail)
    with pytest.raises(Unavailable):
        await desk.start(**ASKED)
    assert ((await desk.sessions()).total, await jobs(desk)) == (0, {})


async def test_what_a_worker_took_and_never_began_is_put_back(
    settings: Settings, desk: Moot, database: Database
) -> None:
    """As when it was killed between the two: the job is its own, the session nobody's."""
    session_id = (await desk.start(**ASKED)).id
    schema = "dbos." if "postgres" in database.safe_url else ""
    lost = f"UPDATE {schema}workflow_status SET status = 'PENDING', executor_id = 'lost', started_at_epoch_ms = 1"
    await database.write(lambda db: db.execute(text(lost)))
    assert await jobs(desk) == {str(session_id): "PENDING"}
    async with working(settings) as worker:
        worker.work()
        assert await ended(desk, session_id) == "completed"


async def test_what_a_stopping_worker_has_no_time_for_goes_back_and_on(
    settings: Settings, desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, hold = asyncio.Event(), asyncio.Event()
    first = working(settings)
    session_id = (await desk.start(**ASKED)).id
    async with first:
        graph = await first.coordinator.engine()
        run = graph.run

        async def wait(request: Any) -> Any:
            begun.set()
            await hold.wait()
            return await run(request)

        monkeypatch.setattr(graph, "run", wait)
        first.work()
        await asyncio.wait_for(begun.wait(), PATIENCE)
    assert await jobs(desk) == {str(session_id): "ENQUEUED"}
    async with working(settings) as second:
        second.work()
        assert await ended(desk, session_id) == "completed"


async def test_a_session_run_in_place_that_was_left_behind_gets_a_job(settings: Settings, desk: Moot) -> None:
    session_id = (await desk.start(**ASKED)).id
    repository = desk.coordinator._repository
    now = desk.coordinator.sessions._lease_clock.now()
    assert desk.jobs.engine._client is not None
    await desk.jobs.engine._client.delete_workflow_async(str(session_id))
    await repository.acquire(session_id, "a process that died", now, now - timedelta(seconds=1))
    async with working(settings) as worker:
        worker.work()
        assert await ended(desk, session_id) == "completed"


async def test_jobs_that_ended_long_ago_are_removed_and_no_others(
    settings: Settings, desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = (await desk.start(**ASKED)).id
    async with working(settings) as worker:
        worker.work()
        assert await ended(desk, ran) == "completed"
    waits = (await desk.start(**ASKED)).id
    assert await jobs(desk) == {str(ran): "SUCCESS", str(waits): "ENQUEUED"}
    await desk.jobs.engine.clear_ended()
    assert len(await jobs(desk)) == 2, "it ended a moment ago"
    monkeypatch.setattr(engine, "KEPT", timedelta(hours=-1))
    monkeypatch.setattr(engine, "AT_A_TIME", 1)
    await desk.jobs.engine.clear_ended()
    assert await jobs(desk) == {str(waits): "ENQUEUED"}


async def test_what_a_process_killed_before_packing_left_is_packed_when_its_job_is_removed(
    settings: Settings, desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(_: list[UUID]) -> None: ...

    async def count_packed() -> int:
        assert desk.database is not None
        async with desk.database.session() as db:
            return len((await db.execute(select(TextRow.id))).all())

    session_id = (await desk.start(**ASKED)).id
    monkeypatch.setattr(packing, "LEAST_SESSION", 1)
    async with working(settings) as worker:
        monkeypatch.setattr(worker.trail, "_packing", GroupCommit(die))
        worker.work()
        assert await ended(desk, session_id) == "completed"
    assert await count_packed() == 0
    monkeypatch.setattr(engine, "KEPT", timedelta(hours=-1))
    await desk.jobs.engine.clear_ended()
    assert (await count_packed() > 0, await jobs(desk)) == (True, {})
    assert (await desk.verify(session_id)).intact


async def test_what_was_put_back_keeps_its_place_and_what_has_no_job_gets_one(
    settings: Settings, desk: Moot
) -> None:
    first, second = [(await desk.start(**ASKED)).id for _ in range(2)]
    client = desk.jobs.engine._client
    assert client is not None
    await client.delete_workflow_async(str(second))
    assert await desk.jobs.engine.put_back([first, second]) == [second]
    assert await jobs(desk) == dict.fromkeys(map(str, [first, second]), "ENQUEUED")
    async with working(settings) as worker:
        worker.work()
        assert await ended(desk, second) == "completed"
    assert await desk.jobs.engine.put_back([second]) == [second]
    assert (await jobs(desk))[str(second)] == "ENQUEUED"


async def test_what_was_begun_and_has_no_job_any_more_goes_on_before_what_is_new(
    settings: Settings, desk: Moot
) -> None:
    """As a session whose owner came back, turned away whoever was to take it over, and died."""
    new = [(await desk.start(**ASKED)).id for _ in range(2)]
    begun = (await desk.start(**ASKED)).id
    assert desk.jobs.engine._client is not None
    await desk.jobs.engine._client.delete_workflow_async(str(begun))
    await desk.jobs.engine.put_back([begun])
    async with working(settings.model_copy(update={"worker_sessions": 1})) as worker:
        worker.work()
        for session_id in (*new, begun):
            assert await ended(desk, session_id) == "completed"
    sessions = [await desk.session(session_id) for session_id in (*new, begun)]
    assert [one.id for one in sorted(sessions, key=lambda one: one.nodes[0].started_at)] == [begun, *new]


async def test_what_a_batch_held_back_for_long_gets_a_job_of_a_batch_and_what_a_worker_has_is_left_to_it(
    desk: Moot, database: Database
) -> None:
    """As sessions of a batch that goes on after hours: the jobs that ended meanwhile are gone."""
    held_back, taken = [(await desk.start(**ASKED)).id for _ in range(2)]
    client = desk.jobs.engine._client
    assert client is not None
    await client.delete_workflow_async(str(held_back))
    schema = "dbos." if "postgres" in database.safe_url else ""
    await database.write(
        lambda db: db.execute(text(f"UPDATE {schema}workflow_status SET status = 'PENDING'"))
    )
    await desk.coordinator.sessions.queue_again([held_back, taken])
    assert await jobs(desk) == {str(held_back): "ENQUEUED", str(taken): "PENDING"}
    [job] = await client.list_workflows_async(workflow_ids=[str(held_back)])
    assert job.queue_name == "batch"


async def test_what_a_worker_took_a_moment_ago_is_left_to_it(desk: Moot, database: Database) -> None:
    """As a session is that somebody has woken: begun before, and held by nobody until its worker takes it."""
    session_id = (await desk.start(**ASKED)).id
    schema = "dbos." if "postgres" in database.safe_url else ""
    milliseconds = int(desk.coordinator.sessions._lease_clock.now().timestamp() * 1000)
    taken = f"UPDATE {schema}workflow_status SET status = 'PENDING', started_at_epoch_ms = {milliseconds}"
    woken = "UPDATE research_sessions SET lease_token = 1"
    await database.write(lambda db: [db.execute(text(said)) for said in (taken, woken)])
    assert await desk.coordinator.sessions.find_left_behind() == [session_id]
    await desk.coordinator.sessions.look_after()
    assert await jobs(desk) == {str(session_id): "PENDING"}


async def test_one_desk_of_a_process_has_the_worker(settings: Settings, desk: Moot) -> None:
    async with working(settings) as first, working(settings) as second:
        await first.jobs.engine.work(lambda _: asyncio.sleep(0), worker="first", at_once=1)
        with pytest.raises(Unavailable, match="another desk"):
            await second.jobs.engine.work(lambda _: asyncio.sleep(0), worker="second", at_once=1)
