"""How an argument is weighed: claims that attack and support each other, below the dimensions of the experts, below
the motion that the share is worth buying at this price, over this horizon.

A quantitative bipolar argumentation framework. Strengths follow from one gradual semantics, DF-QuAD (Rago, Toni,
Aurisicchio, Baroni 2016), with weights on the edges to the motion: what each expert of the panel counts. How much a
claim counts by its expert and the horizon asked about, how far that is from the claim's own, and what its kind was
found to be worth is one table, `weights.toml`, with its reasons.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from math import floor
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

from moot.shared.domain.claims import HORIZONS, ArgumentGraph, Claim, Horizon, Relation, Strength
from moot.shared.domain.experts import VIEW, Direction, ExpertType

Dimension = tuple[ExpertType, str]
DIMENSIONS: tuple[Dimension, ...] = tuple(
    (expert, dimension) for expert in ExpertType for dimension in expert.dimensions
)

UNDECIDED = 0.5
"""How strong the motion is before anybody has spoken."""
NEUTRAL_BAND = 0.2
"""Conviction below which nobody should act, so that it is no direction."""
AS_GOOD_AS_SURE = 0.5
"""A lean is the mean of some twenty dimensions, of which some always pull the other way: nothing leans farther."""
STILL = 1e-12
MOST_PASSES = 500
CALM_PASSES = 50
"""Passes after which a circle of claims that does not come to rest is damped."""
COMMUTING = 2
"""Factors whose product is the same to the bit in any order; more are sorted."""


def round_down(number: float) -> float:
    """To two decimals, towards nothing: what is told never reaches a bar that the number itself does not."""
    size = floor(abs(number) * 100 + 1e-9) / 100
    return -size if number < 0 < size else size


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

    def scale(self, kind: str, own: Horizon, horizon: Horizon) -> float:
        """How much is left over that horizon of a claim of that kind, which speaks of its own."""
        away = abs(HORIZONS.index(own) - HORIZONS.index(horizon))
        known = self.kind.get(kind) or self.kind.get(kind.rpartition(".")[0])
        return self.fit.steps[away] * (known.weight if known else 1.0)


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


@dataclass(frozen=True)
class Weighing:
    """What claims and relations come to over a horizon. Nothing depends on their order."""

    claims: Sequence[Claim]
    relations: Sequence[Relation]
    heard: frozenset[ExpertType]
    horizon: Horizon = 20

    @classmethod
    def reopen(cls, argument: ArgumentGraph) -> "Weighing":
        return cls(argument.claims, argument.relations, frozenset(argument.heard), argument.horizon)

    @property
    def counting(self) -> Counting:
        return count_over(self.horizon)

    @cached_property
    def bases(self) -> dict[str, float]:
        """How strong each claim is over this horizon, before anything is said of it."""
        scale = load_weights().scale
        return {c.id: c.strength * scale(c.kind, c.horizon, self.horizon) for c in self.claims}

    @cached_property
    def bearing(self) -> "Bearing":
        """Of claims that were made."""
        made = self.bases.keys()
        bearing: dict[str, tuple[list[tuple[str, float]], list[tuple[str, float]]]] = {}
        for relation in self.relations:
            if relation.source in made and relation.target in made:
                support, attack = bearing.setdefault(relation.target, ([], []))
                (support if relation.kind == "support" else attack).append((relation.source, relation.weight))
        return bearing

    @cached_property
    def order(self) -> list[str] | None:
        return sort_bearing(self.bearing)

    @cached_property
    def strengths(self) -> dict[str, float]:
        """Of each claim, after all that is said for and against it."""
        return come_to_rest(self.bases, self.bearing, self.order, self.bases)

    @cached_property
    def places(self) -> dict[Dimension, list[Claim]]:
        places: dict[Dimension, list[Claim]] = {}
        for claim in self.claims:
            places.setdefault((claim.expert, claim.dimension), []).append(claim)
        return places

    @cached_property
    def dimensions(self) -> dict[Dimension, float]:
        """How far each speaks for the motion (positive) or against it. Two arguments in one: that the dimension is a
        reason to buy, and that it is a reason not to; both begin at nothing, so that one of them at most is left.
        """
        return {place: balance(claims, self.strengths) for place, claims in self.places.items()}

    @property
    def motion(self) -> float:
        return UNDECIDED + self.lean / 2

    @cached_property
    def lean(self) -> float:
        """From -1 (do not) to 1 (do)."""
        return self.tip(self.dimensions)

    @property
    def conviction(self) -> float:
        """What is left of the lean when those who were not heard are granted to think otherwise, of what a whole
        panel leans that is as good as sure.
        """
        return min(1.0, max(0.0, abs(self.lean) - self.doubt) / AS_GOOD_AS_SURE)

    @cached_property
    def direction(self) -> Direction:
        return self.decide(self.lean)

    @cached_property
    def doubt(self) -> float:
        """All that the silent could have said: no set of voices is bolder than the panel they are of."""
        return sum(weight for expert, weight in self.counting.experts.items() if expert not in self.heard)

    def tip(self, pulls: Mapping[Dimension, float]) -> float:
        """How far dimensions move a motion that stands in the middle."""
        places = self.counting.places
        return tip([places.get(place, 0.0) * pull for place, pull in pulls.items()])

    def decide(self, lean: float) -> Direction:
        if abs(lean) - self.doubt < NEUTRAL_BAND * AS_GOOD_AS_SURE:
            return "NEUTRAL"
        return "BULLISH" if lean > 0 else "BEARISH"

    def without(self, struck: Iterable[str]) -> "Weighing":
        """As if these had never been claimed; what they said of others falls with them."""
        gone = set(struck)
        relations = [r for r in self.relations if not {r.source, r.target} & gone]
        claims = [claim for claim in self.claims if claim.id not in gone]
        return replace(self, claims=claims, relations=relations)


def balance(claims: Iterable[Claim], strengths: Mapping[str, float]) -> float:
    pro: list[float] = []
    con: list[float] = []
    for claim in claims:
        if claim.side != "neither":
            (pro if claim.side == "for" else con).append(strengths[claim.id])
    return accrue(pro) - accrue(con)


def tip(weighed: Iterable[float]) -> float:
    """What is accrued on one side less what is on the other."""
    pro = con = 1.0
    for pull in sorted(weighed, key=abs):
        if pull > 0:
            pro *= 1 - pull
        else:
            con *= 1 + pull
    return (1 - pro) - (1 - con)


def accrue(strengths: Sequence[float]) -> float:
    """Of several together: each takes its share of what the others leave."""
    left = 1.0
    for strength in strengths if len(strengths) <= COMMUTING else sorted(strengths):
        left *= 1 - strength
    return 1 - left


def influence(base: float, support: float, attack: float) -> float:
    """DF-QuAD: by what one exceeds the other, attack takes from what is there, support adds to what is missing."""
    if attack >= support:
        return base - base * (attack - support)
    return base + (1 - base) * (support - attack)


Links = Sequence[tuple[str, float]]
Bearing = Mapping[str, tuple[Links, Links]]
"""By claim, those that support it and those that attack it, each with its weight."""


def sort_bearing(bearing: Bearing) -> list[str] | None:
    """Those that something bears on, each after what bears on it; None if they go round in a circle."""
    before = {
        target: [source for source, _ in (*support, *attack) if source in bearing]
        for target, (support, attack) in bearing.items()
    }
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return None


def come_to_rest(
    bases: Mapping[str, float], bearing: Bearing, order: Sequence[str] | None, known: Mapping[str, float]
) -> dict[str, float]:
    """The strengths at which every claim agrees with what bears on it. Each in its `order`; where they go round in a
    circle all move at once, so that no order matters. What nothing bears on stays as it is `known`.
    """
    strengths = dict(known)
    if order is not None:
        for target in order:
            strengths[target] = _move(bases[target], bearing[target], strengths)
        return strengths
    strengths |= {target: bases[target] for target in bearing}
    for n in range(MOST_PASSES):
        moved = {target: _move(bases[target], bears, strengths) for target, bears in bearing.items()}
        if n >= CALM_PASSES:
            moved = {target: (strengths[target] + strength) / 2 for target, strength in moved.items()}
        if all(abs(strengths[target] - strength) <= STILL for target, strength in moved.items()):
            break
        strengths |= moved
    return strengths


def _move(base: float, bears: tuple[Links, Links], strengths: Mapping[str, float]) -> float:
    support, attack = bears
    return influence(
        base,
        accrue([weight * strengths[source] for source, weight in support]) if support else 0.0,
        accrue([weight * strengths[source] for source, weight in attack]) if attack else 0.0,
    )
