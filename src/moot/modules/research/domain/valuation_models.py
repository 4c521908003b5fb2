"""Valuation formulas. What the data do not allow is None: a loss has no PE rank, a shrinking profit no PEG."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, median

from moot.modules.research.domain.facts import Report
from moot.modules.research.domain.periods import Periods

MIN_VALID_HISTORY = 60
GROWTH_PERIODS = 4
GRAHAM_FACTOR = 22.5
SHARE_BASIS_TOLERANCE = 0.05
"""How far a reported per-share figure may be from the one the market's multiple implies."""


def percentile(current: float | None, history: Sequence[float | None]) -> int | None:
    """The share of past days that were no dearer, in per cent; loss years and short histories have none."""
    valid = _valid(history)
    if current is None or current <= 0 or len(valid) < MIN_VALID_HISTORY:
        return None
    return round(100 * sum(value <= current for value in valid) / len(valid))


def usual(history: Sequence[float | None]) -> float | None:
    valid = _valid(history)
    return round(median(valid), 2) if len(valid) >= MIN_VALID_HISTORY else None


def implied_value(price: float, multiple: float | None, usual: float | None) -> float | None:
    """What the share would cost at its usual multiple."""
    return round(price * usual / multiple, 2) if multiple and usual and multiple > 0 else None


def peg(pe: float | None, growth: float | None) -> float | None:
    return round(pe / growth, 2) if pe and growth and pe > 0 and growth > 0 else None


def growth_average(reports: Sequence[Report]) -> tuple[float | None, int]:
    """The mean year-on-year growth of deducted profit over the last four periods, and how many of them had one."""
    periods = Periods(reports)
    rates = [rate for r in reports[:GROWTH_PERIODS] if (rate := periods.growth(r, "profit_dedt")) is not None]
    return (round(fmean(rates), 1), len(rates)) if rates else (None, 0)


def graham_value(eps: float | None, bps: float | None) -> float | None:
    return round(sqrt(GRAHAM_FACTOR * eps * bps), 2) if eps and bps and eps > 0 and bps > 0 else None


def safety_margin(value: float | None, price: float) -> float | None:
    """How far the value lies above the price, in per cent of the price; positive is cheap."""
    return None if value is None else round(100 * (value - price) / price, 1)


def on_todays_shares(reported: float | None, price: float, multiple: float | None) -> float | None:
    """A per-share figure on today's share count: after a bonus issue, what the market's multiple implies."""
    if not reported or not multiple:
        return reported
    implied = price / multiple
    return reported if abs(reported / implied - 1) <= SHARE_BASIS_TOLERANCE else round(implied, 4)


def _valid(history: Sequence[float | None]) -> list[float]:
    return [value for value in history if value is not None and value > 0]
