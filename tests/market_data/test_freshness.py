"""What is older than its limit is no data for those who judge, and they are told of which day it is."""

from datetime import UTC, date, datetime, timedelta

import pytest

from moot.modules.market_data.application.fresh_data import FreshData, StaleData
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.facts import DATASETS, STATEMENTS
from moot.modules.market_data.domain.trading_rules import TradingCalendar, trading_calendar
from moot.modules.market_data.infrastructure.lake import Lake
from moot.shared.domain.errors import ErrorKind, nature_of
from moot.shared.domain.facts import NameSince, SpecialTreatment, Statement
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

SHARE = Symbol.parse("600519.SH")
A_YEAR = timedelta(days=365)


def at(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 9, tzinfo=UTC)


def fresh(provider: FakeMarketDataProvider) -> FreshData:
    return FreshData(MarketData({Market.CN: provider}))


def priced_until(day: date) -> FakeMarketDataProvider:
    days = [day - timedelta(days=n) for n in reversed(range(60))]
    return FakeMarketDataProvider(
        bars=[a_bar(d, symbol=SHARE.text) for d in days],
        valuations=[a_valuation(d, symbol=SHARE.text) for d in days],
    )


async def read_bars(data: MarketData, today: date, back: timedelta = A_YEAR) -> int:
    return len(await data.daily_bars(SHARE, today - back, today, as_of=at(today)))


async def test_prices_that_end_long_before_the_question_are_refused_with_their_day() -> None:
    source, today = priced_until(date(2025, 3, 14)), date(2025, 10, 16)
    with pytest.raises(StaleData) as stale:
        await read_bars(fresh(source), today)
    assert str(stale.value) == (
        "The newest daily bars of 600519.SH are of 2025-03-14, 143 sessions before the question; at most 5 are "
        "allowed. Get newer data first: moot data sync 600519.SH, or moot data import."
    )
    assert "日线行情是 2025-03-14 的" in stale.value.in_locale("zh-CN")
    assert stale.value.details | {"age": 0} == {
        "dataset": "bars",
        "subject": SHARE.text,
        "day": "2025-03-14",
        "age": 0,
    }
    assert nature_of(stale.value) == (ErrorKind.DATA, False)
    assert await read_bars(MarketData({Market.CN: source}), today) == 60  # whoever only looks sees them


async def test_the_day_is_told_even_where_the_range_asked_for_is_empty() -> None:
    with pytest.raises(StaleData, match="are of 2024-03-15, 383 sessions before"):
        await read_bars(fresh(priced_until(date(2024, 3, 15))), date(2025, 10, 16))


async def test_where_there_is_nothing_there_is_nothing_to_refuse() -> None:
    data = fresh(FakeMarketDataProvider())
    assert await read_bars(data, date(2025, 10, 16)) == 0
    assert await data.financial_reports(SHARE, 4, as_of=at(date(2025, 10, 16))) == []
    assert data.newest == {}


@pytest.mark.parametrize(("today", "known"), [(date(2025, 10, 15), True), (date(2025, 10, 16), False)])
async def test_sessions_are_counted_by_the_exchanges_calendar(today: date, known: bool) -> None:
    """From 1 to 8 October 2025 nobody traded: the fifth session after 30 September is on the 15th."""
    data = fresh(priced_until(date(2025, 9, 30)))
    if known:
        assert await read_bars(data, today)
    else:
        with pytest.raises(StaleData, match="6 sessions before"):
            await read_bars(data, today)


async def test_an_empty_week_of_a_share_with_fresh_prices_is_just_empty() -> None:
    today = date(2025, 10, 9)  # after the holidays
    data = fresh(priced_until(date(2025, 9, 30)))
    assert await read_bars(data, today, timedelta(days=3)) == 0


async def test_a_range_of_the_past_is_judged_by_its_own_end() -> None:
    data, end = fresh(priced_until(date(2025, 3, 14))), date(2025, 3, 17)
    assert await data.daily_bars(SHARE, end - A_YEAR, end, as_of=at(date(2025, 10, 16)))


async def test_what_became_known_too_late_makes_nothing_fresh() -> None:
    source, today = priced_until(date(2025, 3, 14)), date(2025, 10, 16)
    source.bars.append(a_bar(today, at(today) + timedelta(minutes=1), symbol=SHARE.text))
    with pytest.raises(StaleData, match="2025-03-14"):
        await read_bars(fresh(source), today)


async def test_while_a_share_is_suspended_its_last_valuation_stays_the_newest() -> None:
    source, last = priced_until(date(2025, 9, 30)), date(2025, 9, 30)
    days = trading_calendar(Market.CN).sessions(last + timedelta(days=1), date(2025, 10, 30))
    source.bars += [a_bar(d, symbol=SHARE.text, suspended=True, volume=0, amount=0) for d in days]

    async def count_valuations(today: date) -> int:
        found = await fresh(source).daily_valuations(SHARE, today - A_YEAR, today, as_of=at(today))
        return len(found)

    assert await count_valuations(date(2025, 10, 30)) == 60
    assert await count_valuations(date(2025, 11, 6)) == 60
    with pytest.raises(StaleData, match=r"daily valuations of 600519.SH are of 2025-09-30"):
        await count_valuations(date(2025, 11, 7))


@pytest.mark.parametrize(("today", "known"), [(date(2026, 4, 30), True), (date(2026, 5, 20), False)])
async def test_a_third_quarter_is_the_newest_until_the_end_of_april(today: date, known: bool) -> None:
    third = a_report(date(2025, 9, 30), at(date(2025, 10, 28))).model_copy(update={"symbol": SHARE.text})
    data = fresh(FakeMarketDataProvider(reports=[third]))
    if known:
        assert await data.financial_reports(SHARE, 4, as_of=at(today)) == [third]
    else:
        with pytest.raises(StaleData, match=r"financial reports of 600519\.SH are of 2025-09-30, 232 days"):
            await data.financial_reports(SHARE, 4, as_of=at(today))


async def test_a_series_that_comes_by_quarters_may_be_two_of_them_old() -> None:
    today = date(2026, 6, 30)
    quarters = [date(2025, 9, 1), date(2025, 12, 1), date(2026, 3, 1)]
    data = fresh(
        FakeMarketDataProvider(
            observations=[an_observation(day, at(day), series="gdp_yoy") for day in quarters]
        )
    )
    assert [f.period for f in await data.macro(SHARE, 400, as_of=at(today))] == quarters
    with pytest.raises(StaleData):
        await data.macro(SHARE, 400, as_of=at(date(2026, 9, 15)))


async def test_an_old_macro_series_is_left_out_and_said_and_the_others_stay() -> None:
    today = date(2026, 6, 30)
    series = {"cpi_yoy": date(2026, 5, 31), "m2_yoy": date(2026, 1, 31)}
    figures = [an_observation(day, at(day), series=name) for name, day in series.items()]
    data = fresh(FakeMarketDataProvider(observations=figures))
    assert [f.series for f in await data.macro(SHARE, 200, as_of=at(today))] == ["cpi_yoy"]
    assert [str(told) for told in data.dropped] == [
        "Left out as too old: macro figures (M2 on the year), of 2026-01-31."
    ]
    assert data.newest == {"macro": date(2026, 5, 31)}
    with pytest.raises(StaleData, match="macro figures of CN are of 2026-01-31, 150 days before"):
        await fresh(FakeMarketDataProvider(observations=figures[1:])).macro(SHARE, 200, as_of=at(today))


async def test_news_is_never_too_old_and_its_day_is_that_of_the_exchange() -> None:
    today, late = date(2026, 6, 30), datetime(2026, 4, 1, 22, tzinfo=UTC)
    item = a_news_item(date(2026, 4, 1), late, symbol=SHARE.text)
    data = fresh(FakeMarketDataProvider(directory=[a_company(SHARE.text)], items=[item]))
    assert await data.news(SHARE, 120, as_of=at(today)) == [item]
    assert data.newest == {"news": date(2026, 4, 2)}


def test_every_limit_has_one_unit() -> None:
    limits = {name: dataset.limit for name, dataset in DATASETS.items() if dataset.limit}
    assert {"bars", "valuations", "reports", "statements", "macro"} <= set(limits)
    assert "news" not in limits
    assert all((limit.sessions is None) is not (limit.days is None) for limit in limits.values())


def test_beyond_its_table_a_calendar_takes_weekdays_for_sessions() -> None:
    calendar = TradingCalendar(Market.CN, [date(2026, 1, 5), date(2026, 1, 7)])
    assert calendar.count(date(2026, 1, 5), date(2026, 1, 7)) == 2  # the 6th was closed
    assert calendar.count(date(2026, 1, 7), date(2026, 1, 12)) == 4
    assert calendar.count(date(2026, 1, 8), date(2026, 1, 7)) == 0


async def test_a_restated_statement_is_known_from_its_update_on(tmp_path) -> None:
    lake, period = Lake(tmp_path), date(2024, 12, 31)
    first, restated = at(date(2025, 3, 28)), at(date(2025, 8, 20))

    def stated(revenue: float, known: datetime) -> Statement:
        return Statement(
            symbol=SHARE.text,
            period_end=period,
            announced_on=first.date(),
            event_time=at(period),
            available_at=known,
            source="fake",
            revenue=revenue,
        )

    lake.store(
        STATEMENTS, SHARE.text, [stated(90.0, restated), stated(100.0, first)], covered=None, at=restated
    )
    data = MarketData({Market.CN: lake})

    async def revenue(as_of: datetime) -> list[float | None]:
        return [s.revenue for s in await data.read_versions(STATEMENTS, SHARE, as_of)]

    a_second = timedelta(seconds=1)
    assert await revenue(first - a_second) == []
    assert await revenue(restated - a_second) == [100.0]
    assert await revenue(restated) == [90.0]


RENAMED = a_company(
    SHARE.text,
    name="新名股份",
    name_en="New Name",
    pinyin="xmgf",
    aliases=("旧名股份", "*ST旧名", "新名集团", "老字号"),
    names=(
        NameSince(name="旧名股份", start=date(2004, 6, 18)),
        NameSince(name="*ST旧名", start=date(2010, 5, 4)),
        NameSince(name="新名集团", start=date(2012, 5, 4)),
        NameSince(name="新名股份", start=date(2020, 1, 2)),
    ),
    st_history=(SpecialTreatment(start=date(2010, 5, 4), end=date(2012, 5, 4)),),
)


@pytest.mark.parametrize(
    ("day", "name", "english", "aliases"),
    [
        (date(2009, 1, 5), "旧名股份", "Jiuming Gufen", ("旧名股份", "老字号")),
        (date(2011, 1, 5), "*ST旧名", "*ST Jiuming", ("旧名股份", "*ST旧名", "老字号")),
        (date(2015, 1, 5), "新名集团", "Xinming Jituan", ("旧名股份", "*ST旧名", "新名集团", "老字号")),
        (date(2021, 1, 5), "新名股份", "New Name", RENAMED.aliases),
    ],
)
async def test_a_company_is_called_what_it_was_called_then(
    day: date, name: str, english: str, aliases: tuple[str, ...]
) -> None:
    data = MarketData({Market.CN: FakeMarketDataProvider(directory=[RENAMED])})
    seen = await data.company(SHARE, as_of=at(day))
    assert (seen.name, seen.name_en, seen.aliases) == (name, english, aliases)
    assert all(known.start <= day for known in seen.names)
    assert bool(seen.pinyin) is (day.year > 2020)


async def test_of_a_name_before_the_first_one_known_the_oldest_is_told() -> None:
    late = RENAMED.model_copy(update={"names": RENAMED.names[2:]})
    data = MarketData({Market.CN: FakeMarketDataProvider(directory=[late])})
    assert (await data.company(SHARE, as_of=at(date(2009, 1, 5)))).name == "新名集团"
