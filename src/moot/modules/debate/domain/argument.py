"""An argument as it is stored: what was claimed, what bears on what, what it comes to, and what decides it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

from moot.modules.debate.domain.weighing import (
    UNDECIDED,
    Bearing,
    Weighing,
    balance,
    come_to_rest,
    load_weights,
    round_down,
    sort_bearing,
    tip,
)
from moot.shared.domain.claims import SIGNS, ArgumentGraph, Claim, Relation

__all__ = ["Trial", "Weighing", "close", "extend", "find_decisive"]

MOST_TOUCHING = 3
"""Of those that change the same dimension, so many are tried by twos: those that move it most one by one."""
TOUCH = 3
"""Two of different dimensions meet in the motion: by how many times the product of what they move."""
FEW = 20
"""Of so many claims every two are tried."""
MOST_TOGETHER = 3
"""How many times farther two of one dimension may move it than one by one, at the strengths that claims have."""
MOST_AT_ONCE = 5
"""Of how many the next to go is chosen, where more than two have to."""
NOTHING: frozenset[str] = frozenset()

Struck = frozenset[str]


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
    return ArgumentGraph(
        claims=list(weighing.claims),
        relations=list(weighing.relations),
        heard=sorted(weighing.heard),
        strengths=weighing.strengths,
        dimensions={f"{expert.prefix}.{name}": pull for (expert, name), pull in weighing.dimensions.items()},
        motion=weighing.motion,
        conviction=weighing.conviction,
        direction=weighing.direction,
        confidence=round_down(UNDECIDED + weighing.conviction / 2),
        decisive=find_decisive(weighing),
        horizon=weighing.horizon,
        weights=load_weights().version,
    )


class Trial:
    """An argument that can quickly be weighed again without some of its claims: only what they bear on changes. A
    claim that is gone is one of no strength, which nothing feels.
    """

    def __init__(self, weighing: Weighing) -> None:
        self._weighing = weighing
        self._leans: dict[Struck, float] = {NOTHING: weighing.lean}
        self._places = list(weighing.places.values())
        self._place = {claim.id: place for place, claims in enumerate(self._places) for claim in claims}
        self._weights = [weighing.counting.places.get(place, 0.0) for place in weighing.places]
        pulls = weighing.dimensions.values()
        self._weighed = [weight * pull for weight, pull in zip(self._weights, pulls, strict=True)]

    @cached_property
    def reach(self) -> Mapping[str, frozenset[str]]:
        """By claim, whatever changes with it."""
        forth: dict[str, list[str]] = {}
        for target, (support, attack) in self._weighing.bearing.items():
            for source, _ in (*support, *attack):
                forth.setdefault(source, []).append(target)
        return {id_: _walk(id_, forth) if id_ in forth else NOTHING for id_ in self._place}

    @cached_property
    def together(self) -> Mapping[int, list[str]]:
        """By dimension, by number, the claims that change it."""
        changing: dict[int, list[str]] = {}
        for id_ in self.alone:
            for place in {self._place[each] for each in (id_, *self.reach[id_])}:
                changing.setdefault(place, []).append(id_)
        return changing

    @cached_property
    def alone(self) -> Mapping[str, float]:
        """By claim that can move anything, how far the lean moves without it."""
        moving = sorted(c.id for c in self._weighing.claims if c.side != "neither" or self.reach[c.id])
        return {id_: self.lean(frozenset([id_])) - self._weighing.lean for id_ in moving}

    def lean(self, struck: Struck) -> float:
        if struck not in self._leans:
            self._leans[struck] = tip(self._weigh_without(struck))
        return self._leans[struck]

    def flips(self, struck: Struck) -> bool:
        return self._weighing.decide(self.lean(struck)) != self._weighing.direction

    def could_flip(self, moved: float) -> bool:
        return self._weighing.decide(self._weighing.lean + moved) != self._weighing.direction

    def _weigh_without(self, struck: Struck) -> list[float]:
        """How far each dimension pulls the motion."""
        changed = NOTHING.union(*[self.reach[id_] for id_ in struck]) - struck
        bearing = {target: self._weighing.bearing[target] for target in changed}
        order = self._weighing.order and [target for target in self._weighing.order if target in changed]
        known = self._weighing.strengths | dict.fromkeys(struck, 0.0)
        strengths = come_to_rest(self._weighing.bases, bearing, order, known)
        weighed = self._weighed.copy()
        for place in {self._place[id_] for id_ in (*struck, *changed)}:
            weighed[place] = self._weights[place] * balance(self._places[place], strengths)
        return weighed


def _walk(start: str, onward: Mapping[str, list[str]]) -> frozenset[str]:
    seen: set[str] = set()
    ahead = list(onward.get(start, ()))
    while ahead:
        here = ahead.pop()
        if here not in seen:
            seen.add(here)
            ahead += onward.get(here, ())
    return frozenset(seen)


def find_decisive(weighing: Weighing) -> list[str]:
    """One claim or two if they do, otherwise those that pull most, less those that can stay; none if nothing would
    do. Out of the middle it goes the way it leans, or the other where that cannot be.
    """
    trial, way = Trial(weighing), _find_way(weighing)
    if not way:
        return []
    singles = (frozenset([id_]) for id_ in trial.alone)
    if flipping := [struck for struck in singles if trial.flips(struck)]:
        return min(sorted(struck) for struck in _farthest(trial, flipping))
    if pair := next((pair for pair in _pairs(trial, way) if trial.flips(pair)), None):
        return sorted(pair)
    return sorted(_prune(trial, _strike(trial, way)))


def _find_way(weighing: Weighing) -> int:
    """Which way the lean has to move; out of the middle, one that a side at its best could move it. 0: none."""
    leaning = 1 if weighing.lean >= 0 else -1
    if weighing.direction != "NEUTRAL":
        return -leaning
    supports: Bearing = {target: (support, ()) for target, (support, _) in weighing.bearing.items()}
    order = weighing.order or sort_bearing(supports)
    unanswered = come_to_rest(weighing.bases, supports, order, weighing.bases)
    for way in (leaning, -leaning):
        best = weighing.tip(
            {
                place: balance([claim for claim in claims if SIGNS[claim.side] == way], unanswered)
                for place, claims in weighing.places.items()
            }
        )
        if weighing.decide(best) != "NEUTRAL":
            return way
    return 0


def _farthest(trial: Trial, sets: Sequence[Struck]) -> list[Struck]:
    moved = [round(abs(trial.lean(struck) - trial.lean(NOTHING)), 9) for struck in sets]
    return [struck for struck, far in zip(sets, moved, strict=True) if far == max(moved)]


def _pairs(trial: Trial, way: int) -> Iterator[Struck]:
    """Two that change nothing in common move it by what each does, but for a little: that rules out most. Two that
    do may move it farther; of those, the likeliest are tried.
    """
    alone = trial.alone
    if len(alone) <= FEW:
        yield from map(frozenset, combinations(alone, 2))
        return
    best = sorted(alone, key=lambda id_: (-way * alone[id_], id_))
    for place, one in enumerate(best):
        for other in best[place + 1 :]:
            if not trial.could_flip(alone[one] + alone[other] + way * TOUCH * abs(alone[one] * alone[other])):
                break
            yield frozenset((one, other))
    rank = {id_: place for place, id_ in enumerate(best)}
    for together in trial.together.values():
        for pair in combinations(sorted(together, key=rank.__getitem__)[:MOST_TOUCHING], 2):
            if trial.could_flip(MOST_TOGETHER * (alone[pair[0]] + alone[pair[1]])):
                yield frozenset(pair)


def _strike(trial: Trial, way: int) -> Struck:
    """One after the other, each time what moves it farthest, until it has turned; nothing if it does not."""
    struck, left = NOTHING, sorted(trial.alone, key=lambda id_: (-way * trial.alone[id_], id_))
    while left and not trial.flips(struck):
        leans = {id_: way * trial.lean(struck | {id_}) for id_ in left[:MOST_AT_ONCE]}
        farthest = max(leans, key=lambda id_: (leans[id_], id_))
        struck |= {farthest}
        left.remove(farthest)
    return struck if trial.flips(struck) else NOTHING


def _prune(trial: Trial, struck: Struck) -> Struck:
    for id_ in sorted(struck, key=lambda id_: (abs(trial.alone[id_]), id_)):
        if trial.flips(struck - {id_}):
            struck -= {id_}
    return struck
