"""Means with intervals that know that shares of one day move together; ranks, and how good probabilities were."""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from math import fsum, sqrt
from typing import NamedTuple

from moot.modules.evaluation.domain.observation import Frozen, Horizon

Dated = tuple[date, float]

OVERLAP: dict[Horizon, int] = {5: 0, 20: 0, 60: 2}
"""Of the moments after this one, a month or some 20 sessions apart, how many come before its shares are sold."""
FEWEST_DATES = 5
FEWEST_PAIRS = 5
Z = 1.959963984540054
"""95 % of a normal distribution lie within this many deviations."""
BIN = 0.1
DIGITS = 9
"""So that what is nothing but for its rounding is nothing."""


class Estimate(Frozen):
    """A mean and its 95 % interval; None where there are too few dates for one."""

    n: int
    dates: int
    mean: float
    low: float | None = None
    high: float | None = None

    def beyond(self, level: float) -> int:
        """1 where the whole interval lies above that level, -1 below, 0 where it contains it."""
        if self.low is None or self.high is None:
            return 0
        return int(self.low > level) - int(self.high < level)


def estimate(values: Iterable[Dated], moments: Sequence[date], overlap: int = 0) -> Estimate | None:
    """The mean, robust to all dependence within a date, and between `overlap` dates that follow each other (Driscoll
    and Kraay 1998, with Bartlett weights); few dates have the wider tails of Student's t.
    """
    known = list(values)
    if not known:
        return None
    n, mean = len(known), fsum(value for _, value in known) / len(known)
    off: dict[date, float] = dict.fromkeys(moments, 0.0)
    for day, value in known:
        off[day] += value - mean
    dates = len({day for day, _ in known})
    if dates < FEWEST_DATES:
        return Estimate(n=n, dates=dates, mean=round(mean, DIGITS))
    sums = list(off.values())
    spread = fsum(
        (1 - lag / (overlap + 1))
        * (2 if lag else 1)
        * fsum(a * b for a, b in zip(sums, sums[lag:], strict=False))
        for lag in range(overlap + 1)
    )
    half = student(dates - 1) * sqrt(max(0.0, spread) * dates / (dates - 1)) / n
    low, mean, high = (round(value, DIGITS) for value in (mean - half, mean, mean + half))
    return Estimate(n=n, dates=dates, mean=mean, low=low, high=high)


def contrast(
    one: Sequence[Dated], other: Sequence[Dated], moments: Sequence[date], overlap: int = 0
) -> Estimate | None:
    """The mean of the one less that of the other, with the interval of the difference."""
    n, means = len(one) + len(other), (average(one), average(other))
    parts = zip((one, other), means, (n / len(one), -n / len(other)), strict=True)
    less = means[0] - means[1]
    around = [(day, less + times * (value - mean)) for part, mean, times in parts for day, value in part]
    return estimate(around, moments, overlap)


def average(values: Sequence[Dated]) -> float:
    return round(fsum(value for _, value in values) / len(values), DIGITS)


def student(freedom: int) -> float:
    """The same of Student's t, to three digits from two degrees of freedom on (Cornish and Fisher's expansion)."""
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + fsum(term / freedom**power for power, term in enumerate(terms, start=1))


def correlate_ranks(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's; None of too few, and where one side says the same of all."""
    if len(pairs) < FEWEST_PAIRS:
        return None
    left, right = (_centre(_rank(side)) for side in zip(*pairs, strict=True))
    spread = fsum(a * a for a in left) * fsum(b * b for b in right)
    return fsum(a * b for a, b in zip(left, right, strict=True)) / sqrt(spread) if spread else None


def _rank(values: Sequence[float]) -> list[float]:
    """Equals share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks, place = [0.0] * len(values), 0
    for _, group in groupby(order, key=values.__getitem__):
        members = list(group)
        for member in members:
            ranks[member] = place + (len(members) - 1) / 2
        place += len(members)
    return ranks


def _centre(values: Sequence[float]) -> list[float]:
    mean = fsum(values) / len(values)
    return [value - mean for value in values]


class Told(NamedTuple):
    """A probability somebody gave, and whether it came true."""

    probability: float
    right: bool


class Bin(Frozen):
    low: float
    high: float
    n: int
    told: float
    right: float


class Calibration(Frozen):
    """`brier`: the mean square of what was told less what came, 0 at best; who always says one half gets 0.25."""

    n: int
    brier: float
    bins: list[Bin]


def calibrate(told: Iterable[Told]) -> Calibration | None:
    known = sorted(told)
    if not known:
        return None
    bins = []
    for place, group in groupby(known, key=lambda one: min(int(one.probability / BIN + 1e-9), 9)):
        members = list(group)
        means = {name: fsum(getattr(m, name) for m in members) / len(members) for name in Told._fields}
        low, high = round(place * BIN, 1), round((place + 1) * BIN, 1)
        bins.append(Bin(low=low, high=high, n=len(members), told=means["probability"], right=means["right"]))
    brier = fsum((one.probability - one.right) ** 2 for one in known) / len(known)
    return Calibration(n=len(known), brier=brier, bins=bins)
