"""The debate's door for whoever screens: what claims about many shares come to by the same weights, before anybody
answers them. Columns, not claims.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moot.modules.debate.domain.weighing import Dimension, count_over, load_weights
from moot.shared.domain.claims import Horizon

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Leaning:
    """Over one horizon."""

    horizon: Horizon

    def scale(self, kind: str, own: Horizon) -> float:
        """What is left of a claim of that kind, which speaks of a horizon of its own."""
        return load_weights().scale(kind, own, self.horizon)

    def lean(self, strengths: Mapping[Dimension, Numbers]) -> Numbers:
        """From -1 (do not) to 1 (do), of each share. `strengths` are scaled: by dimension a row a share, a column a
        claim, those against it negative.
        """
        places = count_over(self.horizon).places
        pulls = [places.get(place, 0.0) * _balance(claims) for place, claims in strengths.items()]
        return _balance(np.stack(pulls, axis=1))


def _balance(claims: Numbers) -> Numbers:
    return _accrue(np.maximum(claims, 0.0)) - _accrue(np.maximum(-claims, 0.0))


def _accrue(strengths: Numbers) -> Numbers:
    """As `weighing.accrue`, of each row: in the same order, so that it is the same to the bit."""
    left: Any = np.ones(len(strengths))
    for strength in np.sort(strengths, axis=1).T:
        left = left * (1 - strength)
    accrued: Numbers = 1 - left
    return accrued
