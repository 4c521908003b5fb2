"""What the demo market stands on: its calendar, and random numbers that depend on their name alone.

The same key gives the same stream, a longer draw only appends. Philox's raw output is stable across numpy versions,
numpy's distributions are not: hence our own transforms. The slow tides under everything, the economy's and each
industry's, are monthly, around zero and of unit variance.
"""

import hashlib
import math
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

import numpy as np
from numpy.typing import NDArray

from moot.shared.domain.symbol import TIME_ZONES, Market

SOURCE = "demo"
ZONE = TIME_ZONES[Market.DEMO]
FIRST_YEAR = 2014  # of the economy and the books; trading begins later, so that trailing years exist at once
FIRST_TRADING_DAY = date(2018, 1, 2)


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


def months(until: date) -> list[date]:
    """The first day of every month since the start of the first year whose last day is not after `until`."""
    firsts = (date(year, month, 1) for year in range(FIRST_YEAR, until.year + 1) for month in range(1, 13))
    return [first for first in firsts if month_end(first) <= until]


def month_end(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def quarter_ends(until: date) -> list[date]:
    """Every quarter's last day since the start of the first year, up to `until`."""
    return [month_end(first) for first in months(until) if first.month % 3 == 0]


def moment(day: date, hour: int, minute: int = 0) -> datetime:
    """Exchange time on `day`, as UTC."""
    return datetime.combine(day, time(hour, minute), ZONE).astimezone(UTC)


@cache
def day_times(day: date) -> dict[str, datetime]:
    """The two times of a trading day's figures: made at the close, published an hour later."""
    return {"event_time": moment(day, 15), "available_at": moment(day, 16)}


Array = NDArray[np.float64]


def digest(*key: object) -> bytes:
    return hashlib.sha256("/".join(map(str, key)).encode()).digest()


def uniforms(count: int, *key: object) -> Array:
    """Uniform on the open interval (0, 1)."""
    stream = np.random.Philox(key=int.from_bytes(digest(*key)[:16], "little"))
    mantissas = stream.random_raw(count) >> np.uint64(11)
    return (mantissas.astype(np.float64) + 0.5) * 2.0**-53


def normals(count: int, *key: object) -> Array:
    """Standard normal, by Box and Muller."""
    u = uniforms(2 * count, *key).reshape(count, 2)
    radius: Array = np.sqrt(-2 * np.log(u[:, 0]))
    return radius * np.cos(2 * np.pi * u[:, 1])


def fat_tailed(count: int, *key: object) -> Array:
    """Student's t with four degrees of freedom, scaled to unit variance."""
    logs: Array = np.log(uniforms(2 * count, *key, "scale").reshape(count, 2))
    scale: Array = np.sqrt(-logs.sum(axis=1))
    return normals(count, *key) / scale


def wander(shocks: Array, memory: float) -> Array:
    """A stationary walk around zero with the variance of its shocks; `memory` is its lag-1 correlation."""
    fresh = math.sqrt(1 - memory**2)
    path: list[float] = shocks[:1].tolist()
    for shock in shocks[1:].tolist():
        path.append(memory * path[-1] + fresh * shock)
    return np.array(path)


MEMORY = 0.94  # month to month: a tide turns in about a year
COMMON = 0.5  # how much of an industry's tide is the economy's


def economy_tide(seed: int, months: int) -> Array:
    return wander(normals(months, seed, "economy"), MEMORY)


def industry_tide(seed: int, name: str, months: int) -> Array:
    own = wander(normals(months, seed, "industry", name), MEMORY)
    return COMMON * economy_tide(seed, months) + math.sqrt(1 - COMMON**2) * own
