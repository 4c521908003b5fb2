"""Filling the lake: the first source that has it, only what is missing, and one failure stops nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sync import SyncedSource, SyncService
from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DATASETS,
    INDEX_BARS,
    MACRO,
    NEWS,
    PLEDGES,
    REPORTS,
    VALUATIONS,
    Dataset,
)
from moot.modules.market_data.domain.provider import Batch, Coverage, NotOffered, Range, Refusal
from moot.shared.domain.errors import Conflict, Unavailable
from moot.shared.domain.facts import IndexBar
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import FakeMarketDataProvider, a_bar, a_company

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)  # 20:00 in Shanghai: the day's figures are out
START, END = date(2026, 6, 1), date(2026, 6, 30)
SYMBOL = Symbol.parse("600519.SH")


@dataclass
class FakeStore:
    """Remembers what was stored; covers one range per dataset and subject."""

    kept: dict[tuple[Dataset[Any], str], Coverage] = field(default_factory=dict)
    facts: dict[tuple[Dataset[Any], str], list[BaseModel]] = field(default_factory=dict)

    def coverage(self, dataset: Dataset[Any], subject: str) -> Coverage | None:
        return self.kept.get((dataset, subject))

    def inventory(self) -> Sequence[Coverage]:
        return list(self.kept.values())

    def store(
        self,
        dataset: Dataset[Any],
        subject: str,
        facts: Sequence[BaseModel],
        *,
        covered: Range | None,
        at: datetime,
    ) -> None:
        before = self.kept.get((dataset, subject))
        ranges = sorted([*(before.ranges if before else ()), *([covered] if covered else [])])
        self.facts.setdefault((dataset, subject), []).extend(facts)
        rows = len(self.facts[dataset, subject])
        self.kept[dataset, subject] = Coverage(dataset.name, subject, tuple(ranges), rows, ("fake",), at)


class Source(FakeMarketDataProvider):
    """A fake that counts what it is asked, and fails for the datasets it is told to."""

    def __init__(self, name: str, failing: dict[str, Unavailable] | None = None, **data: Any) -> None:
        super().__init__(name=name, **data)
        self._failing = failing or {}
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    async def read(
        self, dataset: Dataset[Any], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[Any]:
        self.asked.append((dataset.name, (subject, start, end)))
        if dataset.name in self._failing:
            raise self._failing[dataset.name]
        return await super().read(dataset, subject, start, end)

    def times(self, dataset: str) -> int:
        return sum(name == dataset for name, _ in self.asked)


def bars(*days: int) -> list[Any]:
    return [a_bar(date(2026, 6, day), symbol="600519.SH") for day in days]


def service(store: FakeStore, *sources: Source, now: datetime = NOW, **more: Any) -> SyncService:
    return SyncService(store, {Market.CN: {s.name: s for s in sources}}, FixedClock(now), **more)


async def test_everything_a_symbol_needs_is_fetched_once_and_kept():
    store, source = FakeStore(), Source("tushare", bars=bars(1, 30), directory=[a_company("600519.SH")])
    events = await service(store, source).sync([SYMBOL], START, END)
    assert {(e.dataset, e.subject) for e in events} == {
        (dataset, "600519.SH" if dataset.by_symbol else "CN") for dataset in DATASETS.values()
    }
    assert {e.outcome for e in events} == {"fetched"}
    assert len(store.facts[BARS, "600519.SH"]) == 2
    again = await service(store, source).sync([SYMBOL], START, END)
    assert {e.outcome for e in again} == {"up_to_date"}
    assert source.times("bars") == source.times("reports") == 1


async def test_only_the_missing_days_are_asked_for():
    store, source = FakeStore(), Source("tushare")
    sync = service(store, source)
    await sync.bring(BARS, "600519.SH", Market.CN, date(2026, 6, 10), date(2026, 6, 12))
    await sync.bring(BARS, "600519.SH", Market.CN, START, END)
    assert [arguments[1:] for _, arguments in source.asked] == [
        (date(2026, 6, 10), date(2026, 6, 12)),
        (date(2026, 6, 1), date(2026, 6, 9)),
        (date(2026, 6, 13), date(2026, 6, 30)),
    ]


async def test_bars_are_fetched_without_a_gap_to_those_kept():
    store, source = FakeStore(), Source("tushare")
    sync = service(store, source)
    await sync.bring(BARS, "600519.SH", Market.CN, date(2026, 6, 10), date(2026, 6, 12))
    await sync.bring(BARS, "600519.SH", Market.CN, date(2026, 6, 22), date(2026, 6, 24))
    await sync.bring(BARS, "600519.SH", Market.CN, date(2026, 6, 1), date(2026, 6, 3))
    assert [arguments[1:] for _, arguments in source.asked[1:]] == [
        (date(2026, 6, 13), date(2026, 6, 24)),
        (date(2026, 6, 1), date(2026, 6, 9)),
    ]


async def test_a_source_that_contradicts_what_is_kept_is_passed_over():
    class Picky(FakeStore):
        def store(self, dataset, subject, facts, **more):
            if any(fact.source == "tushare" for fact in facts):
                raise Conflict("the closes disagree")
            super().store(dataset, subject, facts, **more)

    told = [bar.model_copy(update={"source": "tushare"}) for bar in bars(1)]
    sync = service(Picky(), Source("tushare", bars=told), Source("akshare", bars=bars(1)))
    event = await sync.bring(BARS, "600519.SH", Market.CN, START, END)
    assert (event.source, event.errors) == ("akshare", (("tushare", "the closes disagree"),))


@pytest.mark.parametrize(("now", "last"), [(NOW, 30), (NOW - timedelta(hours=6), 29)])
async def test_a_day_that_is_not_over_is_not_taken_for_complete(now, last):
    store = FakeStore()
    await service(store, Source("tushare", bars=bars(30)), now=now).bring(
        BARS, "600519.SH", Market.CN, START, date(2026, 12, 31)
    )
    assert store.kept[BARS, "600519.SH"].ranges == ((START, date(2026, 6, last)),)


async def test_a_bar_that_is_late_is_asked_for_again_before_its_day_is_a_suspended_one():
    store, source = FakeStore(), Source("tushare", bars=bars(29))
    for later in (0, 16):
        sync = service(store, source, now=NOW + timedelta(hours=later))
        await sync.bring(BARS, "600519.SH", Market.CN, START, date(2026, 7, 1))
        source.bars += bars(30)
    assert [arguments[1] for _, arguments in source.asked] == [START, date(2026, 6, 30)]
    assert store.kept[BARS, "600519.SH"].span == (START, date(2026, 6, 30))


async def test_what_comes_whole_is_fetched_again_the_next_day():
    store, source = FakeStore(), Source("tushare")
    for hours in (0, 3, 30):
        sync = service(store, source, now=NOW + timedelta(hours=hours))
        await sync.bring(REPORTS, "600519.SH", Market.CN, START, END)
    assert source.times("reports") == 2


async def test_the_next_source_answers_where_the_first_cannot_and_that_is_said():
    store = FakeStore()
    first = Source("tushare", {"bars": Unavailable("too many calls"), "news": NotOffered("no permission")})
    second = Source("akshare", bars=bars(1))
    events = {e.dataset: e for e in await service(store, first, second).sync([SYMBOL], START, END)}
    assert (events[BARS].source, events[BARS].rows) == ("akshare", 1)
    assert events[BARS].errors == (("tushare", "too many calls"),)
    assert events[NEWS].source == "akshare"
    assert events[REPORTS].source == "tushare"


async def test_the_order_of_sources_can_be_chosen_by_dataset():
    first, second = Source("tushare"), Source("akshare")
    sync = service(FakeStore(), first, second, order={"bars": ["akshare", "tushare"], "news": ["nobody"]})
    events = {e.dataset: e for e in await sync.sync([SYMBOL], START, END)}
    assert (events[BARS].source, events[REPORTS].source) == ("akshare", "tushare")
    assert events[NEWS].outcome == "failed"


async def test_one_failure_stops_nothing_and_leaves_no_coverage():
    store = FakeStore()
    source = Source("tushare", {"valuations": Unavailable("down")})
    seen = []
    events = await service(store, source).sync([SYMBOL], START, END, watch=seen.append)
    assert [e.dataset for e in events if e.outcome == "failed"] == [VALUATIONS]
    assert (VALUATIONS, "600519.SH") not in store.kept
    assert len(seen) == len(events) == len(DATASETS)


@pytest.mark.parametrize(
    ("second", "outcome"),
    [(NotOffered("has none"), "not_offered"), (Unavailable("down"), "failed")],
)
async def test_what_no_source_offers_is_no_failure(second, outcome):
    store = FakeStore()
    sources = [
        Source("tushare", {"pledges": NotOffered("no permission")}),
        Source("akshare", {"pledges": second}),
    ]
    event = await service(store, *sources).bring(PLEDGES, "600519.SH", Market.CN, START, END)
    assert (event.outcome, [source for source, _ in event.errors]) == (outcome, ["tushare", "akshare"])
    assert (PLEDGES, "600519.SH") not in store.kept


async def test_refused_rows_are_counted_by_name():
    class Picky(Source):
        async def read(self, dataset, *_):
            return Batch(bars(1), [Refusal("trade_date=2026-06-02", "low > high")])

    (event,) = [
        e
        for e in await service(FakeStore(), Picky("tushare")).sync([SYMBOL], START, END)
        if e.dataset is BARS
    ]
    assert (event.rows, event.refused) == (1, (Refusal("trade_date=2026-06-02", "low > high"),))


def test_coverage_knows_what_is_missing():
    kept = Coverage(
        "bars",
        "600519.SH",
        ((date(2026, 6, 5), date(2026, 6, 10)), (date(2026, 6, 15), date(2026, 6, 20))),
        9,
        ("x",),
        NOW,
    )
    assert kept.find_missing((date(2026, 6, 6), date(2026, 6, 9))) == []
    assert kept.find_missing((date(2026, 6, 1), date(2026, 6, 30))) == [
        (date(2026, 6, 1), date(2026, 6, 4)),
        (date(2026, 6, 11), date(2026, 6, 14)),
        (date(2026, 6, 21), date(2026, 6, 30)),
    ]
    assert kept.find_missing((date(2026, 6, 8), date(2026, 6, 16))) == [
        (date(2026, 6, 11), date(2026, 6, 14))
    ]


class TestTheSyncedSource:
    async def test_fetches_what_was_never_synced(self):
        store, source = FakeStore(), Source("tushare", bars=bars(1, 2))
        synced = SyncedSource(source, service(store, source), Market.CN)
        assert await synced.read(BARS, "600519.SH", START, END) == bars(1, 2)
        assert (BARS, "600519.SH") in store.kept

    async def test_prefers_old_data_to_none(self):
        store = FakeStore()
        lake = Source("lake", bars=bars(1))
        store.store(BARS, "600519.SH", bars(1), covered=(START, START), at=NOW)
        down = Source("tushare", {"bars": Unavailable("down")})
        synced = SyncedSource(lake, service(store, down), Market.CN)
        assert await synced.read(BARS, "600519.SH", START, END) == bars(1)

    async def test_says_why_there_is_nothing(self):
        down = Source("tushare", {"bars": Unavailable("too many calls")})
        synced = SyncedSource(Source("lake"), service(FakeStore(), down), Market.CN)
        with pytest.raises(
            Unavailable, match=r"daily bars of 600519\.SH could not be fetched: tushare: too many"
        ):
            await synced.read(BARS, "600519.SH", START, END)

    async def test_says_that_nobody_has_it_where_nobody_has(self):
        lacking = Source("tushare", {"pledges": NotOffered("no permission")})
        synced = SyncedSource(Source("lake"), service(FakeStore(), lacking), Market.CN)
        with pytest.raises(NotOffered, match="no permission") as told:
            await synced.read(PLEDGES, "600519.SH")
        assert not told.value.passing

    async def test_looks_a_company_up_where_there_is_no_list_and_keeps_it(self):
        class ByName(Source):
            async def company(self, symbol):
                return a_company("AAPL") if symbol == "AAPL" else None

        store = FakeStore()
        source = ByName("yfinance", {"companies": NotOffered("no list")})
        sync = SyncService(store, {Market.US: {"yfinance": source}}, FixedClock(NOW))
        synced = SyncedSource(FakeMarketDataProvider(), sync, Market.US)
        assert await synced.read(COMPANIES, "CN") == []
        assert await synced.company("AAPL") == a_company("AAPL")
        assert await synced.company("NOPE") is None
        assert store.facts[COMPANIES, "US"] == [a_company("AAPL")]


@pytest.mark.parametrize(("dataset", "complete"), [(MACRO, date(2026, 4, 16)), (NEWS, date(2026, 6, 28))])
async def test_days_about_which_more_may_come_are_asked_for_again_later(dataset, complete):
    store, source = FakeStore(), Source("tushare")
    for hours in (0, 3, 30):
        sync = service(store, source, now=NOW + timedelta(hours=hours))
        await sync.bring(dataset, "600519.SH", Market.CN, date(2026, 1, 1), END)
    assert source.times(dataset.name) == 2
    assert store.kept[dataset, "600519.SH"].ranges[0][1] == complete


def index_bars(industry: str | None, *days: int) -> list[IndexBar]:
    prices = dict.fromkeys(("open", "high", "low", "close", "pre_close"), 10.0)
    told = {
        "index": industry or "000300.SH",
        "name": "x",
        "industry": industry,
        "source": "akshare",
        **prices,
    }
    known = [datetime(2026, 6, day, 8, tzinfo=UTC) for day in days]
    return [IndexBar(trade_date=at.date(), event_time=at, available_at=at, **told) for at in known]


class IndexSource(Source):
    """Has to be asked for the index of each industry by itself."""

    async def industry_bars(self, industry: str, start: date, end: date) -> Batch[IndexBar]:
        self.asked.append(("industry", (industry, start, end)))
        if "industry" in self._failing:
            raise self._failing["industry"]
        return Batch(index_bars(industry, *range(start.day, end.day + 1)))


class TestIndexes:
    """A lake that is what its store was given."""

    def desk(self, **failing: Unavailable) -> tuple[MarketData, IndexSource, SyncedSource]:
        store = FakeStore()
        source = IndexSource("akshare", failing, deep={"index_bars": index_bars(None, 1, 2, 3)})
        listed = [a_company("600519.SH"), a_company("601398.SH", industry="银行")]
        rows = store.facts.setdefault((INDEX_BARS, "CN"), [])
        lake = Source("lake", directory=listed, deep={"index_bars": rows})
        synced = SyncedSource(lake, service(store, source), Market.CN)
        return MarketData({Market.CN: synced}), source, synced

    async def read(self, data: MarketData, symbol: str) -> list[tuple[str | None, int]]:
        found = await data.read(IndexBar, Symbol.parse(symbol), as_of=NOW, start=START, end=END)
        return sorted((bar.industry, bar.trade_date.day) for bar in found if bar.industry) + [
            (None, bar.trade_date.day) for bar in found if bar.industry is None
        ]

    async def test_of_industries_the_companys_own_is_fetched_once_and_no_other(self):
        data, source, _ = self.desk()
        own = [("白酒", 1), ("白酒", 2), ("白酒", 3), (None, 1), (None, 2), (None, 3)]
        assert await self.read(data, "600519.SH") == own
        assert await self.read(data, "600519.SH") == own
        asked = [about for name, about in source.asked if name == "industry"]
        assert asked == [("白酒", date(2026, 6, 1), date(2026, 6, 3))]

    async def test_what_others_asked_for_since_changes_nothing_that_is_read_again(self):
        data, _, synced = self.desk()
        first = await self.read(data, "600519.SH")
        await self.read(data, "601398.SH")
        synced.offline = lambda: True
        assert await self.read(data, "600519.SH") == first

    async def test_an_industry_that_cannot_be_had_leaves_the_market(self):
        data, _, _ = self.desk(industry=Unavailable("shut"))
        assert await self.read(data, "600519.SH") == [(None, 1), (None, 2), (None, 3)]
