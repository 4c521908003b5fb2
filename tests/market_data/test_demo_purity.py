"""The demo market is a pure function of seed, symbol and date, and ends yesterday."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DATASETS,
    REPORTS,
    VALUATIONS,
    Dataset,
)
from moot.modules.market_data.domain.trading_rules import demo_days
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.shared.domain.facts import Fact
from tests.fakes.clock import FixedClock
from tests.market_data.demo import EVER, NOW, Snapshot, all_news, demo_market, snapshot

EARLIER = datetime(2022, 9, 8, 20, tzinfo=UTC)  # already the 9th in Shanghai
MIDNIGHT_THEN = datetime(2022, 9, 8, 16, tzinfo=UTC)


async def test_a_later_clock_never_changes_what_was_public_before(demo: Snapshot) -> None:
    then = await snapshot(demo_market(now=EARLIER))
    for symbol, listing in demo.listings.items():
        before = then.listings[symbol]
        assert before.bars == public_then(listing.bars)
        assert before.valuations == public_then(listing.valuations)
        assert before.reports == public_then(listing.reports)
    assert then.macro == public_then(demo.macro)
    assert then.news == public_then(demo.news)


@pytest.mark.parametrize("dataset", [d for d in DATASETS.values() if d is not COMPANIES], ids=str)
async def test_every_dataset_is_a_beginning_of_what_it_is_later(dataset: Dataset[Any]) -> None:
    for subject in ("900003.DEMO", "900007.DEMO", "920104.DEMO") if dataset.by_symbol else ("DEMO",):
        before, after = [await demo_market(now=now).read(dataset, subject) for now in (EARLIER, NOW)]
        assert list(before) == public_then(after)
        assert len(after) > len(before) or dataset is not BARS or subject == "900007.DEMO"
        assert [getattr(f, dataset.day) for f in after] == sorted(getattr(f, dataset.day) for f in after)
        keys = {tuple(getattr(fact, name) for name in dataset.key) for fact in after}
        assert len(keys) == len(after)


async def test_range_and_order_of_reads_do_not_matter(demo: Snapshot) -> None:
    market, listing = demo_market(), demo.listings["900008.DEMO"]
    valuations = await market.read(VALUATIONS, "900008.DEMO", *EVER)
    for bar in listing.bars[2000:1990:-1]:
        assert await market.read(BARS, "900008.DEMO", bar.trade_date, bar.trade_date) == [bar]
    assert valuations == listing.valuations
    week = (date(2024, 3, 4), date(2024, 3, 8))
    midnight = datetime(2024, 3, 3, 16, tzinfo=UTC)
    of_week = [item for item in demo.news if timedelta() <= item.available_at - midnight < timedelta(days=5)]
    assert await all_news(market, *week) == of_week


async def test_another_seed_is_another_market(demo: Snapshot) -> None:
    other = await demo_market(seed=2).read(BARS, "900001.DEMO", *EVER)
    ours = demo.listings["900001.DEMO"].bars
    assert [bar.trade_date for bar in other] == [bar.trade_date for bar in ours]
    assert sum(a.close == b.close for a, b in zip(other, ours, strict=True)) < len(ours) / 50


def test_the_generator_is_pinned(demo: Snapshot) -> None:
    """A change here changes every demo, every recorded session and every example: make it on purpose."""
    closes = {
        (symbol, bar.trade_date.isoformat()): bar.close
        for symbol, listing in demo.listings.items()
        for bar in listing.bars
    }
    assert closes["900001.DEMO", "2018-01-02"] == 134.05
    assert closes["900005.DEMO", "2021-06-30"] == 15.53
    assert closes["900006.DEMO", "2023-03-15"] == 57.2
    assert closes["900012.DEMO", "2026-11-13"] == 63.4
    report = next(r for r in demo.listings["900004.DEMO"].reports if r.period_end == date(2023, 12, 31))
    assert (report.announced_on, report.profit_dedt, report.eps) == (date(2024, 3, 30), 4628000428.82, 1.6991)


async def test_the_market_ends_yesterday(demo: Snapshot) -> None:
    facts: list[Fact] = [*demo.macro, *demo.news]
    for listing in demo.listings.values():
        facts += [*listing.bars, *listing.valuations, *listing.reports]
    assert max(fact.available_at for fact in facts) < datetime(2026, 11, 14, 16, tzinfo=UTC)

    friday, after_midnight = date(2026, 11, 13), datetime(2026, 11, 13, 16, 30, tzinfo=UTC)
    assert not await demo_market(now=after_midnight - timedelta(hours=1)).read(
        BARS, "900001.DEMO", friday, friday
    )
    assert await demo_market(now=after_midnight).read(BARS, "900001.DEMO", friday, friday)


async def test_the_same_market_goes_on_when_the_year_turns() -> None:
    class Moving(FixedClock):
        moment = datetime(2025, 12, 30, 3, tzinfo=UTC)

        def now(self) -> datetime:
            return self.moment

    clock = Moving(Moving.moment)
    market = DemoMarket(seed=1, clock=clock)
    before = await market.read(BARS, "900003.DEMO", *EVER)
    clock.moment = datetime(2026, 1, 8, 3, tzinfo=UTC)
    after = await market.read(BARS, "900003.DEMO", *EVER)
    assert list(after[: len(before)]) == list(before)
    assert [bar.trade_date.day for bar in after[len(before) :]] == [30, 31, 2, 5, 6, 7]


async def test_before_the_first_day_and_beyond_the_directory_there_is_nothing() -> None:
    market = demo_market(now=datetime(2018, 1, 2, 12, tzinfo=UTC))
    for symbol in ("900001.DEMO", "900006.DEMO"):
        assert await market.read(BARS, symbol, *EVER) == []
        assert await market.read(VALUATIONS, symbol, *EVER) == []
    assert await all_news(market, *EVER) == []
    assert await demo_market().read(BARS, "900099.DEMO", *EVER) == []
    assert await demo_market().read(REPORTS, "900099.DEMO") == []


def test_the_calendar_has_weekdays_without_the_holidays() -> None:
    days = set(demo_days(date(2026, 12, 31)))
    holidays_2024 = [(1, 1), (5, 1), (5, 2), (5, 3), (10, 1), (10, 7), (2, 5), (2, 6), (2, 7)]
    assert not days & {date(2024, *day) for day in holidays_2024}
    assert {date(2024, 1, 2), date(2024, 2, 8), date(2024, 5, 6), date(2024, 10, 8)} <= days
    assert not any(day.weekday() >= 5 for day in days)
    assert 2200 < len(days) < 2300


def public_then(facts: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.available_at < MIDNIGHT_THEN]
