"""Means with intervals that know that shares of one day move together; ranks, and how good probabilities were."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from math import fsum, sqrt
from statistics import correlation

from moot.modules.evaluation.domain.observation import Frozen
from moot.shared.domain.claims import Horizon

Dated = tuple[date, float]

OVERLAP: dict[Horizon, int] = {5: 0, 20: 0, 60: 2}
"""Of the moments after this one, a month or some 20 sessions apart, how many come before its shares are sold."""
FEWEST_DATES = FEWEST_PAIRS = 5
Z = 1.959963984540054
"""95 % of a normal distribution lie within this many deviations."""
DIGITS = 9
"""So that what is nothing but for its rounding is nothing."""


class Estimate(Frozen):
    """A mean and its 95 % interval; None where there are too few dates for one."""

    n: int
    dates: int
    mean: float
    low: float | None = None
    high: float | None = None

    def clip(self) -> "Estimate":
        """Of a share, which is never below 0 nor above 1."""
        low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in (self.low, self.high))
        return self.model_copy(update={"low": low, "high": high})

    @property
    def side(self) -> int:
        """1 where the whole interval lies above zero, -1 below, 0 where it contains it."""
        return 0 if self.low is None or self.high is None else int(self.low > 0) - int(self.high < 0)


def estimate(values: Iterable[Dated], moments: Sequence[date], overlap: int = 0) -> Estimate | None:
    """The mean, robust to all dependence within a date, and between `overlap` dates that follow each other (Driscoll
    and Kraay 1998, with Bartlett weights); few dates have the wider tails of Student's t.
    """
    known = list(values)
    if not known:
        return None
    n, mean, off = len(known), average(known), dict.fromkeys(moments, 0.0)
    for day, value in known:
        off[day] += value - mean
    dates, sums = len({day for day, _ in known}), list(off.values())
    if dates < FEWEST_DATES:
        return Estimate(n=n, dates=dates, mean=mean)
    spread = fsum(
        (2 - 2 * lag / (overlap + 1) if lag else 1) * a * b
        for lag in range(overlap + 1)
        for a, b in zip(sums, sums[lag:], strict=False)
    )
    half = student(dates - 1) * sqrt(max(0.0, spread) * dates / (dates - 1)) / n
    low, high = round(mean - half, DIGITS), round(mean + half, DIGITS)
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
    """The same of Student's t, within 0.3 % from four degrees of freedom on (Cornish and Fisher's expansion)."""
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + fsum(term / freedom**power for power, term in enumerate(terms, start=1))


def correlate_ranks(pairs: Sequence[Sequence[float]]) -> float | None:
    """Spearman's; None of too few, and where one side says the same of all."""
    if len(pairs) < FEWEST_PAIRS:
        return None
    left, right = (_rank(side) for side in zip(*pairs, strict=True))
    return correlation(left, right) if len(set(left)) > 1 and len(set(right)) > 1 else None


def _rank(values: Sequence[float]) -> list[float]:
    """Equals share the mean of their places."""
    order = sorted(values)
    return [(bisect_left(order, value) + bisect_right(order, value)) / 2 for value in values]


class Bin(Frozen):
    """Of those who told about as much, how often it came true."""

    low: float
    n: int
    told: float
    right: float


def find_brier(told: Sequence[tuple[float, bool]]) -> float | None:
    """The mean square of probabilities less what came, 0 at best; who always says one half gets 0.25."""
    return fsum((p - right) ** 2 for p, right in told) / len(told) if told else None


def bin_by_tenths(told: Iterable[tuple[float, bool]]) -> list[Bin]:
    bins = []
    for place, group in groupby(sorted(told), key=lambda one: min(int(one[0] * 10 + 1e-9), 9)):
        probabilities, right = zip(*group, strict=True)
        n = len(right)
        bins.append(Bin(low=place / 10, n=n, told=fsum(probabilities) / n, right=sum(right) / n))
    return bins
