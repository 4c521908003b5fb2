"""Reads see what was public at `as_of`, all of it, and nothing later."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DIVIDENDS,
    MACRO,
    REPORTS,
    VALUATIONS,
)
from moot.modules.market_data.infrastructure.lake import Lake
from moot.shared.domain.facts import Company, Dividend, Fact, SpecialTreatment
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.market_data import (
    FakeMarketDataProvider,
    a_bar,
    a_company,
    a_news_item,
    a_report,
    a_valuation,
    an_observation,
)
from tests.market_data.demo import EVER, NOW, Snapshot, demo_market, ex_right_days

SYMBOL = Symbol.parse("900001.DEMO")
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
LIFETIME = 4000

moments = st.integers(0, 60 * 24 * 120).map(lambda minutes: FIRST + timedelta(minutes=minutes))
days = st.integers(0, 120).map(lambda n: date(2024, 1, 1) + timedelta(days=n))


def reading(provider: FakeMarketDataProvider) -> MarketData:
    return MarketData({Market.DEMO: provider})


@st.composite
def planted(draw: st.DrawFn) -> FakeMarketDataProvider:
    """A provider with facts in every dataset, each public at a moment of its own."""

    def some(make: object) -> list[Fact]:
        pairs = draw(st.lists(st.tuples(days, moments), max_size=6, unique_by=lambda pair: pair[0]))
        return [make(day, available_at) for day, available_at in sorted(pairs)]  # type: ignore[operator]

    return FakeMarketDataProvider(
        directory=[a_company()],
        bars=some(a_bar),
        valuations=some(a_valuation),
        reports=some(a_report),
        observations=some(an_observation),
        items=some(a_news_item),
    )


@given(provider=planted(), as_of=moments)
@settings(max_examples=150)
async def test_no_read_sees_a_fact_before_it_was_public_nor_misses_one_after(
    provider: FakeMarketDataProvider, as_of: datetime
) -> None:
    data = reading(provider)
    today = SYMBOL.local_date(as_of)

    def known(facts: list[Fact]) -> list[Fact]:
        return [fact for fact in facts if fact.available_at <= as_of]

    assert await data.daily_bars(SYMBOL, *EVER, as_of=as_of) == known(provider.bars)
    assert await data.daily_valuations(SYMBOL, *EVER, as_of=as_of) == known(provider.valuations)
    assert await data.financial_reports(SYMBOL, 20, as_of=as_of) == known(provider.reports)[::-1]
    assert await data.macro(SYMBOL, LIFETIME, as_of=as_of) == [
        o for o in known(provider.observations) if o.period <= today
    ]
    assert await data.news(SYMBOL, LIFETIME, as_of=as_of) == [
        i for i in known(provider.items) if i.event_time.date() <= today
    ]


async def test_nothing_of_the_demo_market_is_seen_too_early(demo: Snapshot) -> None:
    data, as_of = MarketData({Market.DEMO: demo_market()}), datetime(2023, 4, 28, 9, 0, tzinfo=UTC)
    seen: list[Fact] = [
        *await data.daily_bars(SYMBOL, *EVER, as_of=as_of),
        *await data.daily_valuations(SYMBOL, *EVER, as_of=as_of),
        *await data.financial_reports(SYMBOL, 100, as_of=as_of),
        *await data.macro(SYMBOL, LIFETIME, as_of=as_of),
        *await data.news(SYMBOL, LIFETIME, as_of=as_of),
    ]
    assert max(fact.available_at for fact in seen) <= as_of
    listing = demo.listings["900001.DEMO"]
    known_bars = [bar for bar in listing.bars if bar.available_at <= as_of]
    assert known_bars[-1].trade_date == date(2023, 4, 28)
    assert await data.daily_bars(SYMBOL, *EVER, as_of=as_of, adjusted=False) == known_bars


async def test_a_restated_report_is_read_in_the_version_known_then() -> None:
    period, first, restated = (
        date(2023, 12, 31),
        datetime(2024, 3, 1, tzinfo=UTC),
        datetime(2024, 8, 1, tzinfo=UTC),
    )
    older = a_report(date(2023, 9, 30), datetime(2023, 10, 20, tzinfo=UTC), eps=0.7)
    versions = [a_report(period, restated, eps=0.8), older, a_report(period, first, eps=1.0)]
    data = reading(FakeMarketDataProvider(reports=versions))

    async def eps(as_of: datetime, periods: int = 8) -> list[float | None]:
        return [r.eps for r in await data.financial_reports(SYMBOL, periods, as_of=as_of)]

    assert await eps(first - timedelta(minutes=1)) == [0.7]
    assert await eps(first) == [1.0, 0.7]
    assert await eps(restated - timedelta(minutes=1)) == [1.0, 0.7]
    assert await eps(restated) == [0.8, 0.7]
    assert await eps(restated, periods=1) == [0.8]


async def test_adjusted_bars_do_not_jump_on_ex_right_days_and_the_last_keeps_its_price(
    demo: Snapshot,
) -> None:
    data, listing = MarketData({Market.DEMO: demo_market()}), demo.listings["900005.DEMO"]
    bars = await data.daily_bars(Symbol.parse("900005.DEMO"), *EVER, as_of=NOW)
    assert bars[-1] == listing.bars[-1]
    ex_days = {day.trade_date for _, day in ex_right_days(listing)}
    assert len(ex_days) > 5
    for before, today in pairwise(bars):
        assert today.pre_close == pytest.approx(before.close, rel=3e-6)
    for raw, adjusted in zip(listing.bars, bars, strict=True):
        assert adjusted.close / adjusted.pre_close == pytest.approx(raw.close / raw.pre_close)


async def test_adjustment_uses_only_factors_known_at_as_of() -> None:
    bars = [
        a_bar(date(2024, 6, 3), price=20.0),
        a_bar(date(2024, 6, 4), price=10.0, adj_factor=2.0),
        a_bar(date(2024, 6, 5), price=5.0, adj_factor=4.0),
    ]
    data = reading(FakeMarketDataProvider(bars=bars))

    async def closes(as_of: datetime) -> list[float]:
        return [bar.close for bar in await data.daily_bars(SYMBOL, *EVER, as_of=as_of)]

    assert await closes(datetime(2024, 6, 3, 8, tzinfo=UTC)) == [20.0]
    assert await closes(datetime(2024, 6, 4, 8, tzinfo=UTC)) == [10.0, 10.0]
    assert await closes(datetime(2024, 6, 5, 8, tzinfo=UTC)) == [5.0, 5.0, 5.0]


async def test_news_is_the_companys_its_industrys_and_the_markets() -> None:
    day, public = date(2024, 6, 3), datetime(2024, 6, 3, 12, tzinfo=UTC)
    items = [
        a_news_item(day, public, title="own"),
        a_news_item(day, public, title="industry", symbol=None, industry="白酒"),
        a_news_item(day, public, title="market", symbol=None),
        a_news_item(day, public, title="other company", symbol="900002.DEMO"),
        a_news_item(day, public, title="other industry", symbol=None, industry="银行"),
        a_news_item(date(2024, 5, 1), public, title="long ago"),
    ]
    data = reading(FakeMarketDataProvider(directory=[a_company()], items=items))
    found = await data.news(SYMBOL, 30, as_of=public)
    assert [item.title for item in found] == ["own", "industry", "market"]


async def test_a_company_is_seen_without_what_happened_to_it_later() -> None:
    fallen = a_company(
        "000013.SZ",
        name="*ST石化A(退)",
        list_date=date(1992, 5, 6),
        delist_date=date(2004, 9, 20),
        st_history=(SpecialTreatment(start=date(2000, 4, 1), end=date(2001, 6, 1)),),
    )
    data = MarketData({Market.CN: FakeMarketDataProvider(directory=[fallen])})

    async def seen(year: int, month: int) -> Company:
        return await data.company(Symbol.parse("000013.SZ"), as_of=datetime(year, month, 5, tzinfo=UTC))

    before, during, after = await seen(2000, 1), await seen(2000, 6), await seen(2002, 1)
    assert [c.delist_date for c in (before, during, after)] == [None] * 3
    assert (before.name, after.name, before.st_history) == ("石化A", "石化A", ())
    assert during.st_history == (SpecialTreatment(start=date(2000, 4, 1)),)
    assert after.st_history == fallen.st_history


@pytest.mark.parametrize("model", [a_bar, a_valuation])
def test_nothing_is_known_before_it_happened(model) -> None:
    sound = model(date(2024, 6, 4))
    with pytest.raises(ValidationError, match="available before it happened"):
        type(sound).model_validate({**sound.model_dump(), "available_at": datetime(2024, 1, 1, tzinfo=UTC)})


async def test_dividends_are_seen_when_they_were_declared() -> None:
    declared = datetime(2026, 5, 20, 10, tzinfo=UTC)
    payout = Dividend(
        symbol=SYMBOL.text,
        period_end=date(2025, 12, 31),
        announced_on=declared.date(),
        cash_per_share=0.5,
        event_time=declared,
        available_at=declared,
        source="fake",
    )
    data = MarketData({Market.DEMO: FakeMarketDataProvider(payouts=[payout])})
    assert await data.read_known(DIVIDENDS, SYMBOL, declared - timedelta(seconds=1)) == []
    assert await data.read_known(DIVIDENDS, SYMBOL, declared) == [payout]


@settings(max_examples=25)
@given(provider=planted(), as_of=moments)
async def test_the_lake_shows_no_more_than_the_source_it_was_filled_from(
    tmp_path_factory: pytest.TempPathFactory, provider: FakeMarketDataProvider, as_of: datetime
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    ever = (date(2000, 1, 1), date(2100, 1, 1))
    for dataset, facts in {
        COMPANIES: provider.directory,
        BARS: provider.bars,
        VALUATIONS: provider.valuations,
        REPORTS: provider.reports,
        MACRO: provider.observations,
    }.items():
        subject = SYMBOL.text if dataset.by_symbol else Market.DEMO
        lake.store(dataset, subject, facts, covered=ever, at=NOW)
    stored = MarketData({Market.DEMO: lake})
    seen = [
        *await stored.daily_bars(SYMBOL, *ever, as_of=as_of),
        *await stored.daily_valuations(SYMBOL, *ever, as_of=as_of),
        *await stored.financial_reports(SYMBOL, LIFETIME, as_of=as_of),
        *await stored.macro(SYMBOL, LIFETIME, as_of=as_of),
    ]
    assert all(fact.available_at <= as_of for fact in seen)


@pytest.mark.parametrize("wrong", [{"volume": 1}, {"amount": 1.0}, {"amount": 1e7}])
def test_a_bar_in_other_units_than_its_prices_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="not in the same units"):
        a_bar(date(2024, 6, 4), **wrong)
