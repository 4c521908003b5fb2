"""On which days a company's share is listed, halted or under special treatment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moot.modules.market_data.infrastructure.demo.calendar import SOURCE, day_times, trading_days
from moot.modules.market_data.infrastructure.demo.companies import Firm
from moot.modules.market_data.infrastructure.demo.noise import uniforms

Flags = NDArray[np.bool_]

TRADING_DAYS_A_YEAR = 250
HALT_DAYS = (2, 8)
NO_HALTS = (6, 7)  # the months in which shares go ex-right


@dataclass(frozen=True)
class Sessions:
    """The trading days on which the share is listed; `first` is the market's number of the first of them."""

    days: tuple[date, ...]
    first: int
    halted: Flags
    special: Flags


def sessions(firm: Firm, seed: int, until: date) -> Sessions:
    calendar = trading_days(until)
    listed = [n for n, day in enumerate(calendar) if firm.listed_on(day)]
    first = listed[0] if listed else len(calendar)
    days = calendar[first : first + len(listed)]
    halted = _halts(firm, seed, calendar)[first : first + len(listed)]
    halted[:1] = False  # a share trades on its first day
    special = np.array([firm.under_special_treatment(day) for day in days], dtype=bool)
    return Sessions(days, first, halted, special)


def daily_rows(sessions: Sessions, columns: Mapping[str, Sequence[object]]) -> Iterator[dict[str, Any]]:
    """The columns as the fields of one fact a day, with its date and times."""
    for day, *values in zip(sessions.days, *columns.values(), strict=True):
        yield {
            "trade_date": day,
            "source": SOURCE,
            **day_times(day),
            **dict(zip(columns, values, strict=True)),
        }


def _halts(firm: Firm, seed: int, calendar: tuple[date, ...]) -> Flags:
    shortest, longest = HALT_DAYS
    chances = uniforms(2 * len(calendar), seed, firm.symbol, "halts").reshape(-1, 2)
    allowed: Flags = np.array([day.month not in NO_HALTS for day in calendar], dtype=bool)
    halted = np.zeros_like(allowed)
    for start in np.flatnonzero(chances[:, 0] < firm.trading.halts_per_year / TRADING_DAYS_A_YEAR):
        halted[start : start + shortest + int(chances[start, 1] * (longest - shortest + 1))] = True
    return halted & allowed
