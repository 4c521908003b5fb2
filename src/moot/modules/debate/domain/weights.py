"""How much a claim counts in the motion: by its expert and the horizon asked about, how far that is from the claim's
own, and what its kind was found to be worth. One table, `weights.toml`, with its reasons.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

from pydantic import BaseModel, Field

from moot.shared.domain.claims import Claim, Horizon, Strength
from moot.shared.domain.experts import VIEW, ExpertType

Dimension = tuple[ExpertType, str]
HORIZONS: tuple[Horizon, ...] = get_args(Horizon)
DIMENSIONS: tuple[Dimension, ...] = tuple(
    (expert, dimension) for expert in ExpertType for dimension in expert.dimensions
)


class ExpertWeight(BaseModel, frozen=True, extra="forbid"):
    """Over each of the horizons."""

    weights: list[Strength] = Field(min_length=len(HORIZONS), max_length=len(HORIZONS))
    reason: str


class KindWeight(BaseModel, frozen=True, extra="forbid"):
    weight: Strength
    reason: str


class Fit(BaseModel, frozen=True, extra="forbid"):
    steps: list[Strength] = Field(min_length=len(HORIZONS), max_length=len(HORIZONS))
    reason: str


class Weights(BaseModel, frozen=True, extra="forbid"):
    """`kind` names a kind of claim, or the rule that makes it."""

    version: str
    expert: dict[ExpertType, ExpertWeight]
    fit: Fit
    kind: dict[str, KindWeight]

    def share_out(self, horizon: Horizon) -> dict[ExpertType, float]:
        """What each expert counts over that horizon; together they are the whole panel."""
        place = HORIZONS.index(horizon)
        known = {expert: line.weights[place] for expert, line in self.expert.items()}
        usual = sum(known.values()) / len(known)
        counted = {expert: known.get(expert, usual) for expert in ExpertType}
        whole = sum(counted.values())
        return {expert: weight / whole for expert, weight in counted.items()}

    def scale(self, claim: Claim, horizon: Horizon) -> float:
        """How much of a claim's strength is left over that horizon."""
        away = abs(HORIZONS.index(claim.horizon) - HORIZONS.index(horizon))
        kind = self.kind.get(claim.kind) or self.kind.get(claim.kind.rpartition(".")[0])
        return self.fit.steps[away] * (kind.weight if kind else 1.0)


@cache
def load_weights() -> Weights:
    table = tomllib.loads((Path(__file__).parent / "weights.toml").read_text("utf-8"))
    return Weights.model_validate(table)


class Counting(NamedTuple):
    """Over one horizon: what each expert counts, and each dimension of it."""

    experts: Mapping[ExpertType, float]
    places: Mapping[Dimension, float]


@cache
def count_over(horizon: Horizon) -> Counting:
    """Dimensions of an expert count alike, whoever is heard: silence is doubt."""
    experts = load_weights().share_out(horizon)
    views = {(expert, VIEW): weight for expert, weight in experts.items()}
    return Counting(
        experts, views | {place: experts[place[0]] / len(place[0].dimensions) for place in DIMENSIONS}
    )
