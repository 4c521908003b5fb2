"""Calls to a service outside: at its pace, within a deadline, again where that helps, and all on record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import SecretStr
from sqlalchemy import select

from moot.modules.market_data.container import MarketDataContainer, Sources
from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.infrastructure.providers.outside import (
    LONGEST_RESPONSE,
    HttpAnswer,
    OutsideSource,
    Pace,
    Trouble,
)
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.guard import Dependency, LeftAlone
from moot.shared.domain.rate_limits import Priority, Turns
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.call_audit import ExternalCalls
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.shared.infrastructure.rate_limit_store import SqlTurns
from moot.shared.infrastructure.tables import RateLimitRow
from moot.shared.infrastructure.working_time import WorkingTime
from tests.fakes.call_record import Record
from tests.fakes.clock import FixedClock, leap, settle

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)
FREE = Pace(calls=1000, per_seconds=1, concurrency=50)


class StoppedWatch:
    """Time that passes only while somebody sleeps; sleepers wake in order."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        until = self.time + seconds
        await asyncio.sleep(0)
        self.time = max(self.time, until)


class Service(OutsideSource):
    name = "service"
    market = Market.CN
    pace = Pace(calls=1, per_seconds=1, concurrency=1)
    hosts: ClassVar = {"slow": Pace(calls=1, per_seconds=5, concurrency=1)}
    deadline = 30.0

    def readers(self) -> dict[Any, Any]:
        return {}


def outside(watch: StoppedWatch | None = None, pace: Pace = FREE, **changes: Any) -> Service:
    watch = watch or StoppedWatch()
    return Service(pace=pace, now=watch.now, sleep=watch.sleep, **changes)


def answering(*outcomes: Any) -> Callable[[], Awaitable[Any]]:
    """One outcome after the other, raised if it is an error; the last one stays."""
    left = list(outcomes)

    async def fn() -> Any:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return fn


BUSY = Trouble(Unavailable("busy"), passing=True)


class TestPace:
    async def test_fifty_callers_at_once_never_exceed_the_window(self) -> None:
        watch = StoppedWatch()
        starts: list[float] = []

        async def fn() -> None:
            starts.append(watch.now())

        way = outside(watch, Pace(calls=7, per_seconds=10, concurrency=5))
        await asyncio.gather(*(way.call("x", {}, fn) for _ in range(50)))

        busiest = max(sum(start <= other < start + 10 for other in starts) for start in starts)
        assert len(starts) == 50
        assert busiest == 7
        assert starts[-1] == pytest.approx(70, rel=0.01)

    async def test_a_place_is_free_again_only_a_window_after_its_call_ended(self) -> None:
        watch = StoppedWatch()
        starts: list[float] = []

        async def slow() -> None:
            starts.append(watch.now())
            await watch.sleep(3)

        way = outside(watch, Pace(calls=1, per_seconds=10, concurrency=1))
        await way.call("x", {}, slow)
        await way.call("x", {}, slow)
        assert starts == [0, pytest.approx(13, rel=0.01)]

    async def test_each_host_has_a_pace_of_its_own(self) -> None:
        watch = StoppedWatch()
        starts: list[tuple[str, float]] = []

        async def fn(host: str) -> None:
            starts.append((host, watch.now()))

        way = Service(now=watch.now, sleep=watch.sleep)
        for host in ("", "slow", "", "slow"):
            await way.call("x", {}, partial(fn, host), host)
        seen = [("", 0), ("slow", 0), ("", 1), ("slow", 5)]
        assert starts == [(host, pytest.approx(at, rel=0.02)) for host, at in seen]

    async def test_a_call_that_is_not_made_takes_no_place(self) -> None:
        watch = StoppedWatch()

        @asynccontextmanager
        async def refuse(_: Dependency) -> AsyncIterator[None]:
            raise LeftAlone("not now", retry_after=60)
            yield

        way = outside(watch, Pace(calls=1, per_seconds=10, concurrency=1), guard=refuse)
        for _ in range(3):
            with pytest.raises(LeftAlone):
                await way.call("x", {}, answering(None))
        assert watch.slept == []

    async def test_no_more_calls_run_at_once_than_allowed(self) -> None:
        running, most = 0, 0

        async def fn() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

        way = Service(pace=Pace(calls=1000, per_seconds=1, concurrency=4))
        await asyncio.gather(*(way.call("x", {}, fn) for _ in range(50)))
        assert most == 4

    async def test_a_caller_that_gives_up_waiting_leaves_its_place_to_others(self) -> None:
        record = Record()
        watch, over = StoppedWatch(), asyncio.Event()

        async def sleep(seconds: float) -> None:
            await over.wait()
            await watch.sleep(seconds)

        pace = Pace(calls=1, per_seconds=60, concurrency=1)
        way = Service(pace=pace, recorder=record, now=watch.now, sleep=sleep)
        await way.call("first", {}, answering("a"))
        waiting = asyncio.create_task(way.call("second", {}, answering("b")))
        await settle()
        waiting.cancel()
        await asyncio.wait({waiting})
        over.set()
        assert await way.call("third", {}, answering("c")) == "c"
        assert [call.operation for call in record.calls] == ["first", "third"]


class TestALimitByMinute:
    """Counted where others count too, instead of the pace of this process alone."""

    @pytest.fixture
    def watch(self) -> StoppedWatch:
        return StoppedWatch()

    def source(self, watch: StoppedWatch, turns: Turns, per_minute: int, **more: Any) -> Service:
        return Service(now=watch.now, sleep=watch.sleep, turns=turns, per_minute=per_minute, **more)

    async def test_holds_for_all_who_count_together_and_all_hosts(self, watch: StoppedWatch) -> None:
        turns, starts = Turns(watch.now), list[float]()

        async def fn() -> None:
            starts.append(watch.now())

        paced = Pace(calls=50, per_seconds=1, concurrency=4)
        workers = [self.source(watch, turns, 6, pace=paced) for _ in range(3)]
        hosts = ("", "slow")
        await asyncio.gather(
            *(w.call("x", {}, fn, host) for w in workers for host in hosts for _ in range(3))
        )
        busiest = max(sum(start <= other < start + 60 for other in starts) for start in starts)
        assert (len(starts), busiest) == (18, 6)
        assert max(starts) < 150, "and none waits longer than it must"

    async def test_keeps_whoever_is_asked_one_by_one_at_that(self, watch: StoppedWatch) -> None:
        turns, starts = Turns(watch.now), list[float]()

        async def fn() -> None:
            starts.append(watch.now())

        workers = [self.source(watch, turns, 120) for _ in range(2)]
        await asyncio.gather(*(worker.call("x", {}, fn) for worker in workers for _ in range(4)))
        steps = [later - sooner for sooner, later in pairwise(starts)]
        assert min(steps) >= 0.5
        assert max(steps) < 0.6

    async def test_leaves_room_for_a_question_while_a_batch_syncs(self, watch: StoppedWatch) -> None:
        service = self.source(watch, Turns(watch.now), 10, pace=Pace(calls=50, per_seconds=1, concurrency=4))
        came: list[str] = []

        async def ask(priority: Priority) -> None:
            async def fn() -> None:
                came.append(f"{priority} at {watch.time:.0f}")

            with ExecutionContext(priority=priority).active():
                await service.call("x", {}, fn)

        batch = [asyncio.create_task(ask("batch")) for _ in range(12)]
        while len(came) < 8:
            await asyncio.sleep(0)
        await ask("interactive")
        assert came == ["batch at 0"] * 8 + ["interactive at 0"]
        await asyncio.gather(*batch)

    async def test_says_at_once_that_the_turn_comes_too_late(self, watch: StoppedWatch) -> None:
        service = self.source(watch, Turns(watch.now), 1)
        await service.call("x", {}, answering("fine"))
        async with WorkingTime(20, strict=True):
            with pytest.raises(Unavailable) as refused:
                await service.call("x", {}, answering("fine"))
        assert (refused.value.code, refused.value.details) == ("RATE_LIMITED", {"retry_after": 61})
        assert refused.value.in_locale("en-US") == (
            "service is asked 1 time(s) in 60 s at most, and the turn of this call would not come in time. "
            "To wait longer: MOOT_NODE_TIMEOUT; to ask more often, if the service allows it: "
            "MOOT_DATA_REQUESTS_PER_MINUTE."
        )
        assert refused.value.in_locale("zh-CN") == (
            "service 每 60 秒最多请求 1 次，这次调用无法及时轮到。要等更久：MOOT_NODE_TIMEOUT；"
            "要提高频率（须对方允许）：MOOT_DATA_REQUESTS_PER_MINUTE。"
        )

    async def test_takes_none_of_the_time_a_node_has_for_its_own_work(self) -> None:
        async def sleep(seconds: float) -> None:
            leap(seconds)
            await settle()

        service = Service(sleep=sleep, per_minute=1, turns=Turns())
        async with WorkingTime(20):
            for _ in range(3):
                await service.call("x", {}, answering("fine"))

    async def test_is_kept_in_the_database_by_a_desk_that_has_one(self, sqlite_database: Database) -> None:
        sources = Sources(SecretStr("t"), "http://127.0.0.1:9", per_minute={"tushare": 480})
        made = {
            "demo_seed": 1,
            "lake": Path("lake"),
            "sources": sources,
            "calls": ExternalCalls(None),
            "turns": SqlTurns(sqlite_database),
        }
        tushare = MarketDataContainer(FixedClock(NOW), **made)._providers[Market.CN]["tushare"]
        await tushare.call("x", {}, answering("fine"))
        async with sqlite_database.session() as db:
            [limit] = await db.scalars(select(RateLimitRow))
        assert (limit.key, [use[1:] for use in limit.uses]) == ("data:tushare", [[1, 0]])
        assert Pace(480, 60.0, 4) == tushare.pace.at(480)


class TestAnotherAttempt:
    async def test_passing_trouble_is_tried_again_after_growing_pauses(self) -> None:
        watch = StoppedWatch()
        assert await outside(watch).call("x", {}, answering(BUSY, BUSY, BUSY, "fine")) == "fine"
        assert watch.slept == [3, 6, 12]

    async def test_after_the_last_pause_the_caller_hears_the_trouble(self) -> None:
        record = Record()
        with pytest.raises(Unavailable, match="busy"):
            await outside(recorder=record).call("x", {}, answering(BUSY))
        assert len(record.calls) == 4

    @pytest.mark.parametrize("error", [ConnectionResetError("gone"), TimeoutError(), OSError("down")])
    async def test_what_the_network_does_is_passing(self, error: OSError) -> None:
        assert await outside().call("x", {}, answering(error, "fine")) == "fine"

    @pytest.mark.parametrize(
        "error", [Trouble(Unavailable("token")), Unavailable("token"), NotOffered("no permission")]
    )
    async def test_what_no_attempt_can_change_is_asked_once(self, error: Exception) -> None:
        record = Record()
        with pytest.raises(Unavailable, match=r"token|permission"):
            await outside(recorder=record).call("x", {}, answering(error, "fine"))
        assert len(record.calls) == 1

    async def test_a_call_past_its_deadline_is_broken_off_and_tried_again(self) -> None:
        tries = 0

        async def fn() -> str:
            nonlocal tries
            tries += 1
            if tries == 1:
                leap(60)
                await asyncio.Event().wait()
            return "fine"

        assert await outside(deadline=60).call("x", {}, fn) == "fine"
        assert tries == 2

    async def test_the_message_of_a_time_out_names_service_operation_and_deadline(self) -> None:
        with pytest.raises(Unavailable) as told:
            await outside(deadline=0.01, pauses=()).call("bars", {}, asyncio.Event().wait)
        assert told.value.in_locale("en-US").startswith("service did not answer within 0.01 s (bars).")
        assert told.value.in_locale("zh-CN").startswith("service 在 0.01 秒内没有应答（bars）")

    async def test_a_defect_is_not_hidden_and_not_repeated(self) -> None:
        record = Record()
        with pytest.raises(KeyError):
            await outside(recorder=record).call("x", {}, answering(KeyError("column")))
        assert [(call.status, call.error_message) for call in record.calls] == [
            ("failed", "broken off before an answer")
        ]


class TestRecord:
    async def test_each_attempt_is_recorded_once_with_what_came_back(self) -> None:
        watch, record = StoppedWatch(), Record()

        async def fn() -> HttpAnswer:
            await watch.sleep(0.25)
            if not record.calls:
                raise Trouble(Unavailable("HTTP 502"), passing=True, answer=HttpAnswer(502, "oops"))
            return HttpAnswer(200, "[]")

        await outside(watch, recorder=record).call("daily", {"symbol": "A"}, fn)
        shared = {"service_name": "service", "operation": "daily", "request_params": {"symbol": "A"}}
        assert [call.model_dump() for call in record.calls] == [
            shared
            | {"response_data": "oops", "status_code": 502, "latency_ms": 250}
            | {"status": "failed", "error_message": "HTTP 502"},
            shared
            | {"response_data": "[]", "status_code": 200, "latency_ms": 250}
            | {"status": "success", "error_message": None},
        ]

    async def test_an_answer_that_is_not_http_is_recorded_as_it_prints(self) -> None:
        record = Record()
        await outside(recorder=record).call("x", {}, answering([1, 2]))
        assert record.calls[0].response_data == "[1, 2]"
        assert record.calls[0].status_code is None

    async def test_a_long_answer_is_cut_on_record(self) -> None:
        record = Record()
        await outside(recorder=record).call("x", {}, answering(HttpAnswer(200, "x" * 1_000_000)))
        kept = record.calls[0].response_data
        assert kept is not None
        assert kept.endswith("x… (1000000 characters)")
        assert len(kept) < LONGEST_RESPONSE + 30

    async def test_a_cancelled_call_is_on_record(self) -> None:
        record = Record()
        begun = asyncio.Event()

        async def fn() -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(outside(recorder=record).call("x", {}, fn))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [call.status for call in record.calls] == ["failed"]

    async def test_the_text_of_a_network_error_stays_out_of_message_and_record(self) -> None:
        record = Record()
        leaky = ConnectionError("POST with secret-123 failed")
        with pytest.raises(Unavailable) as told:
            await outside(recorder=record).call("x", {}, answering(leaky))
        assert "secret-123" not in f"{told.value} {record.calls}"
        assert "ConnectionError" in str(told.value)
