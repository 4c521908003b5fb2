"""What a chart shows of one share: what the rules measure, and beside it what those look at who read it.

KDJ smooths by one third from 50; Bollinger bands use the population deviation, as Chinese platforms have them.
"""

from collections.abc import Sequence
from datetime import date
from math import isnan
from typing import Any, Literal

import numpy as np

from moot.modules.research.application.technical_analyst import Pattern
from moot.modules.research.infrastructure.panel import (
    Columns,
    Prices,
    Series,
    find_macd,
    find_volatility,
    last_of,
    measure,
    move_obv,
    round_all,
    smooth,
)
from moot.modules.research.infrastructure.ta_lib import talib
from moot.shared.domain.facts import DailyBar

AVERAGES = (5, 10, 30, 120)
FLAT_OBV = 0.1
"""An on-balance volume that moved less than this share of what was traded is flat."""
MOST_LEVELS = 3


def compute_indicators(bars: Sequence[DailyBar]) -> dict[str, Any]:
    days = [bar.trade_date for bar in bars]
    found = indicator_values(Prices.of(bars))
    return {"bars": len(bars), "last_trade_date": days[-1], **found, **_date_positions(found, days)}


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
    """Every indicator of a panel of one, on the last bar; those named for days tell them as positions."""
    dif, dea = find_macd(p.close)
    columns = {
        **measure(p, MOST_LEVELS),
        "change_percent": round_all(100 * (p.close[:, -1] / p.close[:, -2] - 1)),
        **{f"ma{n}": last_of(talib.SMA, p.close, options=(n,)) for n in AVERAGES},
        "macd_dif": round_all(dif),
        "macd_dea": round_all(dea),
        **_kdj(p),
        "volatility_60d": find_volatility(p.close, 60),
        "high_20d": last_of(talib.MAX, p.high, options=(20,)),
        "low_20d": last_of(talib.MIN, p.low, options=(20,)),
    }
    known = {name: values[0] for name, values in columns.items()}
    return {**known, **_volume(p, known["current_price"]), **_bollinger(p.close[0])}


def _kdj(p: Prices) -> Columns:
    low = np.array([talib.MIN(row, 9)[8:] for row in p.low])
    high = np.array([talib.MAX(row, 9)[8:] for row in p.high])
    width = high - low
    position = np.divide(p.close[:, 8:] - low, width, out=np.full_like(width, 0.5), where=width > 0)
    k = smooth(100 * position, 5, seed=50.0)
    d = smooth(k, 5, seed=50.0)
    ends = {"kdj_k": k[:, -1], "kdj_d": d[:, -1], "kdj_j": 3 * k[:, -1] - 2 * d[:, -1]}
    return {name: round_all(end) for name, end in ends.items()}


def _volume(p: Prices, price: float) -> dict[str, Any]:
    """Volume against the five days before; on-balance volume over five days; the 20-day average price."""
    day, *before = p.volume[0, :-7:-1].tolist()
    usual, traded = sum(before) / 5, float(p.volume[0, -20:].sum())
    typical = talib.TYPPRICE(*(prices[0, -20:] for prices in (p.high, p.low, p.close)))
    vwap = round(float(typical @ p.volume[0, -20:]) / traded, 4) if traded else None
    return {
        "volume_ratio": round(day / usual, 4) if usual else None,
        "obv_trend": _tell_obv(float(move_obv(p)[0])),
        "vwap_value": vwap,
        "price_vs_vwap_status": None if vwap is None else _side(price, vwap),
    }


def _tell_obv(moved: float) -> Literal["Rising", "Falling", "Flat"] | None:
    if isnan(moved):
        return None
    if abs(moved) < FLAT_OBV:
        return "Flat"
    return "Rising" if moved > 0 else "Falling"


def _side(price: float, of: float) -> Literal["Above", "Below", "At"]:
    if round(price, 2) == round(of, 2):
        return "At"
    return "Above" if price > of else "Below"


def _bollinger(close: Series) -> dict[str, float | None]:
    upper, middle, lower = round_all(float(band[-1]) for band in talib.BBANDS(close, 20, 2.0, 2.0))
    return {
        "bb_upper": upper,
        "bb_middle": middle,
        "bb_lower": lower,
        "bb_bandwidth": round(100 * (upper - lower) / middle, 4) if middle else None,
    }
