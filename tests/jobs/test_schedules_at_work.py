"""Schedules of the whole desk: real workers, real batches, and what somebody outside is told of them."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import update

from moot.desk import Moot
from moot.modules.jobs.application.batches import BatchView
from moot.modules.jobs.application.destinations import DestinationBody
from moot.modules.jobs.application.schedules import ScheduleRun
from moot.modules.jobs.infrastructure.batch_desk import refresh
from moot.modules.jobs.infrastructure.schedule_store import ScheduleRow
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.entry.forked import Forge
from tests.fakes.chat_servers import WEBHOOK_SECRET, ChatServer, running_chat_server
from tests.fakes.clock import PATIENCE, FixedClock, HandClock
from tests.fakes.tushare_server import ODD, TOKEN, TushareServer
from tests.fakes.tushare_tables import tushare_tables

FIRST, SECOND = datetime(2025, 6, 30, 10, 9, tzinfo=UTC), datetime(2025, 12, 31, 10, 9, tzinfo=UTC)
"""A minute before it is due in Shanghai, on two days on which the demo market is judged differently."""
SHARES = ["900001.DEMO", "900002.DEMO"]
AT_THE_CLOSE = "15:00"
"""So it is never too late: with the next session's end comes the next due moment."""


@pytest.fixture
def settings(home: Path, database: Database) -> Settings:
    return Settings(home=home, database_url=database.safe_url, log_level="error", lease_seconds=1)


@pytest.fixture
async def chat() -> AsyncIterator[ChatServer]:
    async with running_chat_server(FIRST.timestamp()) as server:
        yield server


async def until_begun(desk: Moot, runs: int = 1) -> list[ScheduleRun]:
    async with asyncio.timeout(3 * PATIENCE):
        while True:
            found = (await desk.schedule("nightly")).runs
            if len(found) >= runs and all(run.status == "begun" for run in found):
                return found
            await asyncio.sleep(0.05)


async def until_ended(desk: Moot, run: ScheduleRun) -> BatchView:
    assert run.batch_id is not None
    async with asyncio.timeout(3 * PATIENCE):
        while (batch := await desk.batch(run.batch_id)).ended_at is None:
            await asyncio.sleep(0.05)
    return batch


async def test_a_worker_begins_what_is_due_and_tells_of_its_end_once(
    settings: Settings, chat: ChatServer
) -> None:
    clock = HandClock(FIRST)
    places: dict[str, Any] = {"url": SecretStr(chat.address("webhook")), "secret": SecretStr(WEBHOOK_SECRET)}
    async with Moot(settings.model_copy(update={"worker": True}), clock=clock) as desk:
        for locale in ("en-US", "zh-CN"):
            place = DestinationBody(name=locale, kind="webhook", locale=locale, **places)
            await desk.jobs.destinations().add(place)
        await desk.add_schedule("nightly", SHARES, top=2, locale="en-US")
        desk.work()
        assert (await desk.schedule("nightly")).runs == []
        clock.move(61)
        (run,) = await until_begun(desk)
        first = await until_ended(desk, run)
        assert (run.due_at, first.as_of, first.name) == (FIRST + timedelta(minutes=1),) * 2 + ("nightly",)
        assert (first.requested_by, first.progress.states, run.synced) == (
            "schedule nightly",
            {"judged": 2},
            None,
        )
        clock.move((SECOND - FIRST).total_seconds())
        newest, _ = await until_begun(desk, 2)
        second = await until_ended(desk, newest)
        assert (second.as_of, newest.missed > 100) == (SECOND + timedelta(minutes=1), True)
        await desk.rest()
        chat.now = clock.now().timestamp()
        assert (await desk.jobs.deliver_now(), await desk.jobs.deliver_now()) == (4, 0)
        changed = len((await desk.batch_results(second.id)).changed)
    assert changed > 0, "two days on which the demo market is judged differently"
    assert [told["occasion"] for told in chat.heard] == ["batch"] * 4
    told = {one["locale"]: one for one in chat.heard if one["batch_id"] == str(second.id)}
    title, *lines = told["en-US"]["text"].splitlines()
    counts = f"2 shares looked through, 2 judged; {changed} changed verdicts"
    assert title == f"Batch nightly has ended: {counts}"
    assert lines[changed] == f"As of 2025-12-31. All of it: moot batch show {second.id}"
    assert lines[-1] == "This is research, not investment advice."
    assert len(told["en-US"]["items"]) == changed
    assert told["zh-CN"]["title"] == f"批次 nightly 已结束：筛选 2 只，裁决 2 只；裁决变化 {changed} 条"


async def make_due(desk: Moot, days: int) -> None:
    """As if nobody had worked for so many days."""
    view = await desk.add_schedule("nightly", SHARES, at=AT_THE_CLOSE, top=2, experts=["macro_intelligence"])
    past = update(ScheduleRow).values(next_due=view.next_due - timedelta(days=days))
    assert desk.database is not None
    await desk.database.write(lambda db: db.execute(past))


async def hire(forge: Forge, settings: Settings) -> int:
    given = settings.model_dump(exclude_unset=True)
    env = {f"MOOT_{name.upper()}": str(value) for name, value in given.items()}
    return await forge.start("worker", log=settings.home / "worker.txt", **env)


async def dismiss(forge: Forge, pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, SIGTERM)
    assert [await forge.ended(pid) for pid in pids] == [0] * len(pids)


async def test_two_workers_begin_it_once(forge: Forge, home: Path, postgres_database: Database) -> None:
    url = postgres_database.safe_url
    settings = Settings(home=home, database_url=url, log_level="error", lease_seconds=1)
    async with Moot(settings) as desk:
        await make_due(desk, 21)
        workers = [await hire(forge, settings) for _ in range(2)]
        (run,) = await until_begun(desk)
        batch = await until_ended(desk, run)
        await dismiss(forge, workers)
        view = await desk.schedule("nightly")
        assert (len(view.runs), (await desk.batches()).total, (await desk.sessions()).total) == (1, 1, 2)
        assert (run.missed > 10, batch.id, batch.status) == (True, run.id, "done")
        assert view.next_due > datetime.now(UTC)


async def test_one_killed_as_it_falls_due_is_followed_by_another(forge: Forge, settings: Settings) -> None:
    async with Moot(settings) as desk:
        await make_due(desk, 7)
        killed = await hire(forge, settings)
        async with asyncio.timeout(3 * PATIENCE):
            while not (await desk.schedule("nightly")).runs:
                await asyncio.sleep(0.001)
        os.kill(killed, SIGKILL)
        assert await forge.ended(killed) == -SIGKILL
        other = await hire(forge, settings)
        (run,) = await until_begun(desk)
        assert (await until_ended(desk, run)).status == "done"
        await dismiss(forge, [other])
        assert ((await desk.batches()).total, (await desk.sessions()).total) == (1, 2)


async def test_a_machine_in_another_zone_keeps_the_exchanges_time(
    forge: Forge, home: Path, sqlite_database: Database
) -> None:
    settings = Settings(home=home, database_url=sqlite_database.safe_url, log_level="error", lease_seconds=1)
    async with Moot(settings) as desk:
        await make_due(desk, 7)
        env = {f"MOOT_{name.upper()}": str(v) for name, v in settings.model_dump(exclude_unset=True).items()}
        pid = await forge.start("worker", log=home / "worker.txt", **env, TZ="America/Los_Angeles")
        (run,) = await until_begun(desk)
        await dismiss(forge, [pid])
        view = await desk.schedule("nightly")
    assert [moment.hour for moment in (run.due_at, view.next_due)] == [7, 7], "15:00 in Shanghai"


@pytest.mark.parametrize("hours", [-1, 1])
async def test_the_store_tells_the_time_and_nobody_is_ahead_of_it(
    home: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Also on a machine that slept, and has counted too little since it asked the store."""
    off, leeway = timedelta(hours=hours), timedelta(minutes=20)
    settings = Settings(home=home, database_url=postgres_database.safe_url, log_level="error")
    monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) + off)
    async with Moot(settings) as desk:
        assert desk.database is not None
        desk.database.clock.set(datetime.now(UTC) - timedelta(days=3))
        told = await desk.jobs._tell_time()
    assert abs(told - (datetime.now(UTC) + min(off, timedelta()))) < leeway


async def test_the_data_of_the_day_are_fetched_first_and_what_fails_is_told(home: Path) -> None:
    """After the close in Shanghai the bars of the day are there; a kind of data that is not stops nothing."""
    now = datetime(2026, 6, 30, 10, 10, tzinfo=UTC)
    share = "600519.SH"
    tables = await tushare_tables(FixedClock(now + timedelta(days=1)), [share], date(2025, 6, 1))
    with TushareServer(tables) as server:
        server.always["daily_basic"] = ODD
        settings = Settings(home=home, log_level="error", tushare_token=TOKEN, tushare_url=server.url)  # type: ignore[arg-type]
        async with Moot(settings, clock=FixedClock(now)) as desk:
            upkeep, data = desk.market_data.upkeep(), desk.market_data.market_data()
            first = await refresh(upkeep, [share, "900001.DEMO"], "zh-CN")
            asked = len(server.requests)
            bars = await data.daily_bars(Symbol.parse(share), date(2026, 6, 30), date(2026, 6, 30), as_of=now)
            assert (len(bars), len(server.requests)) == (1, asked), "there already when it is researched"
            assert await refresh(upkeep, ["900001.DEMO"], "zh-CN") is None
    assert first is not None
    assert (first.fetched > 5, first.failed) == (True, 1)
    assert first.errors[0].startswith("600519.SH 每日估值: tushare: ")
    assert TOKEN not in str(first)
