"""What a share did after events of one kind, beyond what the market did, and whether that may be chance."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev

from pydantic import BaseModel

from moot.shared.domain.claims import Horizon
from moot.shared.domain.facts import DailyBar, IndexBar

FEWEST, FEWEST_JUDGED = 3, 5
"""Of fewer events no mean is told; of fewer, none is judged."""
LEVEL = 95
T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""Two-sided quantiles of Student's t by degrees of freedom, from 1; beyond, the last is a little wide."""


class Study(BaseModel, frozen=True):
    """After `n` earlier events of a kind: the mean cumulative abnormal return over the horizon and its 95 % interval,
    in per cent. No mean where they are too few.
    """

    category: str
    horizon: Horizon
    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    level: int = LEVEL

    @property
    def judged(self) -> bool:
        return self.n >= FEWEST_JUDGED

    @property
    def side(self) -> int:
        """Which way they went, if it can be told from chance."""
        if self.low is None or self.high is None or not self.judged:
            return 0
        return (self.low > 0) - (self.high < 0)


def add_up_abnormal(closes: Sequence[float], market: Sequence[float]) -> list[float]:
    """By session, in per cent: what the share returned so far beyond the market, day by day; without a market, all it
    returned.
    """
    sums = [0.0]
    for n in range(1, len(closes)):
        moved = market[n] / market[n - 1] if market else 1.0
        sums.append(sums[-1] + 100 * (closes[n] / closes[n - 1] - moved))
    return sums


def measure_after(sums: Sequence[float], starts: Iterable[int], horizon: int) -> list[float]:
    """What followed each start within the horizon: only where that is over, and none that began during another."""
    found, free = [], 0
    for start in sorted(set(starts)):
        if free <= start < len(sums) - horizon:
            found.append(sums[start + horizon] - sums[start])
            free = start + horizon
    return found


def study(category: str, horizon: Horizon, returns: Sequence[float]) -> Study:
    n = len(returns)
    if n < FEWEST:
        return Study(category=category, horizon=horizon, n=n)
    mean, half = fmean(returns), T_95[min(n - 1, len(T_95)) - 1] * stdev(returns) / sqrt(n)
    told = {"mean": mean, "low": mean - half, "high": mean + half}
    return Study(category=category, horizon=horizon, n=n, **{name: round(v, 2) for name, v in told.items()})


REACTION_SESSIONS, MONTH, YEAR = 3, 20, 250


class Tape:
    """The sessions of a share, beside the index of its market where there is one."""

    def __init__(self, bars: Sequence[DailyBar], index: Sequence[IndexBar]) -> None:
        levels = _pick_index(index)
        bars = [bar for bar in bars if not levels or bar.trade_date in levels]
        self._known = [bar.available_at for bar in bars]
        self.adjusted = bool(levels)
        market = [levels[bar.trade_date] for bar in bars] if levels else []
        self.sums = add_up_abnormal([bar.close * bar.adj_factor for bar in bars], market)

    def start(self, at: datetime) -> int:
        """The last session that was over then; -1 before the first."""
        return bisect_right(self._known, at) - 1

    def react(self, at: datetime) -> dict[str, float]:
        """What the first sessions after made of it, in per cent and against the usual swing of the year before."""
        start, end = self.start(at), self.start(at) + REACTION_SESSIONS
        year = self.sums[max(0, start - YEAR) : start + 1]
        if end >= len(self.sums) or len(year) <= MONTH:
            return {}
        moved, steps = self.sums[end] - self.sums[start], [b - a for a, b in pairwise(year)]
        mean = fmean(steps)
        usual = sqrt(REACTION_SESSIONS * fmean((step - mean) ** 2 for step in steps))
        told = {"reaction_3d": moved, "usual_3d": usual, "reaction_times": moved / usual if usual else 0.0}
        return {name: round(value, 2) for name, value in told.items()}


def _pick_index(bars: Sequence[IndexBar]) -> dict[date, float]:
    """Of those of the whole market the first by code."""
    code = min((bar.index for bar in bars if bar.industry is None), default=None)
    return {bar.trade_date: bar.close for bar in bars if bar.index == code}


def study_kinds(
    horizons: Mapping[str, Horizon], moments: Mapping[str, Sequence[datetime]], tape: Tape
) -> tuple[Study, ...]:
    """One of each kind that has been before; the newest of a kind is the one at hand."""
    return tuple(
        study(category, horizon, measure_after(tape.sums, map(tape.start, before), horizon))
        for category, horizon in horizons.items()
        if tape.sums[1:] and (before := moments.get(category, ())[:-1])
    )
