"""Trading days as the exchanges keep them, and a clear word where the knowledge ends."""

from datetime import date

import pytest

from moot.modules.market_data.domain.trading_rules import TradingCalendar, trading_calendar
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market
from tests.market_data import closed_days

CN, US, DEMO = (trading_calendar(market) for market in (Market.CN, Market.US, Market.DEMO))
WEEK = TradingCalendar(Market.CN, [date(2026, 11, 9), date(2026, 11, 10), date(2026, 11, 13)])


def test_shanghai_trades_on_242_days_of_2026() -> None:
    sessions = CN.sessions(date(2026, 1, 1), date(2026, 12, 31))
    assert (len(sessions), sessions[0], sessions[-1]) == (242, date(2026, 1, 5), date(2026, 12, 31))


def test_national_day_and_spring_festival_are_holidays_and_make_up_weekends_are_not_traded() -> None:
    assert CN.sessions(date(2026, 10, 1), date(2026, 10, 7)) == []
    assert CN.next_session(date(2026, 10, 3)) == date(2026, 10, 8)
    assert CN.sessions(date(2026, 2, 17), date(2026, 2, 17)) == []
    assert CN.sessions(date(2026, 10, 10), date(2026, 10, 10)) == []  # a Saturday on which offices work


def test_new_york_keeps_its_own_days() -> None:
    assert US.sessions(date(2026, 11, 26), date(2026, 11, 26)) == []
    assert US.sessions(date(2026, 10, 1), date(2026, 10, 1)) == [date(2026, 10, 1)]
    assert len(US.sessions(date(2026, 1, 1), date(2026, 12, 31))) == 251


def test_the_demo_market_keeps_its_rule() -> None:
    assert DEMO.first == date(2018, 1, 2)
    assert DEMO.sessions(date(2024, 9, 29), date(2024, 10, 9)) == [
        date(2024, 9, 30),
        date(2024, 10, 8),
        date(2024, 10, 9),
    ]
    assert DEMO.next_session(date(2049, 5, 31)) == date(2049, 6, 1)


def test_a_session_is_not_its_own_neighbour() -> None:
    assert [WEEK.next_session(date(2026, 11, day)) for day in (10, 12)] == [date(2026, 11, 13)] * 2
    assert (WEEK.first, WEEK.last) == (date(2026, 11, 9), date(2026, 11, 13))


@pytest.mark.parametrize(
    ("ask", "days"),
    [
        ("sessions", [date(2026, 11, 10), date(2026, 11, 14)]),
        ("next_session", [date(2026, 11, 13)]),
    ],
)
def test_past_its_end_a_calendar_names_its_last_day_and_the_remedy(ask: str, days: list[date]) -> None:
    with pytest.raises(Unavailable) as caught:
        getattr(WEEK, ask)(*days)
    assert (caught.value.code, caught.value.details["last"]) == ("CALENDAR_ENDED", "2026-11-13")
    for locale in LOCALES:
        said = caught.value.in_locale(locale)
        assert "2026-11-13" in said
        assert "pip install -U moot" in said


@pytest.mark.parametrize(
    ("ask", "days"),
    [
        ("sessions", [date(2026, 11, 8), date(2026, 11, 10)]),
        ("next_session", [date(2026, 11, 8)]),
    ],
)
def test_before_its_beginning_a_calendar_names_its_first_day(ask: str, days: list[date]) -> None:
    with pytest.raises(Unavailable) as caught:
        getattr(WEEK, ask)(*days)
    assert caught.value.code == "CALENDAR_NOT_BEGUN"
    assert all("2026-11-09" in caught.value.in_locale(locale) for locale in LOCALES)


def test_the_real_calendar_of_shanghai_ends_with_an_error_and_not_with_a_guess() -> None:
    with pytest.raises(Unavailable, match="ends on 2"):
        CN.next_session(date(CN.last.year + 1, 1, 4))


@pytest.mark.parametrize("market", list(closed_days.NAMES))
def test_the_table_of_closed_days_is_what_exchange_calendars_knows(market: Market) -> None:
    """As far as the exchanges have announced their days; `closed_days` says what to do when they announce more."""
    calendar = trading_calendar(market)
    assert calendar.sessions(calendar.first, calendar.last) == closed_days.sessions(market)
    assert (calendar.first, calendar.last) == (closed_days.FIRST[market], closed_days.LAST[market])
    assert closed_days.TABLE.read_text(encoding="utf-8") == closed_days.table()
