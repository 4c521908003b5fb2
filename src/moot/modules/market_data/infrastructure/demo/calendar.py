"""The demo market's calendar: trading days, quarters, months, and moments on the exchange's clock."""

from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from moot.shared.domain.symbol import TIME_ZONES, Market

SOURCE = "demo"
ZONE = TIME_ZONES[Market.DEMO]
FIRST_YEAR = 2014  # of the economy and the books; trading begins later, so that trailing years exist at once
FIRST_TRADING_DAY = date(2018, 1, 2)
QUARTER_ENDS = ((3, 31), (6, 30), (9, 30), (12, 31))


@cache
def trading_days(until: date) -> tuple[date, ...]:
    """Every trading day from the first one to `until`."""
    count = (until - FIRST_TRADING_DAY).days + 1
    days = (FIRST_TRADING_DAY + timedelta(days=n) for n in range(max(count, 0)))
    return tuple(day for day in days if is_trading_day(day))


def is_trading_day(day: date) -> bool:
    """Weekdays, except New Year, 1-3 May, 1-7 October and the spring festival.

    The festival is the first Monday of February with the Tuesday and Wednesday after it.
    """
    if day.weekday() >= 5:
        return False
    festival = day.month == 2 and day.weekday() <= 2 and 1 <= day.day - day.weekday() <= 7
    fixed = {1: range(1, 2), 5: range(1, 4), 10: range(1, 8)}
    return not festival and day.day not in fixed.get(day.month, ())


def quarter_ends(until: date) -> list[date]:
    """Every quarter's last day since the start of the first year, up to `until`."""
    ends = (date(year, *end) for year in range(FIRST_YEAR, until.year + 1) for end in QUARTER_ENDS)
    return [end for end in ends if end <= until]


def months(until: date) -> list[date]:
    """The first day of every month since the start of the first year whose last day is not after `until`."""
    firsts = (date(year, month, 1) for year in range(FIRST_YEAR, until.year + 1) for month in range(1, 13))
    return [first for first in firsts if month_end(first) <= until]


def month_end(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def moment(day: date, hour: int, minute: int = 0) -> datetime:
    """Exchange time on `day`, as UTC."""
    return datetime.combine(day, time(hour, minute), ZONE).astimezone(UTC)


@cache
def day_times(day: date) -> dict[str, datetime]:
    """The two times of a trading day's figures: made at the close, published an hour later."""
    return {"event_time": moment(day, 15), "available_at": moment(day, 16)}
