"""What a weight has been worth: how often shares beat their benchmark after an argument of that weight.

A table is fitted on outcomes that were known by a day, and says nothing about days before it. None is shipped.
"""

from collections.abc import Iterable
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from moot.modules.judge.domain.verdict import SAY, Forecast, Fraction
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import Strict

EDGES = (-1.0, -0.35, -0.2, -0.1, 0.1, 0.2, 0.35, 1.0)
"""Of the bins, by conviction: negative for arguments against buying."""
METHOD = "beta-binomial bins of the signed conviction"
FEWEST_OUTCOMES = 30
PRIOR_OUTCOMES = 20
"""A bin is drawn to the share of all outcomes as if this many more had come out like them."""


class Outcome(NamedTuple):
    """An argument, when its horizon ended, and whether the share had beaten the benchmark by then."""

    conviction: float
    ended: date
    beat: bool


class Bin(Strict):
    low: float
    high: float
    probability: Fraction
    n: int = Field(ge=0)


class Calibration(Strict):
    horizon: int = Field(gt=0)
    benchmark: str
    fitted_until: date
    bins: list[Bin]

    def forecast(self, conviction: float, as_of: date) -> Forecast | None:
        """None on a day the table may know outcomes of, and where it rests on too few."""
        if self.fitted_until >= as_of:
            return None
        place = next((place for place in reversed(self.bins) if place.low <= conviction), None)
        if place is None or place.n < FEWEST_OUTCOMES:
            return None
        known = place.model_dump(include={"probability", "n"})
        return Forecast(horizon=self.horizon, benchmark=self.benchmark, method=METHOD, **known)


def fit(outcomes: Iterable[Outcome], until: date, *, horizon: int, benchmark: str) -> Calibration:
    """The table of what had come out by then; small bins keep close to the share of all."""
    known = [outcome for outcome in outcomes if outcome.ended <= until]
    base = _share(known, 0.5, 1)
    bins = []
    for low, high in pairwise(EDGES):
        inside = [o for o in known if low <= o.conviction < high or o.conviction == high == EDGES[-1]]
        share = round(_share(inside, base, PRIOR_OUTCOMES), 4)
        bins.append(Bin(low=low, high=high, probability=share, n=len(inside)))
    return Calibration(horizon=horizon, benchmark=benchmark, fitted_until=until, bins=bins)


def _share(outcomes: list[Outcome], prior: float, weight: int) -> float:
    return (sum(o.beat for o in outcomes) + weight * prior) / (len(outcomes) + weight)


def read_calibration(file: Path) -> Calibration:
    try:
        return Calibration.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as e:
        raise InvalidInput(SAY("calibration_unreadable", file=file, reason=e)) from None
