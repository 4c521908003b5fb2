"""What the price itself did: swing levels around it, and patterns on its last days."""

from typing import Any

import numpy as np
import talib
from numpy.typing import NDArray

from moot.modules.research.domain.indicators import Pattern

Series = NDArray[np.float64]

SWING_REACH = 3
"""A swing low is the lowest of its day and this many days on either side."""
MOST_LEVELS = 3
PROJECTED_ATRS = 2.0
"""How many average true ranges away a level is put where no swing marks one."""
CROSS_WITHIN = 3


def levels(high: Series, low: Series, price: float, atr: float) -> dict[str, Any]:
    """Swing lows below and swing highs above the price, nearest first; and the one that counts on each side."""
    lows, highs = _turns(low, talib.MIN), _turns(high, talib.MAX)
    supports = _outward(sorted(lows[lows < price].tolist(), reverse=True), price, atr / 2)
    resistances = _outward(sorted(highs[highs > price].tolist()), price, atr / 2)
    reach = PROJECTED_ATRS * atr
    return {
        "calculated_support_levels": supports,
        "calculated_resistance_levels": resistances,
        "support": next(iter(supports), round(max(price - reach, price / 2), 4)),
        "resistance": next(iter(resistances), round(price + reach, 4)),
    }


def _turns(values: Series, extreme: Any) -> Series:
    window = 2 * SWING_REACH + 1
    inner = values[SWING_REACH:-SWING_REACH]
    turned: NDArray[np.bool_] = extreme(values, window)[window - 1 :] == inner
    return inner[turned]


def _outward(levels: list[float], price: float, noise: float) -> list[float]:
    """Walk away from the price; what lies within the noise of the last level (or the price) is not another one."""
    kept: list[float] = []
    last = price
    for level in levels:
        if len(kept) == MOST_LEVELS:
            break
        if abs(level - last) >= noise:
            last = level
            kept.append(round(level, 4))
    return kept


def patterns(open_: Series, high: Series, low: Series, close: Series) -> list[Pattern]:
    crossed, engulfing = _crossed(close), _engulfing(open_, high, low, close)
    found: dict[Pattern, bool] = {
        "golden_cross": crossed > 0,
        "death_cross": crossed < 0,
        "breakout_20d_high": bool(close[-1] > high[-21:-1].max()),
        "breakdown_20d_low": bool(close[-1] < low[-21:-1].min()),
        "bullish_engulfing": engulfing > 0,
        "bearish_engulfing": engulfing < 0,
    }
    return [pattern for pattern, seen in found.items() if seen]


def _crossed(close: Series) -> int:
    """Whether the 5-day average went above (+1) or below (−1) the 20-day one in the last three days."""
    recent = close[-(20 + CROSS_WITHIN) :]
    gap = (talib.SMA(recent, 5) - talib.SMA(recent, 20)).tolist()
    now, before = gap[-1], gap[-1 - CROSS_WITHIN]
    return 0 if (now > 0) == (before > 0) else 1 if now > 0 else -1


def _engulfing(*ohlc: Series) -> int:
    return int(talib.CDLENGULFING(*(prices[-15:] for prices in ohlc))[-1])
