"""Can the data be trusted? Each kind of oddity is found on its day, and sound data get no remark."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from moot.modules.market_data.application.upkeep import Case, disagreements, examine
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import DailyValuation
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.market_data import FakeMarketDataProvider, a_bar, a_company, a_valuation

SYMBOL = Symbol.parse("600519.SH")
DAYS = [date(2026, 6, n) for n in (22, 23, 24, 25, 26, 29, 30)]


def a_case(**changes) -> Case:
    """Seven sound days: 10.00 every day, 1,000 shares for 10,000."""
    bars = {day: a_bar(day, symbol="600519.SH", volume=1000, amount=10_000.0) for day in DAYS}
    for day, change in changes.get("bars", {}).items():
        bars[day] = bars[day].model_copy(update=change)
    for day in changes.get("without", ()):
        del bars[day]
    company = a_company("600519.SH", list_date=date(2001, 8, 27))
    calendar = TradingCalendar(Market.CN, [date(2001, 8, 27) + timedelta(days=n) for n in range(20)] + DAYS)
    return Case(company, list(bars.values()), changes.get("valuations", []), calendar)


def test_sound_data_get_no_remark():
    assert examine(a_case()) == []


@pytest.mark.parametrize(
    ("changes", "kind", "day"),
    [
        ({"without": [DAYS[2]]}, "gap", DAYS[2]),
        ({"bars": {DAYS[6]: {"high": 12.0, "close": 12.0, "amount": 11_000.0}}}, "move", DAYS[6]),
        ({"bars": {DAYS[3]: {"amount": 10.0}}}, "unit", DAYS[3]),
        ({"bars": {DAYS[6]: {"adj_factor": 2.0}}}, "factor", DAYS[6]),
    ],
)
def test_each_oddity_is_found_on_its_day(changes, kind, day):
    (remark,) = examine(a_case(**changes))
    assert (remark.kind, remark.day) == (kind, day)
    for locale in LOCALES:
        assert remark.text.in_locale(locale).startswith(day.isoformat())


def test_a_suspension_nobody_told_is_said_once_and_is_no_gap():
    still = {"volume": 0, "amount": 0.0, "suspended": True}
    case = a_case(bars=dict.fromkeys(DAYS[2:5], still), without=[DAYS[6]])
    (remark,) = examine(replace(case, inferred=frozenset(DAYS[2:5])))
    assert (remark.kind, remark.day) == ("suspended", DAYS[2])
    assert str(remark.text).startswith("2026-06-24 to 2026-06-26: no bars of 3 sessions")


def test_an_ex_right_day_told_by_price_and_factor_alike_is_sound():
    ex = {
        "open": 5.0,
        "high": 5.0,
        "low": 5.0,
        "close": 5.0,
        "pre_close": 5.0,
        "adj_factor": 2.0,
        "amount": 5000.0,
    }
    assert examine(a_case(bars={DAYS[6]: ex})) == []


def test_shares_do_not_triple_overnight():
    valuations: list[DailyValuation] = [
        a_valuation(DAYS[0], symbol="600519.SH", close=10.0, total_mv=1e9),
        a_valuation(DAYS[1], symbol="600519.SH", close=10.0, total_mv=1e13),
    ]
    (remark,) = examine(a_case(valuations=valuations))
    assert (remark.kind, remark.day) == ("shares", DAYS[1])


async def test_sources_that_disagree_are_named_and_one_that_is_down_is_left_out():
    class Down(FakeMarketDataProvider):
        async def read(self, *asked):
            raise Unavailable("down")

    ours = FakeMarketDataProvider(bars=[a_bar(day, symbol="600519.SH") for day in DAYS], name="tushare")
    theirs = FakeMarketDataProvider(
        bars=[a_bar(day, symbol="600519.SH", price=11.0 if day == DAYS[1] else 10.0) for day in DAYS],
        name="akshare",
    )
    sources = {"tushare": ours, "down": Down(), "akshare": theirs}
    (remark,) = await disagreements(SYMBOL, sources, DAYS[-1])
    assert (remark.kind, remark.day) == ("disagree", DAYS[1])
    assert str(remark.text) == "2026-06-23: the close is 10.00 by tushare and 11.00 by akshare."
