"""Real rows with planted ones among them that became public too late: no read may find those."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.facts import Fact
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.market_data import FakeMarketDataProvider
from tests.measured.real_market import EVER, SHANGHAI, RealMarket, at

F = TypeVar("F", bound=Fact)

LIFETIME = 12_000
PLANTED = 8
"""How many of the newest known rows of a dataset get a later version of themselves."""
FIRST = datetime(2020, 3, 1, tzinfo=UTC)
SYMBOLS = ["600519.SH", "601012.SH", "600029.SH", "000425.SZ", "601398.SH", "000002.SZ"]

moments = st.integers(0, 60 * 24 * 1030).map(lambda minutes: FIRST + timedelta(minutes=minutes))
delays = st.integers(1, 60 * 24 * 400).map(lambda minutes: timedelta(minutes=minutes))


def with_later_versions(
    source: FakeMarketDataProvider, as_of: datetime, out: datetime
) -> FakeMarketDataProvider:
    """Each dataset with another version of its newest rows, about the same days, public only at `out`."""

    def planted(facts: list[F]) -> list[F]:
        known = [fact for fact in facts if fact.available_at <= as_of]
        later = {"available_at": out, "source": "planted"}
        return [*facts, *(fact.model_copy(update=later) for fact in known[-PLANTED:])]

    return replace(
        source,
        bars=planted(source.bars),
        valuations=planted(source.valuations),
        reports=planted(source.reports),
        observations=planted(source.observations),
        items=planted(source.items),
    )


async def all_reads(source: FakeMarketDataProvider, symbol: Symbol, as_of: datetime) -> dict[str, list[Fact]]:
    data = MarketData({Market.CN: source})
    return {
        "bars": [*await data.daily_bars(symbol, *EVER, as_of=as_of, adjusted=False)],
        "adjusted": [*await data.daily_bars(symbol, *EVER, as_of=as_of)],
        "valuations": [*await data.daily_valuations(symbol, *EVER, as_of=as_of)],
        "reports": [*await data.financial_reports(symbol, 100, as_of=as_of)],
        "macro": [*await data.macro(symbol, LIFETIME, as_of=as_of)],
        "news": [*await data.news(symbol, LIFETIME, as_of=as_of)],
    }


@given(text=st.sampled_from(SYMBOLS), as_of=moments, delay=delays)
@settings(max_examples=60)
async def test_no_read_finds_a_row_that_became_public_later(
    market: RealMarket, text: str, as_of: datetime, delay: timedelta
) -> None:
    symbol, source = Symbol.parse(text), market.sources[text]
    spoiled = with_later_versions(source, as_of, as_of + delay)
    seen = await all_reads(spoiled, symbol, as_of)
    assert seen == await all_reads(source, symbol, as_of)
    assert all(fact.available_at <= as_of for facts in seen.values() for fact in facts)
    later = await all_reads(spoiled, symbol, as_of + delay)
    for name, facts in seen.items():
        assert any(fact.source == "planted" for fact in later[name]) == bool(facts)


@given(text=st.sampled_from(SYMBOLS), as_of=moments)
@settings(max_examples=60)
async def test_reads_find_all_that_the_tables_say_was_public(
    market: RealMarket, text: str, as_of: datetime
) -> None:
    """By day's end of trading for prices, by the evening of its announcement for a report: counted in the tables."""
    seen = await all_reads(market.sources[text], Symbol.parse(text), as_of)
    local = as_of.astimezone(SHANGHAI)
    closed = local.date() if local.hour >= 16 else local.date() - timedelta(days=1)
    announced = local.date() if local.hour >= 18 else local.date() - timedelta(days=1)
    days = market.rows(text).filter(pl.col("date") <= closed).height
    reports = market.reports.filter((pl.col("ts_code") == text) & (pl.col("ann_date") <= announced)).height
    assert (len(seen["bars"]), len(seen["adjusted"]), len(seen["valuations"])) == (days, days, days)
    assert len(seen["reports"]) == reports


def test_every_report_became_public_on_the_evening_of_its_announcement_long_after_its_period(
    market: RealMarket,
) -> None:
    reports = [report for source in market.sources.values() for report in source.reports]
    assert all(report.available_at == at(report.announced_on, 18) for report in reports)
    lags = [report.announced_on - report.period_end for report in reports]
    assert (min(lags), max(lags)) == (timedelta(days=12), timedelta(days=121))
