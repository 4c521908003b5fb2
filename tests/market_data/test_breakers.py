"""Data sources that fail: when they are left alone, what does not count against them, and who is asked instead."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime

import pytest
from pydantic import SecretStr

from moot.modules.governance.application.circuit_breaker import (
    Breakers,
    BreakerState,
    CircuitBreakerOpenError,
)
from moot.modules.market_data.application.sync import SyncService
from moot.modules.market_data.container import MarketDataContainer, Sources
from moot.modules.market_data.domain.facts import BARS, VALUATIONS
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.providers.outside import Trouble
from moot.modules.market_data.infrastructure.providers.tushare import TushareProvider
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.guard import Dependency, LeftAlone
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.infrastructure.call_audit import ExternalCalls
from tests.fakes import tushare_server as wire
from tests.fakes.call_record import Record
from tests.fakes.clock import FixedClock, HandClock
from tests.fakes.market_data import FakeMarketDataProvider, a_bar
from tests.fakes.tushare_server import Fault, TushareServer, provider
from tests.market_data.test_outside import answering, outside

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)
SYMBOL = "600519.SH"
DAYS = (date(2024, 1, 1), date(2024, 12, 31))
NAME = "data:tushare"
ONCE = ()
"""No pauses: one attempt a call."""
CLOSED, HALF_OPEN, OPEN = BreakerState


@pytest.fixture
def server() -> Iterator[TushareServer]:
    with TushareServer() as server:
        yield server


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW)


@pytest.fixture
def breakers(clock: HandClock) -> Breakers:
    return Breakers(clock)


async def fail(tushare: TushareProvider, times: int = 1) -> Unavailable:
    for _ in range(times):
        with pytest.raises(Unavailable) as raised:
            await tushare.read(VALUATIONS, SYMBOL, *DAYS)
    return raised.value


async def test_five_failed_attempts_are_all_that_reach_a_broken_source(server, breakers):
    server.always["daily_basic"] = wire.SERVER_ERROR
    record = Record()
    async with provider(server, guard=breakers.guard, recorder=record) as tushare:
        assert not isinstance(await fail(tushare), CircuitBreakerOpenError)
        assert len(server.requests) == 4
        assert isinstance(await fail(tushare), CircuitBreakerOpenError)
        refused = await fail(tushare)
    assert (len(server.requests), len(record.calls)) == (5, 5)
    assert (breakers.of(NAME).state, breakers.of(NAME).report().rejected) == (OPEN, 2)
    assert refused.details == {"dependency": NAME, "retry_after": 60}


async def test_after_a_minute_one_call_finds_out_that_it_works_again(server, breakers, clock):
    server.script("daily_basic", *[wire.RESET] * 5)
    async with provider(server, guard=breakers.guard, pauses=ONCE) as tushare:
        await fail(tushare, 6)
        assert len(server.requests) == 5
        clock.move(60)
        assert list(await tushare.read(VALUATIONS, SYMBOL, *DAYS)) == []
    assert (len(server.requests), breakers.of(NAME).state) == (6, CLOSED)


@pytest.mark.parametrize(
    "fault",
    [wire.RATE, wire.DAILY_QUOTA, wire.NO_PERMISSION, wire.BAD_TOKEN, wire.FORBIDDEN, Fault(status=429)],
)
async def test_a_refusal_is_not_the_sources_failure(server, breakers, fault):
    server.always["daily_basic"] = fault
    async with provider(server, guard=breakers.guard, pauses=ONCE) as tushare:
        await fail(tushare, 6)
    asked = 1 if fault is wire.NO_PERMISSION else 6  # that is remembered
    assert (len(server.requests), breakers.of(NAME).report().failed) == (asked, 0)


async def test_silence_until_the_deadline_counts(server, breakers):
    server.always["daily_basic"] = wire.HANG
    async with provider(server, guard=breakers.guard, pauses=ONCE, deadline=0.05) as tushare:
        await fail(tushare, 5)
    assert breakers.of(NAME).state is OPEN


async def test_another_source_is_asked_while_the_first_is_left_alone(server, breakers, home):
    server.always["daily_basic"] = server.always["daily"] = wire.SERVER_ERROR
    spare = FakeMarketDataProvider(name="spare", bars=[a_bar(DAYS[0], symbol=SYMBOL)])
    async with provider(server, guard=breakers.guard, pauses=ONCE) as tushare:
        await fail(tushare, 5)
        sync = SyncService(Lake(home), {Market.CN: {"tushare": tushare, "spare": spare}}, FixedClock(NOW))
        event = await sync.bring(BARS, SYMBOL, Market.CN, *DAYS)
    assert (event.outcome, event.source, len(server.requests)) == ("fetched", "spare", 5)
    assert [name for name, _ in event.errors] == ["tushare"]


async def test_every_source_has_a_breaker_by_its_own_name(breakers):
    way = outside(guard=breakers.guard, pauses=())
    with pytest.raises(Unavailable):
        await way.call("op", {}, answering(Trouble(Unavailable("down"), passing=True)))
    assert [(report.name, report.failed) for report in breakers.reports()] == [("data:service", 1)]


async def test_a_defect_of_ours_does_not_count(breakers):
    way = outside(guard=breakers.guard)
    for _ in range(6):
        with pytest.raises(ZeroDivisionError):
            await way.call("op", {}, answering(ZeroDivisionError()))
    assert breakers.of("data:service").report().failed == 0


async def test_each_source_of_a_desk_passes_its_own_guard(home):
    pytest.importorskip("akshare", reason="the akshare extra is not installed")
    pytest.importorskip("yfinance", reason="the yfinance extra is not installed")
    asked: set[str] = set()

    @asynccontextmanager
    async def refuse(called: Dependency) -> AsyncIterator[None]:
        asked.add(":".join(called.name.split(":")[:2]))
        raise LeftAlone("not now", retry_after=60)
        yield

    sources = Sources(SecretStr("canary"), "http://127.0.0.1:9", more=["akshare", "yfinance"])
    container = MarketDataContainer(
        FixedClock(NOW), demo_seed=1, lake=home, sources=sources, calls=ExternalCalls(None), guard=refuse
    )
    symbols = [Symbol.parse(SYMBOL), Symbol.parse("AAPL")]
    events = await container.upkeep().syncing.sync(symbols, *DAYS)
    await container.close()
    assert {event.outcome for event in events} == {"failed", "not_offered"}
    assert asked == {"data:tushare", "data:akshare", "data:yfinance"}
