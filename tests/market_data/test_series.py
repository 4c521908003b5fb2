"""Suspended and ST are known whatever the source, as Tushare and AKShare deliver it: no such rows, no such flag."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.governance.container import GovernanceContainer
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sync import SyncedSource, SyncService
from moot.modules.market_data.domain.facts import BARS, COMPANIES
from moot.modules.market_data.domain.provider import MarketDataProvider, Range
from moot.modules.market_data.domain.series import was_st
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.providers.akshare import AkshareProvider
from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.shared.domain.errors import DecisionRejected
from moot.shared.domain.facts import Company, DailyBar, NameSince, SpecialTreatment
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.infrastructure.execution_context import ExecutionContext
from tests.fakes import eastmoney_server
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import a_bar, a_company
from tests.fakes.tushare_server import NO_PERMISSION, TushareServer, provider

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, in the library

CODE = "600519.SH"
SHARE = Symbol.parse(CODE)
NOW = datetime(2024, 1, 31, 12, tzinfo=UTC)
DAYS = trading_calendar(Market.CN).sessions(date(2024, 1, 2), date(2024, 1, 31))
QUIET = DAYS[8:12]
"""When the share does not trade, in the middle; and from `STOP` on, not at all."""
STOP = 18
FROM, TO = date(2024, 1, 1), date(2024, 1, 31)
VERDICT = {
    "symbol": CODE,
    "action": "BUY",
    "position_percent": 0.1,
    "confidence": 0.7,
    "time_horizon": "3 months",
    "levels": {"entry": 10.0, "stop": 9.2, "target": 12.0},
    "grounding": None,
    "engine": "rubric",
    "risk_warnings": ["a", "b"],
    "warnings": [],
}


def traded(days: list[date]) -> list[DailyBar]:
    return [a_bar(day, symbol=CODE, price=10 + n / 100) for n, day in enumerate(days)]


def without_quiet(days: list[date]) -> list[date]:
    return [day for day in days if day not in QUIET]


@asynccontextmanager
async def by_tushare(bars: list[DailyBar], name: str) -> AsyncIterator[MarketDataProvider]:
    """No row on a suspended day, and no permission for suspensions and former names."""
    listed = {"ts_code": CODE, "name": name, "list_date": "20010827", "list_status": "L", "market": "主板"}
    days = [{"ts_code": CODE, "trade_date": f"{bar.trade_date:%Y%m%d}"} for bar in bars]
    tables = {
        "stock_basic": [listed],
        "daily": [
            {**day, "open": b.open, "high": b.high, "low": b.low, "close": b.close, "pre_close": b.pre_close}
            | {"vol": 1.0, "amount": b.close / 10}
            for day, b in zip(days, bars, strict=True)
        ],
        "adj_factor": [{**day, "adj_factor": 8.1} for day in days],
    }
    with TushareServer(tables) as server:
        server.always = dict.fromkeys(["suspend_d", "namechange"], NO_PERMISSION)
        async with provider(server) as tushare:
            yield tushare


@asynccontextmanager
async def by_akshare(bars: list[DailyBar], name: str) -> AsyncIterator[MarketDataProvider]:
    """The pages of Eastmoney and the exchanges have no line on a suspended day either, and no mark but the name."""
    pytest.importorskip("akshare", reason="the akshare extra is not installed")
    lines = [
        f"{b.trade_date},{b.open},{b.close},{b.high},{b.low},1,{b.amount},0.00,0.00,0.00,0.10" for b in bars
    ]
    with eastmoney_server.eastmoney_server() as pages, pytest.MonkeyPatch.context() as patch:
        patch.setattr(eastmoney_server, "KLINES", lines)
        patch.setattr(eastmoney_server, "NAME", name)
        patch.setattr("akshare.request.time", SimpleNamespace(sleep=lambda _: None))
        pages.redirect(patch)
        yield AkshareProvider(pace=Pace(calls=100, per_seconds=0.01, concurrency=4), pauses=(0.0,))


SOURCES: dict[str, Any] = {"tushare": by_tushare, "akshare": by_akshare}


def door(source: MarketDataProvider, folder: Path, now: datetime = NOW) -> MarketData:
    lake = Lake(folder)
    sync = SyncService(lake, {Market.CN: {source.name: source}}, FixedClock(now))
    return MarketData({Market.CN: SyncedSource(lake, sync, Market.CN)})


@pytest.mark.parametrize("name", SOURCES)
async def test_a_session_without_a_bar_is_a_suspended_one(tmp_path: Path, name: str) -> None:
    async with SOURCES[name](traded(without_quiet(DAYS)), "贵州茅台") as source:
        bars = await door(source, tmp_path).daily_bars(SHARE, FROM, TO, as_of=NOW)
    assert [bar.trade_date for bar in bars] == DAYS
    assert [bar.trade_date for bar in bars if bar.suspended] == QUIET
    last, filled = bars[7], bars[8]
    assert (filled.close, filled.pre_close, filled.high, filled.volume, filled.amount) == (
        *[last.close] * 3,
        0,
        0.0,
    )
    assert filled.adj_factor == last.adj_factor
    assert filled.available_at - last.available_at == QUIET[0] - last.trade_date
    assert not any(bar.is_st for bar in bars)


@pytest.mark.parametrize("name", SOURCES)
async def test_the_rule_about_suspended_shares_fires(tmp_path: Path, name: str) -> None:
    async with SOURCES[name](traded(DAYS[:STOP]), "贵州茅台") as source:
        data = door(source, tmp_path)
        state = await data.trading_state(SHARE, as_of=NOW)
        before = await data.trading_state(SHARE, as_of=datetime.combine(DAYS[STOP - 1], NOW.timetz()))
        assert state and before and (state.suspended, before.suspended) == (True, False)
        with pytest.raises(DecisionRejected) as rejected:
            await decide(data)
    assert "ashare.suspended" in [each["rule_id"] for each in rejected.value.details["violations"]]


@pytest.mark.parametrize("name", SOURCES)
async def test_the_rule_about_st_fires_on_the_name_alone(tmp_path: Path, name: str) -> None:
    async with SOURCES[name](traded(DAYS), "*ST茅台") as source:
        data = door(source, tmp_path)
        state = await data.trading_state(SHARE, as_of=NOW)
        assert state and (state.st, state.limit_percent) == (True, 5.0)
        with pytest.raises(DecisionRejected) as rejected:
            await decide(data)
        earlier = await data.trading_state(SHARE, as_of=NOW - timedelta(days=7))
    assert "risk.no_st_purchase" in [each["rule_id"] for each in rejected.value.details["violations"]]
    assert earlier and not earlier.st  # nobody knows since when: not before it was told


async def test_a_mark_told_after_the_last_session_counts_for_the_question(tmp_path: Path) -> None:
    morning = NOW + timedelta(hours=14)
    async with by_akshare(traded(DAYS), "*ST茅台") as source:
        state = await door(source, tmp_path, morning).trading_state(SHARE, as_of=morning)
    assert state and (state.st, state.limit_percent) == (True, 5.0)


async def decide(data: MarketData) -> dict[str, Any]:
    clock = FixedClock(NOW)
    policy = GovernanceAdapter(GovernanceContainer(trail=None, clock=clock).agent, clock, data)
    with ExecutionContext(as_of=NOW).active():
        return await policy.review("judge", VERDICT)


def keep(lake: Lake, bars: list[DailyBar], covered: Range) -> MarketData:
    lake.store(BARS, CODE, bars, covered=covered, at=NOW)
    return MarketData({Market.CN: lake})


async def test_a_suspension_that_began_before_the_range_is_known_in_it(tmp_path: Path) -> None:
    data = keep(Lake(tmp_path), traded(DAYS[:5]), (FROM, TO))
    bars = await data.daily_bars(SHARE, DAYS[15], TO, as_of=NOW)
    assert [bar.trade_date for bar in bars] == DAYS[15:]
    assert {(bar.close, bar.suspended) for bar in bars} == {(10.04, True)}


async def test_beyond_what_is_known_nothing_is_invented(tmp_path: Path) -> None:
    data = keep(Lake(tmp_path), traded(DAYS[5:9]), (DAYS[3], DAYS[10]))
    bars = await data.daily_bars(SHARE, FROM, TO, as_of=NOW)
    assert [(bar.trade_date, bar.suspended) for bar in bars] == [
        *((day, False) for day in DAYS[5:9]),
        (DAYS[9], True),
        (DAYS[10], True),
    ]
    (last,) = await data.daily_bars(SHARE, DAYS[9], DAYS[9], as_of=NOW)
    assert (last.trade_date, last.suspended) == (DAYS[9], True)


async def test_a_suspended_day_is_known_when_the_others_are(tmp_path: Path) -> None:
    data = keep(Lake(tmp_path), traded(DAYS[:5]), (FROM, TO))
    (first, *_) = await data.daily_bars(SHARE, DAYS[5], TO, as_of=NOW)
    early = await data.daily_bars(SHARE, FROM, TO, as_of=first.available_at - timedelta(seconds=1))
    assert [bar.trade_date for bar in early] == DAYS[:5]


async def test_a_delisted_share_is_not_suspended(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    gone = a_company(CODE, delist_date=DAYS[7])
    lake.store(COMPANIES, "CN", [gone], covered=None, at=NOW)
    bars = await keep(lake, traded(DAYS[:5]), (FROM, TO)).daily_bars(SHARE, FROM, TO, as_of=NOW)
    assert [bar.trade_date for bar in bars] == DAYS[:7]


async def test_st_goes_by_the_name_of_the_day(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    names = [("贵州茅台", DAYS[0]), ("ST茅台", DAYS[5]), ("*ST茅台", DAYS[9]), ("茅台股份", DAYS[14])]
    company = a_company(CODE, names=[NameSince(name=name, start=day) for name, day in names])
    lake.store(COMPANIES, "CN", [company], covered=None, at=NOW)
    bars = await keep(lake, traded(without_quiet(DAYS)), (FROM, TO)).daily_bars(SHARE, FROM, TO, as_of=NOW)
    assert [bar.trade_date for bar in bars if bar.is_st] == DAYS[5:14]


@pytest.mark.parametrize(
    "name", ["ST海马", "*ST海马", "S*ST海马", "SST海马", "退市海马", "海马退", "＊ＳＴ海马"]
)
def test_marks_of_trouble(name: str) -> None:
    assert was_st(a_company(CODE, names=[NameSince(name=name, start=FROM)]), TO)


@pytest.mark.parametrize("name", ["贵州茅台", "S佳通", "XD贵州茅", "STAR HOLDINGS", "退潮科技", "寒武纪-U"])
def test_names_without_trouble(name: str) -> None:
    assert not was_st(a_company(CODE, names=[NameSince(name=name, start=FROM)]), TO)


async def test_a_mark_that_is_told_without_a_day_counts_from_when_it_was_told(tmp_path: Path) -> None:
    async def told(name: str, on: date, **more: Any) -> tuple[SpecialTreatment, ...]:
        listed: list[Company] = [a_company(CODE, name=name, **more), a_company("000001.SZ", name="平安银行")]
        lake.store(COMPANIES, "CN", listed, covered=None, at=datetime.combine(on, NOW.timetz()))
        kept = {company.symbol: company for company in await lake.read(COMPANIES, "CN")}
        assert kept["000001.SZ"].st_history == ()
        return kept[CODE].st_history

    lake, spell = Lake(tmp_path), SpecialTreatment
    assert await told("贵州茅台", DAYS[0]) == ()
    assert await told("*ST茅台", DAYS[3]) == (spell(start=DAYS[3]),)
    assert await told("ST茅台", DAYS[6]) == (spell(start=DAYS[3]),)
    assert await told("贵州茅台", DAYS[9]) == (spell(start=DAYS[3], end=DAYS[9]),)
    known = (NameSince(name="ST茅台", start=DAYS[1]),)
    assert await told("ST茅台", DAYS[10], names=known) == ()  # the names say it all
