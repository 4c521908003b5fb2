"""When a market's figures happen and become public, for the sources that tell a day but no time of day."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from moot.shared.domain.symbol import TIME_ZONES, Market

CLOSE_AND_RELEASE: dict[Market, tuple[time, time]] = {
    Market.CN: (time(15), time(16)),
    Market.DEMO: (time(15), time(16)),
    Market.US: (time(16), time(17)),
}
LONGEST_HOLIDAY = timedelta(days=12)
"""How far the day printed on an announcement may lie from the day it became visible."""
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


def known_from(moment: datetime | None) -> dict[str, datetime]:
    """Both times of what is public as it happens; none, so that it is refused, where the moment is not told."""
    return {} if moment is None else {"event_time": moment, "available_at": moment}


def of_day(symbol: Any, day: Any, market: Market, source: str) -> dict[str, Any]:
    """What every row about a trading day begins with; without times, and so refused, where it is no day."""
    times = day_times(day, market) if isinstance(day, date) else {}
    return {"symbol": symbol, "trade_date": day, "source": source, **times}


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


@dataclass(frozen=True)
class MacroRelease:
    """When a Chinese macro figure is out at the latest: on a day of the month after its own, or on its own day.

    `late` are the months whose figures wait for a holiday: January's for spring festival, September's for October.
    """

    unit: str
    at: time
    next_month_on: int | None = None
    late: Mapping[int, int] = field(default_factory=dict)

    @property
    def monthly(self) -> bool:
        return self.next_month_on is not None

    def times(self, period: date) -> dict[str, datetime]:
        """A month's figure happens at its end, another one when it comes out."""
        if self.next_month_on is None:
            return known_from(moment(period, self.at, Market.CN))
        ended = (period.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        day = self.late.get(period.month, self.next_month_on)
        out = moment((ended + timedelta(days=1)).replace(day=day), self.at, Market.CN)
        return {"event_time": moment(ended, CLOSE_AND_RELEASE[Market.CN][0], Market.CN), "available_at": out}


LATE_PRICES = {1: 18, 9: 16}
MACRO_RELEASES: dict[str, MacroRelease] = {
    "pmi_manufacturing": MacroRelease("index", time(9, 30), next_month_on=1),
    "cpi_yoy": MacroRelease("%", time(9, 30), next_month_on=12, late=LATE_PRICES),
    "ppi_yoy": MacroRelease("%", time(9, 30), next_month_on=12, late=LATE_PRICES),
    "m2_yoy": MacroRelease("%", time(17), next_month_on=16, late={1: 20, 9: 18}),
    "lpr_1y": MacroRelease("%", time(11, 30)),
    "cgb_10y": MacroRelease("%", time(18)),
}
"""Sources tell the period, not the release."""


def observation(series: str, period: date | str | None, value: Any, url: str, source: str) -> dict[str, Any]:
    """A row of a macro series; without times, and so refused, where the period is no day."""
    release = MACRO_RELEASES[series]
    times = release.times(period) if isinstance(period, date) else {}
    told = {"series": series, "period": period, "value": value, "unit": release.unit}
    return {**told, "url": url, "source": source, **times}
