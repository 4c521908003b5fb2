"""What the rules measure of prices, of many shares at once: one share is a panel of one.

Averages that carry on from day to day are TA-Lib's, share by share; what looks at a window of days is worked out for
all shares together. MACD's averages start from the first close and its bar is 2·(DIF − DEA); RSI, ATR and ADX are
Wilder's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moot.modules.research.application.technical_analyst import Pattern
from moot.modules.research.infrastructure.ta_lib import talib
from moot.shared.domain.facts import DailyBar

Series = NDArray[np.float64]
"""Of a panel: a row for each share, oldest day first."""
Column = NDArray[Any]
Columns = dict[str, list[Any]]
"""By name, a value for each share; None where there are too few bars."""

AVERAGES = (20, 60, 200)
SWING_REACH = 3
"""A swing low is the lowest of its day and this many days on either side."""
PROJECTED_ATRS = 2.0
"""How many average true ranges away a level is put where no swing marks one."""
LEAST_REACH = 0.01
"""And at least this share of the price away: one that never moved has no true range."""
CENT = 0.01
"""What is nearer to the price reads as the price."""
CROSS_WITHIN = 3
A_YEAR = 250
"""Sessions, to tell volatility by the year."""
YEAR_ENOUGH = 120
"""From as many on, what is usual for a share can be told from its past."""
POSITION, SOLD_PER_DAY = 1e7, 0.1
"""What it should be possible to sell, and the share of a day's turnover one can be without moving the price."""


@dataclass(frozen=True)
class Prices:
    """Of shares with equally many bars."""

    open: Series
    high: Series
    low: Series
    close: Series
    volume: Series
    amount: Series

    @classmethod
    def of(cls, bars: Sequence[DailyBar]) -> "Prices":
        rows = [(bar.open, bar.high, bar.low, bar.close, float(bar.volume), bar.amount) for bar in bars]
        return cls(*np.array(rows, dtype=np.float64).T[:, np.newaxis].copy())


def measure(p: Prices, levels: int = 1) -> Columns:
    """Of at least 30 bars, on the last of them; of swing levels so many on either side. What is named for days tells
    them as positions in the series.
    """
    atr, patterns = last_of(talib.ATR, p.high, p.low, p.close, options=(14,)), _find_patterns(p)
    return {
        "current_price": p.close[:, -1].tolist(),
        **{f"ma{n}": last_of(talib.SMA, p.close, options=(n,)) for n in AVERAGES},
        "rsi_value": rsi(p.close),
        "macd_histogram": round_all(2 * np.subtract(*find_macd(p.close))),
        **{
            name: last_of(function, p.high, p.low, p.close, options=(14,))
            for name, function in (
                ("adx_value", talib.ADX),
                ("plus_di", talib.PLUS_DI),
                ("minus_di", talib.MINUS_DI),
            )
        },
        "obv_change": round_all(100 * move_obv(p)),
        **_turnover(p.amount),
        **{f"return_{n}d": find_return(p.close, n) for n in (20, 60)},
        "volatility_20d": find_volatility(p.close, 20),
        "volatility_1y": find_volatility(p.close, max(p.close.shape[1] - 1, YEAR_ENOUGH)),
        "atr_value": atr,
        **_levels(p, atr, levels),
        "detected_patterns": [list(found) for found in patterns],
        "pattern_days": patterns,
    }


def last_of(function: Callable[..., Any], *series: Series, options: tuple[Any, ...]) -> list[Any]:
    return round_all([float(function(*rows, *options)[-1]) for rows in zip(*series, strict=True)])


def round_all(values: Iterable[float], digits: int = 4) -> list[Any]:
    """None for what is no number: there were too few bars, or nothing to divide by."""
    known = values.tolist() if isinstance(values, np.ndarray) else values
    return [round(value, digits) if value == value else None for value in known]  # noqa: PLR0124


def rsi(close: Series, period: int = 14) -> list[float | None]:
    """Wilder's; a price that never moved has none."""
    still = (close == close[:, :1]).all(axis=1).tolist()
    found = last_of(talib.RSI, close, options=(period,))
    return [None if never else value for never, value in zip(still, found, strict=True)]


def find_macd(close: Series) -> tuple[Column, Column]:
    """DIF and DEA on the last day."""
    dif = smooth(close, 12, seed=close[:, :1]) - smooth(close, 26, seed=close[:, :1])
    return dif[:, -1], np.array([talib.EMA(row, 9)[-1] for row in _begin_from(dif[:, :1], dif, 9)])


def smooth(values: Series, period: int, seed: Series | float) -> Series:
    """An exponential average that starts from `seed`: TA-Lib starts from the mean of its first `period` values."""
    started = [talib.EMA(row, period) for row in _begin_from(seed, values, period)]
    return np.array(started)[:, period:]


def _begin_from(seed: Series | float, values: Series, period: int) -> Series:
    return np.concatenate([np.broadcast_to(seed, (len(values), period)), values], axis=1)


def move_obv(p: Prices) -> Column:
    """What on-balance volume moved in five days, as a share of what was traded; not a number if nothing was."""
    volume = p.volume[:, -5:]
    traded = volume.sum(axis=1)
    signed = (np.sign(np.diff(p.close[:, -6:], axis=1)) * volume).sum(axis=1)
    return _divide(signed, traded)


def _divide(part: Column, whole: Column) -> Column:
    quotient: Column = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole != 0)
    return quotient


def _turnover(amount: Series) -> Columns:
    count, days = amount.shape
    month = _mean(amount[:, -20:])
    year = _mean(amount).tolist() if days >= YEAR_ENOUGH else [None] * count
    selling = round_all(_divide(np.full(count, POSITION), SOLD_PER_DAY * month))
    return {
        "turnover_20d": month.tolist(),
        "turnover_1y": year,
        "position": [POSITION] * count,
        "days_to_sell": selling,
    }


def _mean(values: Series) -> Column:
    """Added up day by day, so that it is the same however many shares there are."""
    mean: Column = values.cumsum(axis=1)[:, -1] / values.shape[1]
    return mean


def find_return(close: Series, days: int) -> list[float | None]:
    """To the tenth that people read, so that differences are those of the numbers they see."""
    if close.shape[1] <= days:
        return [None] * len(close)
    return round_all(100 * (close[:, -1] / close[:, -1 - days] - 1), 1)


def find_volatility(close: Series, days: int) -> list[float | None]:
    """Of the daily moves of so many days, told by the year."""
    if close.shape[1] <= days:
        return [None] * len(close)
    moves = np.diff(np.log(close[:, -1 - days :]), axis=1)
    return round_all(100 * sqrt(A_YEAR) * moves.std(axis=1, ddof=1))


def _levels(p: Prices, atr: list[Any], most: int) -> Columns:
    """Swing lows below and swing highs above the price, nearest first; and the one that counts on each side. What an
    ordinary day can reach refutes nothing: levels are a day's range apart, and from the price.
    """
    price, ranges = p.close[:, -1], np.array([each or 0.0 for each in atr])
    noise, reach = np.maximum(ranges, CENT), np.maximum(PROJECTED_ATRS * ranges, LEAST_REACH * price)
    lows = _walk_outward(p.low, _find_turns(p.low, np.minimum), -1, price, noise, most)
    highs = _walk_outward(p.high, _find_turns(p.high, np.maximum), 1, price, noise, most)
    supports, resistances = _read_at(p.low, lows), _read_at(p.high, highs)
    return {
        "calculated_support_levels": supports,
        "calculated_resistance_levels": resistances,
        "support": _first_or(supports, np.maximum(price - reach, price / 2)),
        "resistance": _first_or(resistances, price + reach),
        "support_days": lows,
        "resistance_days": highs,
    }


def _find_turns(values: Series, extreme: np.ufunc) -> NDArray[np.bool_]:
    """Which days but the first and last few are the extreme of those around them."""
    days = values.shape[1] - 2 * SWING_REACH
    around = values[:, :days].copy()
    for step in range(1, 2 * SWING_REACH + 1):
        extreme(around, values[:, step : step + days], out=around)
    turned: NDArray[np.bool_] = around == values[:, SWING_REACH:-SWING_REACH]
    return turned


def _walk_outward(
    values: Series, turned: NDArray[np.bool_], side: int, price: Column, noise: Column, most: int
) -> list[list[int]]:
    """Walk away from the price; what lies within the noise of the last level (or the price) is not another one. Of
    equal levels, the newest.
    """
    inner = values[:, SWING_REACH:-SWING_REACH]
    kept: list[list[int]] = [[] for _ in price]
    last = price
    for _ in range(most):
        away = (inner - last[:, np.newaxis]) * side
        away = np.where(turned & (away >= noise[:, np.newaxis]), away, inf)
        nearest = inner.shape[1] - 1 - away[:, ::-1].argmin(axis=1)
        rows = np.arange(len(price))
        there = away[rows, nearest] < inf
        last = np.where(there, inner[rows, nearest], last)
        for row in np.flatnonzero(there).tolist():
            kept[row].append(int(nearest[row]) + SWING_REACH)
    return kept


def _read_at(values: Series, places: list[list[int]]) -> list[list[float]]:
    return [[round(float(row[n]), 4) for n in found] for row, found in zip(values, places, strict=True)]


def _first_or(levels: list[list[float]], projected: Column) -> list[float]:
    return [
        found[0] if found else round(other, 4)
        for found, other in zip(levels, projected.tolist(), strict=True)
    ]


def _find_patterns(p: Prices) -> list[dict[Pattern, list[int]]]:
    """Of each share, with the bars that make it, the newest last."""
    last, (crossed, day) = p.close.shape[1] - 1, _find_crosses(p.close)
    recent = zip(*(prices[:, -15:] for prices in (p.open, p.high, p.low, p.close)), strict=True)
    engulfing = np.array([talib.CDLENGULFING(*rows)[-1] for rows in recent])
    end, rows = p.close[:, -1], np.arange(len(p.close))
    high = last - 1 - p.high[:, -2:-22:-1].argmax(axis=1)
    low = last - 1 - p.low[:, -2:-22:-1].argmin(axis=1)
    now, before = np.full(len(rows), last), np.full(len(rows), last - 1)
    seen: dict[Pattern, tuple[Column, tuple[Column, ...]]] = {
        "golden_cross": (crossed > 0, (day,)),
        "death_cross": (crossed < 0, (day,)),
        "breakout_20d_high": (end > p.high[rows, high], (high, now)),
        "breakdown_20d_low": (end < p.low[rows, low], (low, now)),
        "bullish_engulfing": (engulfing > 0, (before, now)),
        "bearish_engulfing": (engulfing < 0, (before, now)),
    }
    found: list[dict[Pattern, list[int]]] = [{} for _ in rows]
    for pattern, (shares, bars) in seen.items():
        for row in np.flatnonzero(shares).tolist():
            found[row][pattern] = [int(places[row]) for places in bars]
    return found


def _find_crosses(close: Series) -> tuple[Column, Column]:
    """Whether the 5-day average went above (+1) or below (−1) the 20-day one in the last three days, and where."""
    recent = close[:, -(20 + CROSS_WITHIN) :]
    fast, slow = (np.array([talib.SMA(row, days) for row in recent]) for days in (5, 20))
    above = (fast - slow)[:, -1 - CROSS_WITHIN :] > 0
    turned = above[:, :0:-1] != above[:, -2::-1]
    crossed = above[:, -1].astype(int) - above[:, 0]
    return crossed, close.shape[1] - 1 - turned.argmax(axis=1)
