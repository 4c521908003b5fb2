"""When a market's figures happen and become public, for the sources that tell a day but no time of day."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from moot.shared.domain.symbol import TIME_ZONES, Market

CLOSE_AND_RELEASE: dict[Market, tuple[time, time]] = {
    Market.CN: (time(15), time(16)),
    Market.DEMO: (time(15), time(16)),
    Market.US: (time(16), time(17)),
}
ANNOUNCED_BY = time(18)
"""An announcement is dated, not timed: by this hour of its day it is out."""
CN_DEADLINES: dict[int, tuple[int, int, int]] = {3: (0, 4, 30), 6: (0, 8, 31), 9: (0, 10, 31), 12: (1, 4, 30)}
"""By the month of a period's end: years later, month, day."""
US_ANNUAL_DAYS, US_QUARTERLY_DAYS = 60, 40
"""A large accelerated filer's days for a 10-K and a 10-Q."""


def moment(day: date, at: time, market: Market) -> datetime:
    """Exchange time on `day`, as UTC."""
    return datetime.combine(day, at, TIME_ZONES[market]).astimezone(UTC)


def day_times(day: date, market: Market) -> dict[str, datetime]:
    close, release = CLOSE_AND_RELEASE[market]
    return {"event_time": moment(day, close, market), "available_at": moment(day, release, market)}


def announcement_times(period_end: date, announced: date, market: Market) -> dict[str, Any]:
    """What a report or a dividend says about its times."""
    return {
        "announced_on": announced,
        "event_time": moment(period_end, CLOSE_AND_RELEASE[market][0], market),
        "available_at": moment(announced, ANNOUNCED_BY, market),
    }


def statutory_deadline(period_end: date, market: Market, *, annual: bool = False) -> date:
    """The last day a report of the period may come out: when it was public at the latest, if no date is known."""
    if market is Market.US:
        return period_end + timedelta(days=US_ANNUAL_DAYS if annual else US_QUARTERLY_DAYS)
    years, month, day = CN_DEADLINES.get(period_end.month, CN_DEADLINES[12])
    return date(period_end.year + years, month, day)
