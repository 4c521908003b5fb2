"""The rules of experts asked of many shares: a column for each rule, a row for each share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.domain.claims import STRENGTH_OF_A_POINT
from moot.modules.research.domain.rubric import Rule, plain_name
from moot.shared.domain.claims import Horizon
from moot.shared.domain.experts import ExpertType

Numbers = NDArray[np.float64]
Service = type[ExpertService[Any, Any]]
DIGITS = 6


class Weights(Protocol):
    """What claims count over one horizon, as a debate counts them."""

    def scale(self, kind: str, own: Horizon) -> float:
        """What is left of a claim of that kind, which speaks of a horizon of its own."""

    def lean(self, strengths: Mapping[tuple[ExpertType, str], Numbers]) -> Numbers:
        """Of each share: by dimension a row a share, a column a claim, those against it negative."""


@dataclass(frozen=True)
class Asked:
    """Rules of one expert, and the rows they are asked of: one for each share, None where there are no data."""

    service: Service
    rules: Sequence[Rule]
    rows: Sequence[Any]

    def name(self, part: str) -> str:
        return f"{self.service.expert.prefix}.{part}"

    @property
    def dimensions(self) -> list[str]:
        return list(dict.fromkeys(plain_name(rule.dimension) for rule in self.rules))

    def within(self, dimension: str) -> list[int]:
        return [n for n, rule in enumerate(self.rules) if plain_name(rule.dimension) == dimension]

    @cached_property
    def trust(self) -> Numbers:
        """How much of what a rule finds counts; nothing where it is no rule for that company."""
        trust = self.service.trust
        return np.array(
            [[row is None or trust(rule, row) for rule in self.rules] for row in self.rows], np.float64
        )

    @cached_property
    def values(self) -> Numbers:
        """What the rules go by, as they read it themselves; not a number where there are no data."""
        known = [[None if row is None else rule.value_in(row) for rule in self.rules] for row in self.rows]
        return np.where(self.trust > 0, np.array(known, np.float64), nan)

    @cached_property
    def bands(self) -> NDArray[np.intp]:
        """The first whose limit lies above the value; what is no number falls into the last, and is not marked."""
        limits = [[band.below for band in rule.bands] for rule in self.rules]
        found = [np.searchsorted(limits[n], self.values[:, n], side="right") for n in range(len(limits))]
        return np.stack([np.minimum(place, len(limits[n]) - 1) for n, place in enumerate(found)], axis=1)

    @cached_property
    def points(self) -> Numbers:
        points = self._look_up([[band.points for band in rule.bands] for rule in self.rules])
        return np.where(np.isnan(self.values), nan, points * self.trust)

    def score(self, dimension: str) -> list[float | None]:
        """What the expert's scorecard scores in the dimension; None when nothing could be marked."""
        chosen = self.within(dimension)
        points, weights = self.points[:, chosen], [self.rules[n].weight for n in chosen]
        whole = ~np.isnan(points) @ np.array(weights)
        scores = np.divide(np.nansum(points, axis=1), whole, out=np.full(len(whole), nan), where=whole > 0)
        return [None if isnan(score) else round(score, DIGITS) for score in scores.tolist()]

    def strengths(self, weights: Weights) -> Numbers:
        """Of the claims that are made of the points, scaled; negative where they speak against."""
        scales = [
            [weights.scale(self.name(f"{rule.name}.{band.says}"), rule.horizon) for band in rule.bands]
            for rule in self.rules
        ]
        points = np.nan_to_num(self.points)
        claimed = np.sign(points) * np.minimum(1.0, np.abs(points) * STRENGTH_OF_A_POINT)
        strengths: Numbers = claimed * self._look_up(scales)
        return strengths

    def list_missing(self) -> list[list[Rule]]:
        missing: list[list[Rule]] = [[] for _ in self.rows]
        for row, rule in np.argwhere((self.trust > 0) & np.isnan(self.values)).tolist():
            missing[row].append(self.rules[rule])
        return missing

    def _look_up(self, tables: Sequence[Sequence[float]]) -> Numbers:
        return np.stack([np.array(table)[self.bands[:, n]] for n, table in enumerate(tables)], axis=1)


def find_leans(asked: Sequence[Asked], weights: Weights) -> list[float]:
    strengths: dict[tuple[ExpertType, str], Numbers] = {}
    for each in asked:
        claims = each.strengths(weights)
        for dimension in each.dimensions:
            strengths[each.service.expert, dimension] = claims[:, each.within(dimension)]
    return [round(lean, DIGITS) for lean in weights.lean(strengths).tolist()]
