"""Over any minute no more than a limit allows, however many ask in whatever order, and each in its turn."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text, update
from structlog.testing import capture_logs

from moot.shared.domain.rate_limits import (
    PARTS,
    Entrance,
    NotYet,
    Priority,
    Rate,
    Turn,
    Turns,
    Uses,
    settle,
    share,
    take,
)
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.rate_limit_store import SqlTurns
from moot.shared.infrastructure.tables import RateLimitRow
from tests.fakes.clock import leap

SPAN = 60_000
STEP = SPAN // PARTS
RATE = Rate("model:default:main", requests=20)
LONG = 1800.0
"""Seconds: a span that no test outlives, however busy the machine is."""


class Asked(NamedTuple):
    """After a while somebody asks, and uses so much of what it set aside (per cent), once so many others have asked.

    `waits`: until it is let in, and the others stand behind.
    """

    after: int
    tokens: int
    used: int
    later: int
    priority: Priority
    waits: bool = False


class Passed(NamedTuple):
    at: int
    tokens: int
    priority: Priority


ASKED = st.builds(
    Asked,
    st.one_of(st.just(0), st.integers(0, 200), st.integers(0, SPAN)),
    st.integers(0, 120),
    st.integers(0, 100),
    st.integers(0, 4),
    st.sampled_from(["interactive", "batch"]),
    st.booleans(),
)


def ask_all(rate: Rate, everybody: list[Asked]) -> list[Passed]:
    """Those who were let in, with what each of them came to use."""
    now, uses, passed = 10**12, Uses(), list[Passed]()
    open_turns: list[tuple[int, Turn, int]] = []
    for place, asked in enumerate(everybody):
        now += asked.after
        for due in [entry for entry in open_turns if entry[0] <= place]:
            open_turns.remove(due)
            uses = settle(uses, due[1], (1, due[2]), now)
        try:
            uses, turn = take(uses, rate, asked.tokens, asked.priority, now)
        except NotYet as soon:
            then = now + round(soon.seconds * 1000)
            assert not _has_room(uses, rate, asked, then - 1), "told a moment too late"
            if not asked.waits:
                continue
            now = then
            uses, turn = take(uses, rate, asked.tokens, asked.priority, now)
        used = turn.tokens * asked.used // 100
        passed.append(Passed(now, used, asked.priority))
        open_turns.append((place + asked.later, turn, used))
    return passed


def _has_room(uses: Uses, rate: Rate, asked: Asked, now: int) -> bool:
    try:
        take(uses, rate, asked.tokens, asked.priority, now)
    except NotYet:
        return False
    return True


@settings(max_examples=150)
@given(st.integers(1, 9), st.integers(1, 100), st.lists(ASKED, max_size=50))
def test_no_minute_sees_more_than_the_limit_whoever_asks_in_whatever_order(requests, tokens, everybody):
    passed = ask_all(Rate("m", requests, tokens), everybody)
    for first in passed:
        minute = [each for each in passed if first.at <= each.at < first.at + SPAN]
        assert len(minute) <= requests
        assert sum(each.tokens for each in minute) <= tokens


@settings(max_examples=100)
@given(st.integers(1, 20), st.lists(ASKED, max_size=60))
def test_a_batch_leaves_a_fifth_of_every_minute_to_those_who_wait(requests, everybody):
    passed = ask_all(Rate("m", requests), everybody)
    for last in passed:
        before = [each for each in passed if last.at - SPAN < each.at <= last.at]
        if last.priority == "batch":
            assert len(before[: before.index(last) + 1]) <= max(1, requests * 8 // 10)


def test_a_batch_may_use_one_where_there_is_only_one():
    assert [share(most, "batch") for most in (1, 2, 5, 10, 100)] == [1, 1, 4, 8, 80]


class TestACall:
    def test_is_told_when_its_turn_comes(self):
        uses, _ = take((), Rate("m", 1), 0, "interactive", now=0)
        with pytest.raises(NotYet) as soon:
            take(uses, Rate("m", 1), 0, "interactive", now=10_000)
        assert (soon.value.seconds, soon.value.again) == (50.5, 50.5)

    def test_makes_room_by_using_less_than_it_set_aside(self):
        rate = Rate("m", tokens=1_000)
        uses, turn = take((), rate, 900, "interactive", now=0)
        with pytest.raises(NotYet) as soon:
            take(uses, rate, 500, "interactive", now=0)
        assert (soon.value.seconds, soon.value.again) == (60.5, 1)
        take(settle(uses, turn, (1, 200), now=5), rate, 500, "interactive", now=5)

    def test_that_used_more_than_it_set_aside_keeps_others_waiting(self):
        rate = Rate("m", tokens=1_000)
        uses, turn = take((), rate, 100, "interactive", now=0)
        with pytest.raises(NotYet):
            take(settle(uses, turn, (1, 5_000), now=5), rate, 1, "interactive", now=5)

    def test_that_was_not_made_leaves_its_place_to_others(self):
        uses, turn = take((), Rate("m", 1), 0, "interactive", now=0)
        take(settle(uses, turn, (0, 0), now=5), Rate("m", 1), 0, "interactive", now=5)

    def test_that_may_use_more_than_a_whole_minute_waits_until_nothing_else_is_used(self):
        rate = Rate("m", tokens=1_000)
        uses, _ = take((), rate, 1, "interactive", now=0)
        with pytest.raises(NotYet) as soon:
            take(uses, rate, 50_000, "batch", now=0)
        uses, turn = take(uses, rate, 50_000, "batch", now=round(soon.value.seconds * 1000))
        assert turn.tokens == 800

    def test_that_lasts_holds_its_place_until_a_span_after_its_end(self):
        rate = Rate("data:tushare", 1, lasting=90)
        uses, turn = take((), rate, 0, "interactive", now=0)
        with pytest.raises(NotYet) as soon:
            take(uses, rate, 0, "interactive", now=70_000)
        assert (soon.value.seconds, soon.value.again) == (80.5, 1), "it may end any moment"
        uses = settle(uses, turn, (1, 0), now=70_000)
        assert not _has_room(uses, rate, Asked(0, 0, 0, 0, "interactive"), 129_999)
        take(uses, rate, 0, "interactive", now=131_000)

    def test_whose_end_nobody_tells_is_forgotten_in_time(self):
        rate = Rate("data:tushare", 1, lasting=90)
        uses, _ = take((), rate, 0, "interactive", now=0)
        take(uses, rate, 0, "interactive", now=150_500)

    def test_is_not_kept_waiting_for_long_by_a_clock_that_was_set_back(self):
        uses, _ = take((), Rate("m", 1), 0, "interactive", now=3_600_000)
        take(uses, Rate("m", 1), 0, "interactive", now=0)

    def test_leaves_few_numbers_behind_however_often_it_is_made(self):
        uses: Uses = []
        for n in range(2_000):
            uses, _ = take(uses, Rate("m", 100_000), 7, "interactive", now=n * 60)
        assert len(uses) <= PARTS + 1
        assert sum(use.requests for use in uses) >= 1_000


class Watch:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until = self.time + seconds
        await asyncio.sleep(0)
        self.time = max(self.time, until)


class TestAtTheEntrance:
    async def test_everybody_gets_in_each_in_its_turn(self):
        watch, came = Watch(), list[tuple[float, int]]()
        turns, entrance = Turns(watch.now), Entrance("m", None, watch.sleep)

        async def call(n: int) -> None:
            async with entrance.enter("interactive", lambda: turns.take(RATE)):
                came.append((watch.time, n))

        with capture_logs() as logs:
            await asyncio.gather(*(call(n) for n in range(50)))
        assert [n for _, n in came] == list(range(50))
        assert [round(at) for at, _ in came] == [0] * 20 + [60] * 20 + [121] * 10
        assert {(log["event"], log["limit"]) for log in logs} == {("waiting for a turn", "m")}
        assert len(logs) == 2, "only the first in line asks"

    async def test_a_question_passes_a_batch_that_waits(self):
        watch = Watch()
        turns, entrance, came = Turns(watch.now), Entrance("m", 1, watch.sleep), list[str]()

        async def call(priority: Priority) -> None:
            async with entrance.enter(priority, lambda: turns.take(RATE, priority=priority)):
                came.append(f"{priority} at {watch.time:.1f}")

        batch = [asyncio.create_task(call("batch")) for _ in range(100)]
        while len(came) < 16:
            await asyncio.sleep(0)
        await call("interactive")
        await asyncio.gather(*batch)
        assert came[16] == "interactive at 0.0"
        assert came[17] == "batch at 60.5"

    async def test_a_batch_leaves_a_place_free_to_those_who_wait(self):
        entrance, done = Entrance("m", 5), asyncio.Event()
        inside: list[Priority] = []

        async def call(priority: Priority) -> None:
            async with entrance.enter(priority, nothing):
                inside.append(priority)
                await done.wait()

        calls = [asyncio.create_task(call("batch")) for _ in range(9)]
        await pause()
        assert inside == ["batch"] * 4
        calls.append(asyncio.create_task(call("interactive")))
        await pause()
        assert inside[4:] == ["interactive"]
        done.set()
        await asyncio.gather(*calls)

    async def test_a_wait_that_cannot_end_in_time_is_not_begun(self):
        watch = Watch()
        turns, entrance = Turns(watch.now), Entrance("m", None, watch.sleep)
        await turns.take(Rate("m", 1))
        for limits in ({"longest": 30.0}, {"patience": 5.0}):
            with pytest.raises(NotYet) as soon:
                async with entrance.enter("interactive", lambda: turns.take(Rate("m", 1)), **limits):
                    raise AssertionError("it is not its turn")
            assert (soon.value.seconds, watch.time) == (60.5, 0)

    async def test_who_gives_up_waiting_leaves_nothing_behind(self):
        turns, entrance = Turns(), Entrance("m", 1)
        await turns.take(Rate("m", 1))
        waiting = asyncio.create_task(enter(entrance, turns, Rate("m", 1)))
        await pause()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert await enter(entrance, turns, Rate("another", 1)) is None


async def enter(entrance: Entrance, turns: Turns, rate: Rate) -> None:
    async with entrance.enter("interactive", lambda: turns.take(rate)):
        pass


async def nothing() -> None:
    pass


async def pause() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def others(database: Database) -> AsyncIterator[list[Turns]]:
    """The same limit, seen through connections of their own, as other processes have."""
    more = [Database(database._url.render_as_string(hide_password=False)) for _ in range(3)]
    yield [SqlTurns(each) for each in (database, *more)]
    for each in more:
        await each.close()


async def let_in(turns: Turns, rate: Rate, **how: Any) -> bool:
    try:
        await turns.take(rate, **how)
    except NotYet:
        return False
    return True


async def move(database: Database, seconds: float) -> None:
    """What was used so far was used so much earlier."""
    async with database.session() as db, db.begin():
        for row in await db.scalars(select(RateLimitRow)):
            earlier = [[at - round(seconds * 1000), *used] for at, *used in row.uses]
            await db.execute(update(RateLimitRow).values(uses=earlier).where(RateLimitRow.key == row.key))


async def look_at_clock(database: Database) -> int:
    """In its own words, milliseconds."""
    moment = (
        "clock_timestamp()" if "postgres" in database.safe_url else "strftime('%Y-%m-%d %H:%M:%f', 'now')"
    )
    async with database.session() as db:
        now = await db.scalar(text(f"SELECT {moment}"))
    told = now if isinstance(now, datetime) else datetime.fromisoformat(now).replace(tzinfo=UTC)
    return math.floor(Decimal(repr(told.timestamp())) * 1000)


class TestInADatabase:
    async def test_all_who_share_it_get_exactly_what_the_limit_allows(self, others, database):
        rate = Rate("model:default:main", requests=20, tokens=10**6, seconds=LONG)
        asked = (let_in(others[n % 4], rate, tokens=10, priority="interactive") for n in range(60))
        assert sum(await asyncio.gather(*asked)) == 20
        await move(database, 2 * LONG)
        asked = (let_in(others[n % 4], rate) for n in range(30))
        assert sum(await asyncio.gather(*asked)) == 20

    async def test_tokens_are_shared_too_and_a_batch_gets_its_part_of_them(self, others):
        rate = Rate("model:default:main", tokens=1_000, seconds=LONG)
        asked = (let_in(others[n % 4], rate, tokens=100, priority="batch") for n in range(20))
        assert sum(await asyncio.gather(*asked)) == 8
        asked = (let_in(others[n % 4], rate, tokens=100) for n in range(20))
        assert sum(await asyncio.gather(*asked)) == 2

    @pytest.mark.parametrize("off", [-2 * LONG, 2 * LONG])
    async def test_whose_own_clock_is_off_neither_exceeds_nor_starves(
        self, others, database, monkeypatch, off
    ):
        rate, true_time = RATE._replace(seconds=LONG), time.time
        assert await let_in(others[0], rate)
        monkeypatch.setattr("time.time", lambda: true_time() + off)
        leap(max(off, 0))
        assert sum(await asyncio.gather(*(let_in(others[n % 4], rate) for n in range(40)))) == 19
        await move(database, 2 * LONG)
        assert sum(await asyncio.gather(*(let_in(others[n % 4], rate) for n in range(40)))) == 20

    async def test_are_counted_by_its_own_clock(self, others, database):
        rate = Rate("model:default:main", requests=2, seconds=0.12)
        before = await look_at_clock(database)
        turn = await others[0].take(rate)
        assert before < turn.at <= await look_at_clock(database) + 1

    async def test_wait_for_each_other_and_then_look_at_the_clock(self, postgres_database):
        turns, rate = SqlTurns(postgres_database), Rate("model:default:main", requests=9, seconds=0.12)
        await turns.take(rate)
        async with postgres_database.session() as db, db.begin():
            await db.execute(select(RateLimitRow).with_for_update())
            waiting = asyncio.create_task(turns.take(rate))
            while await db.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")) == 0:
                await asyncio.sleep(0)
            came = await look_at_clock(postgres_database)
            while (left := await look_at_clock(postgres_database)) < came + 5:
                await asyncio.sleep(0)
        assert (await waiting).at > left

    async def test_what_was_set_aside_is_settled_by_what_was_used(self, others):
        rate = Rate("model:default:main", requests=2, tokens=100, seconds=LONG)
        turn = await others[0].take(rate, tokens=90)
        assert not await let_in(others[1], rate, tokens=50)
        await others[2].settle(turn, made=True, tokens=20)
        second = await others[1].take(rate, tokens=50)
        assert not await let_in(others[3], rate, tokens=1)
        await others[3].settle(second, made=False)
        assert await let_in(others[0], rate, tokens=80)

    async def test_limits_of_others_are_their_own(self, others):
        for name in ("data:tushare", "data:akshare"):
            rate = Rate(name, requests=3, seconds=LONG)
            assert sum(await asyncio.gather(*(let_in(others[n % 4], rate) for n in range(8)))) == 3
