"""The argument: claims that attack and support each other, below the dimensions of the experts, below the motion that
the share is worth buying at this price, over this horizon.

A quantitative bipolar argumentation framework. Strengths follow from one gradual semantics, DF-QuAD (Rago, Toni,
Aurisicchio, Baroni 2016), with weights on the edges to the motion, so that every expert of the panel counts alike.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from moot.shared.domain.claims import ArgumentGraph, Claim, Relation
from moot.shared.domain.experts import Direction, ExpertType

UNDECIDED = 0.5
"""How strong the motion is before anybody has spoken."""
NEUTRAL_BAND = 0.1
DOUBT_OF_A_SILENT_EXPERT = 0.15
STILL = 1e-12
MOST_PASSES = 500
CALM_PASSES = 50
"""Passes after which a circle of claims that does not come to rest is damped."""

Dimension = tuple[ExpertType, str]
DIMENSIONS: tuple[Dimension, ...] = tuple(
    (expert, dimension) for expert in ExpertType for dimension in expert.dimensions
)
WEIGHTS: Mapping[Dimension, float] = {
    (expert, dimension): 1 / len(ExpertType) / len(expert.dimensions) for expert, dimension in DIMENSIONS
}
"""Of the whole panel, whoever is heard: silence is doubt."""


@dataclass(frozen=True)
class Weighing:
    """What claims and relations come to. Nothing depends on their order."""

    claims: Sequence[Claim]
    relations: Sequence[Relation]
    heard: frozenset[ExpertType]

    @cached_property
    def strengths(self) -> dict[str, float]:
        """Of each claim, after all that is said for and against it."""
        return settle({claim.id: claim.strength for claim in self.claims}, self.relations)

    @cached_property
    def dimensions(self) -> dict[Dimension, float]:
        """How far each speaks for the motion (positive) or against it. Two arguments in one: that the dimension is a
        reason to buy, and that it is a reason not to; both begin at nothing, so that one of them at most is left.
        """
        sides: dict[Dimension, tuple[list[float], list[float]]] = {}
        for claim in self.claims:
            pro, con = sides.setdefault((claim.expert, claim.dimension), ([], []))
            if claim.side != "neither":
                (pro if claim.side == "for" else con).append(self.strengths[claim.id])
        return {place: accrue(pro) - accrue(con) for place, (pro, con) in sides.items()}

    @cached_property
    def motion(self) -> float:
        pulls = [WEIGHTS.get(place, 0.0) * pull for place, pull in self.dimensions.items()]
        pro, con = [pull for pull in pulls if pull > 0], [-pull for pull in pulls if pull < 0]
        return influence(UNDECIDED, accrue(pro), accrue(con))

    @property
    def lean(self) -> float:
        """From -1 (do not) to 1 (do)."""
        return 2 * (self.motion - UNDECIDED)

    @property
    def conviction(self) -> float:
        """What is left of the lean when those who were not heard are granted to think otherwise."""
        silent = len(ExpertType) - len(self.heard)
        return max(0.0, abs(self.lean) - DOUBT_OF_A_SILENT_EXPERT * silent)

    @property
    def direction(self) -> Direction:
        if self.conviction < NEUTRAL_BAND:
            return "NEUTRAL"
        return "BULLISH" if self.lean > 0 else "BEARISH"

    def without(self, struck: Iterable[str]) -> "Weighing":
        """As if these had never been claimed; what they said of others falls with them."""
        gone = set(struck)
        relations = [r for r in self.relations if not {r.source, r.target} & gone]
        return Weighing([claim for claim in self.claims if claim.id not in gone], relations, self.heard)


def accrue(strengths: Iterable[float]) -> float:
    """Of several together: each takes its share of what the others leave."""
    return 1 - prod(1 - strength for strength in sorted(strengths))


def influence(base: float, support: float, attack: float) -> float:
    """DF-QuAD: by what one exceeds the other, attack takes from what is there, support adds to what is missing."""
    if attack >= support:
        return base - base * (attack - support)
    return base + (1 - base) * (support - attack)


def settle(bases: Mapping[str, float], relations: Iterable[Relation]) -> dict[str, float]:
    """The strengths at which every claim agrees with what bears on it; all move at once, so no order matters."""
    bearing: dict[str, tuple[list[str], list[str]]] = {}
    for relation in relations:
        if relation.source in bases and relation.target in bases:
            support, attack = bearing.setdefault(relation.target, ([], []))
            (support if relation.kind == "support" else attack).append(relation.source)
    strengths = dict(bases)
    for n in range(MOST_PASSES):
        moved = {
            target: influence(
                bases[target], accrue(strengths[s] for s in support), accrue(strengths[a] for a in attack)
            )
            for target, (support, attack) in bearing.items()
        }
        if n >= CALM_PASSES:
            moved = {target: (strengths[target] + strength) / 2 for target, strength in moved.items()}
        if all(abs(strengths[target] - strength) <= STILL for target, strength in moved.items()):
            break
        strengths |= moved
    return strengths


def find_decisive(weighing: Weighing) -> list[str]:
    """The claims whose removal changes the direction, as few as can be: those that pull most go first."""
    direction = weighing.direction
    sign = -1 if weighing.lean < 0 else 1
    struck: list[str] = []
    left = weighing
    while left.direction == direction:
        removals = {
            claim.id: sign * left.without([claim.id]).lean for claim in left.claims if claim.side != "neither"
        }
        if not removals:
            return []
        struck.append(min(removals, key=lambda id_: (removals[id_], id_)))
        left = weighing.without(struck)
    return struck


def close(weighing: Weighing) -> ArgumentGraph:
    """The argument as it is stored."""
    return ArgumentGraph(
        claims=list(weighing.claims),
        relations=list(weighing.relations),
        heard=sorted(weighing.heard),
        strengths=weighing.strengths,
        dimensions={f"{expert.prefix}.{name}": pull for (expert, name), pull in weighing.dimensions.items()},
        motion=weighing.motion,
        conviction=weighing.conviction,
        direction=weighing.direction,
        confidence=UNDECIDED + weighing.conviction / 2,
        decisive=find_decisive(weighing),
    )
