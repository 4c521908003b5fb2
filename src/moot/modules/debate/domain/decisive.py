"""What decides an argument: the fewest claims without which its direction would be another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

from moot.modules.debate.domain.weighing import (
    Weighing,
    balance,
    come_to_rest,
    read_bearing,
    sort_bearing,
    tip,
)
from moot.modules.debate.domain.weights import Dimension
from moot.shared.domain.claims import SIGNS, Claim

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


class Trial:
    """An argument that can quickly be weighed again without some of its claims: only what they bear on changes."""

    def __init__(self, weighing: Weighing) -> None:
        self._weighing = weighing
        self._claims = {claim.id: claim for claim in weighing.claims}
        self._bases = weighing.bases
        self._bearing = read_bearing(self._claims, weighing.relations)
        self._order = sort_bearing(self._bearing)
        self._leans: dict[Struck, float] = {NOTHING: weighing.lean}
        self._number = {place: number for number, place in enumerate(weighing.dimensions)}
        self._weights = [weighing.counting.places.get(place, 0.0) for place in weighing.dimensions]
        self._weighed = [
            w * pull for w, pull in zip(self._weights, weighing.dimensions.values(), strict=True)
        ]
        self._members: list[list[Claim]] = [[] for _ in self._weights]
        for claim in weighing.claims:
            self._members[self._number[_place(claim)]].append(claim)

    @cached_property
    def _borne_on(self) -> Mapping[str, list[str]]:
        forth: dict[str, list[str]] = {}
        for target, (support, attack) in self._bearing.items():
            for source, _ in (*support, *attack):
                forth.setdefault(source, []).append(target)
        return forth

    @cached_property
    def reach(self) -> Mapping[str, frozenset[str]]:
        """By claim, whatever changes with it."""
        return {id_: _walk(id_, self._borne_on) for id_ in self._claims}

    @cached_property
    def places(self) -> Mapping[str, frozenset[int]]:
        """By claim, the dimensions that change with it, by number."""
        own = {id_: self._number[_place(claim)] for id_, claim in self._claims.items()}
        return {id_: frozenset(own[each] for each in (id_, *reached)) for id_, reached in self.reach.items()}

    @cached_property
    def together(self) -> Mapping[int, list[str]]:
        """By dimension, the claims that change it."""
        changing: dict[int, list[str]] = {}
        for id_ in self.alone:
            for place in self.places[id_]:
                changing.setdefault(place, []).append(id_)
        return changing

    @cached_property
    def alone(self) -> Mapping[str, float]:
        """By claim that can move anything, how far the lean moves without it."""
        moving = sorted(id_ for id_, c in self._claims.items() if c.side != "neither" or self.reach[id_])
        return {id_: self.lean(frozenset([id_])) - self._weighing.lean for id_ in moving}

    def lean(self, struck: Struck) -> float:
        if struck not in self._leans:
            self._leans[struck] = self._weigh(struck)
        return self._leans[struck]

    def flips(self, struck: Struck) -> bool:
        return self._weighing.decide(self.lean(struck)) != self._weighing.direction

    def could_flip(self, moved: float) -> bool:
        return self._weighing.decide(self._weighing.lean + moved) != self._weighing.direction

    def _weigh(self, struck: Struck) -> float:
        changed = NOTHING.union(*(self.reach[id_] for id_ in struck)) - struck
        strengths = self._settle(struck, changed) if changed else self._weighing.strengths
        weighed = list(self._weighed)
        for place in {place for id_ in struck for place in self.places[id_]}:
            left = [claim for claim in self._members[place] if claim.id not in struck]
            weighed[place] = self._weights[place] * balance(left, strengths)
        return tip(weighed)

    def _settle(self, struck: Struck, changed: frozenset[str]) -> Mapping[str, float]:
        bearing = {}
        for target in changed:
            support, attack = self._bearing[target]
            bearing[target] = (
                [link for link in support if link[0] not in struck],
                [link for link in attack if link[0] not in struck],
            )
        order = None if self._order is None else [target for target in self._order if target in changed]
        return come_to_rest(self._bases, bearing, order, self._weighing.strengths)


def _place(claim: Claim) -> Dimension:
    return claim.expert, claim.dimension


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
    supports = [relation for relation in weighing.relations if relation.kind == "support"]
    unanswered = replace(weighing, relations=supports).strengths
    for way in (leaning, -leaning):
        places: dict[Dimension, list[Claim]] = {}
        for claim in weighing.claims:
            if SIGNS[claim.side] == way:
                places.setdefault(_place(claim), []).append(claim)
        best = weighing.tip({p: balance(c, unanswered) for p, c in places.items()})
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
