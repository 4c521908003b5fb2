"""Technical indicators by TA-Lib, with the conventions of Chinese platforms where those differ.

MACD's averages start from the first close and its bar is 2·(DIF − DEA); KDJ smooths by one third from 50;
Bollinger bands use the population deviation; RSI, ATR and ADX are Wilder's.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import copysign, isnan, sqrt
from threading import get_ident
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moot.modules.research.application.technical_analyst import Pattern
from moot.shared.domain.facts import DailyBar


@contextmanager
def hide_modules(*names: str) -> Iterator[None]:
    """For the block, and for this thread alone; what is loaded already stays in sight."""
    here = get_ident()

    def find_spec(name: str, *_: Any) -> None:
        if name in names and get_ident() == here:
            raise ModuleNotFoundError(f"hidden: {name}", name=name)

    hiding: Any = SimpleNamespace(find_spec=find_spec)
    sys.meta_path.insert(0, hiding)
    try:
        yield
    finally:
        sys.meta_path.remove(hiding)


# where they are installed TA-Lib loads both, to take columns; it gets arrays
with hide_modules("pandas", "polars"):
    import talib

Series = NDArray[np.float64]

AVERAGES = (5, 10, 20, 30, 60, 120, 200)
FLAT_OBV = 0.1
"""An on-balance volume that moved less than this share of what was traded is flat."""
SWING_REACH = 3
"""A swing low is the lowest of its day and this many days on either side."""
MOST_LEVELS = 3
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
    open: Series
    high: Series
    low: Series
    close: Series
    volume: Series

    @classmethod
    def of(cls, bars: Sequence[DailyBar]) -> "Prices":
        rows = [(bar.open, bar.high, bar.low, bar.close, float(bar.volume)) for bar in bars]
        return cls(*np.array(rows, dtype=np.float64).T.copy())


def compute_indicators(bars: Sequence[DailyBar]) -> dict[str, Any]:
    days = [bar.trade_date for bar in bars]
    known = {"bars": len(bars), "last_trade_date": days[-1], **_turnover([bar.amount for bar in bars])}
    found = indicator_values(Prices.of(bars))
    return known | found | _date_positions(found, days)


def _turnover(amounts: Sequence[float]) -> dict[str, float | None]:
    month, year = _mean(amounts[-20:]), _mean(amounts) if len(amounts) >= YEAR_ENOUGH else None
    days = _round(POSITION / (SOLD_PER_DAY * month)) if month else None
    return {"turnover_20d": month, "turnover_1y": year, "position": POSITION, "days_to_sell": days}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _date_positions(found: dict[str, Any], days: Sequence[date]) -> dict[str, Any]:
    """The bars that levels and patterns rest on, by their days."""
    levels = ("support_days", "resistance_days")
    patterns: dict[Pattern, list[int]] = found["pattern_days"]
    return {
        "pattern_days": {name: [days[n] for n in places] for name, places in patterns.items()},
        "return_since": None if len(days) <= 60 else days[-61],
        **{name: [days[n] for n in found[name]] for name in levels},
    }


def indicator_values(p: Prices) -> dict[str, Any]:
    """Every indicator on the last bar; those named for days tell them as positions in the series."""
    price, atr = float(p.close[-1]), _last(talib.ATR(p.high, p.low, p.close, 14))
    patterns = _patterns(p)
    return {
        "current_price": price,
        "change_percent": _round(100 * (p.close[-1] / p.close[-2] - 1)),
        **{f"ma{n}": _last(talib.SMA(p.close, n)) for n in AVERAGES},
        "rsi_value": rsi(p.close),
        **_macd(p.close),
        **_kdj(p),
        "adx_value": _last(talib.ADX(p.high, p.low, p.close, 14)),
        "plus_di": _last(talib.PLUS_DI(p.high, p.low, p.close, 14)),
        "minus_di": _last(talib.MINUS_DI(p.high, p.low, p.close, 14)),
        **_volume(p, price),
        **_bollinger(p.close),
        "atr_value": atr,
        "high_20d": _last(talib.MAX(p.high, 20)),
        "low_20d": _last(talib.MIN(p.low, 20)),
        **_returns(p.close),
        **_volatility(p.close),
        **_levels(p, price, atr or 0.0),
        "detected_patterns": list(patterns),
        "pattern_days": patterns,
    }


def _returns(close: Series) -> dict[str, float | None]:
    """To the tenth that people read, so that differences are those of the numbers they see."""
    return {
        f"return_{n}d": round(100 * float(close[-1] / close[-1 - n] - 1), 1) if len(close) > n else None
        for n in (20, 60)
    }


def _volatility(close: Series) -> dict[str, float | None]:
    """Of daily moves, told by the year; that of the past year from everything there is."""
    moves = np.diff(np.log(close))
    windows = {"volatility_20d": 20, "volatility_60d": 60, "volatility_1y": max(len(moves), YEAR_ENOUGH)}
    return {
        name: _round(100 * sqrt(A_YEAR) * float(moves[-n:].std(ddof=1))) if len(moves) >= n else None
        for name, n in windows.items()
    }


def rsi(close: Series, period: int = 14) -> float | None:
    """Wilder's; a price that never moved has none."""
    return None if (close == close[0]).all() else _last(talib.RSI(close, period))


def _macd(close: Series) -> dict[str, float | None]:
    if len(close) < 26:
        return dict.fromkeys(("macd_dif", "macd_dea", "macd_histogram"))
    dif = _ema(close, 12, seed=close[0]) - _ema(close, 26, seed=close[0])
    dea = _ema(dif, 9, seed=dif[0])
    return {"macd_dif": _last(dif), "macd_dea": _last(dea), "macd_histogram": _last(2 * (dif - dea))}


def _kdj(p: Prices) -> dict[str, float | None]:
    if len(p.close) < 9:
        return dict.fromkeys(("kdj_k", "kdj_d", "kdj_j"))
    low, high = talib.MIN(p.low, 9)[8:], talib.MAX(p.high, 9)[8:]
    width = high - low
    position = np.divide(p.close[8:] - low, width, out=np.full_like(width, 0.5), where=width > 0)
    k = _ema(100 * position, 5, seed=50.0)
    d = _ema(k, 5, seed=50.0)
    return {"kdj_k": _last(k), "kdj_d": _last(d), "kdj_j": _last(3 * k - 2 * d)}


def _volume(p: Prices, price: float) -> dict[str, Any]:
    """Volume against the five days before; on-balance volume over five days; the 20-day average price."""
    day, *before = p.volume[:-7:-1].tolist()
    usual, traded = sum(before) / 5, float(p.volume[-20:].sum())
    worth = float(talib.TYPPRICE(p.high[-20:], p.low[-20:], p.close[-20:]) @ p.volume[-20:])
    vwap = _round(worth / traded) if traded else None
    moved = _obv_moved(p.close[-6:].tolist(), p.volume[-5:].tolist())
    return {
        "volume_ratio": _round(day / usual) if usual else None,
        "obv_trend": None if moved is None else _obv_trend(moved),
        "obv_change": None if moved is None else _round(100 * moved),
        "vwap_value": vwap,
        "price_vs_vwap_status": None if vwap is None else _side(price, vwap),
    }


def _obv_moved(close: list[float], volume: list[float]) -> float | None:
    """As a share of what was traded."""
    if not sum(volume):
        return None
    signed = [
        copysign(v, b - a) if a != b else 0.0 for (a, b), v in zip(pairwise(close), volume, strict=True)
    ]
    return sum(signed) / sum(volume)


def _obv_trend(moved: float) -> Literal["Rising", "Falling", "Flat"]:
    if abs(moved) < FLAT_OBV:
        return "Flat"
    return "Rising" if moved > 0 else "Falling"


def _side(price: float, of: float) -> Literal["Above", "Below", "At"]:
    if round(price, 2) == round(of, 2):
        return "At"
    return "Above" if price > of else "Below"


def _bollinger(close: Series) -> dict[str, float | None]:
    upper, middle, lower = (_last(band) for band in talib.BBANDS(close, 20, 2.0, 2.0))
    width = None if upper is None or lower is None or not middle else 100 * (upper - lower) / middle
    return {
        "bb_upper": upper,
        "bb_middle": middle,
        "bb_lower": lower,
        "bb_bandwidth": None if width is None else _round(width),
    }


def _ema(values: Series, period: int, seed: float) -> Series:
    """An exponential average that starts from `seed`: TA-Lib starts from the mean of its first `period` values."""
    started: Series = talib.EMA(np.concatenate([[seed] * period, values]), period)
    return started[period:]


def _last(values: Series) -> float | None:
    """None where TA-Lib had too few bars."""
    value = float(values[-1])
    return None if isnan(value) else _round(value)


def _round(value: float) -> float:
    return round(float(value), 4)


def _levels(p: Prices, price: float, atr: float) -> dict[str, Any]:
    """Swing lows below and swing highs above the price, nearest first; and the one that counts on each side. What an
    ordinary day can reach refutes nothing: levels are a day's range apart, and from the price.
    """
    noise = max(atr, CENT)
    lows = _outward(p.low, _turns(p.low, talib.MIN), -1, price, noise)
    highs = _outward(p.high, _turns(p.high, talib.MAX), 1, price, noise)
    supports, resistances = ([round(float(v), 4) for v in values] for values in (p.low[lows], p.high[highs]))
    reach = max(PROJECTED_ATRS * atr, LEAST_REACH * price)
    return {
        "calculated_support_levels": supports,
        "calculated_resistance_levels": resistances,
        "support": next(iter(supports), round(max(price - reach, price / 2), 4)),
        "resistance": next(iter(resistances), round(price + reach, 4)),
        "support_days": lows,
        "resistance_days": highs,
    }


def _turns(values: Series, extreme: Any) -> list[int]:
    window = 2 * SWING_REACH + 1
    turned: NDArray[np.bool_] = extreme(values, window)[window - 1 :] == values[SWING_REACH:-SWING_REACH]
    places: list[int] = (np.flatnonzero(turned) + SWING_REACH).tolist()
    return places


def _outward(values: Series, turns: list[int], side: int, price: float, noise: float) -> list[int]:
    """Walk away from the price; what lies within the noise of the last level (or the price) is not another one. Of
    equal levels, the newest.
    """
    kept: list[int] = []
    last = price
    beyond = [n for n in turns if (values[n] - price) * side > 0]
    for n in sorted(beyond, key=lambda n: (abs(values[n] - price), -n)):
        if len(kept) == MOST_LEVELS:
            break
        if abs(values[n] - last) >= noise:
            last = values[n]
            kept.append(n)
    return kept


def _patterns(p: Prices) -> dict[Pattern, list[int]]:
    """Each with the bars that make it, the newest last."""
    last, (crossed, day) = len(p.close) - 1, _find_cross(p.close)
    engulfing = talib.CDLENGULFING(*(prices[-15:] for prices in (p.open, p.high, p.low, p.close)))[-1]
    high, low = (
        last - 1 - int(find(prices[-2:-22:-1])) for find, prices in ((np.argmax, p.high), (np.argmin, p.low))
    )
    found: dict[Pattern, tuple[bool, list[int]]] = {
        "golden_cross": (crossed > 0, [day]),
        "death_cross": (crossed < 0, [day]),
        "breakout_20d_high": (bool(p.close[-1] > p.high[high]), [high, last]),
        "breakdown_20d_low": (bool(p.close[-1] < p.low[low]), [low, last]),
        "bullish_engulfing": (bool(engulfing > 0), [last - 1, last]),
        "bearish_engulfing": (bool(engulfing < 0), [last - 1, last]),
    }
    return {pattern: bars for pattern, (seen, bars) in found.items() if seen}


def _find_cross(close: Series) -> tuple[int, int]:
    """Whether the 5-day average went above (+1) or below (−1) the 20-day one in the last three days, and where."""
    recent = close[-(20 + CROSS_WITHIN) :]
    above = [gap > 0 for gap in (talib.SMA(recent, 5) - talib.SMA(recent, 20)).tolist()[-1 - CROSS_WITHIN :]]
    back = next((n for n in range(CROSS_WITHIN) if above[-1 - n] != above[-2 - n]), 0)
    crossed = 0 if above[-1] == above[0] else 1 if above[-1] else -1
    return crossed, len(close) - 1 - back
