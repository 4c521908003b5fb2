"""An argument as it is stored: what was claimed, what bears on what, what it comes to, and what decides it."""

from collections.abc import Iterable
from dataclasses import replace

from moot.modules.debate.domain.decisive import find_decisive
from moot.modules.debate.domain.weighing import UNDECIDED, Weighing
from moot.modules.debate.domain.weights import load_weights
from moot.shared.domain.claims import ArgumentGraph, Claim, Relation

__all__ = ["Weighing", "close", "extend", "find_decisive"]


def extend(weighing: Weighing, claims: Iterable[Claim], relations: Iterable[Relation]) -> Weighing:
    """With what somebody adds. What was there stands: nobody says another's claim anew, nor a relation twice, and
    nothing bears on itself or on what nobody claimed.
    """
    known: dict[str, Claim] = {}
    for claim in (*weighing.claims, *claims):
        known.setdefault(claim.id, claim)
    borne: dict[tuple[str, str], Relation] = {}
    for relation in (*weighing.relations, *relations):
        if relation.source != relation.target and {relation.source, relation.target} <= known.keys():
            borne.setdefault((relation.source, relation.target), relation)
    return replace(weighing, claims=list(known.values()), relations=list(borne.values()))


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
        horizon=weighing.horizon,
        weights=load_weights().version,
    )
