"""What the observations of one span of time come to: for every signal, kind of claim and verdict, in figures."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from math import fsum
from statistics import median

from moot.modules.evaluation.domain.observation import (
    HORIZONS,
    SIDES,
    Frozen,
    Horizon,
    Observation,
    Said,
)
from moot.modules.evaluation.domain.statistics import (
    OVERLAP,
    Calibration,
    Dated,
    Estimate,
    Told,
    average,
    calibrate,
    contrast,
    correlate_ranks,
    estimate,
)
from moot.shared.domain.experts import ExpertType

MAIN: Horizon = 20
"""The horizon of what names none of its own."""
FEWEST_COMPARED = 40
SMALLEST_PART = 0.25
"""Of all claims of a kind, what either half must have: most are equally strong in some kinds."""
DECILES = 10
UNARGUED = "unargued"
Estimates = dict[Horizon, Estimate]


@dataclass(frozen=True)
class Point:
    """Something that was said of a company at an observation; `side` 1 for it, -1 against, 0 neither."""

    where: Observation
    side: int
    confidence: float | None = None


class Row(Frozen):
    """`share` is of everything said by the same; `hits`: how often the excess was on the side taken, at `horizon`;
    `coin`: what sides drawn by lot, as many for and against, would have hit. `excess` is that of the shares; of an
    expert, a kind of claims or a hearing it is counted for whoever took the side.
    """

    name: str
    n: int
    share: float
    horizon: Horizon
    hits: Estimate | None
    coin: float | None
    excess: Estimates


class Expert(Frozen):
    name: str
    heard: int
    asked: int
    signals: list[Row]
    sided: Row
    calibration: Calibration | None


class Halves(Frozen):
    """Excess on the side taken, of the stronger and of the weaker claims of a kind, and the one less the other."""

    stronger: float
    weaker: float
    more: Estimate


class Kind(Frozen):
    name: str
    pull: float
    row: Row
    halves: Halves | None


class Hearing(Frozen):
    """Who was heard: `ranks`, the mean over dates of the rank correlation of lean and excess."""

    name: str
    ranks: Estimates
    sided: Row


class Decile(Frozen):
    lean: float
    row: Row


class Figures(Frozen):
    """Of one span: the tuning dates, or those reported on. Never of both."""

    dates: int
    observations: int
    base: dict[Horizon, float]
    experts: list[Expert]
    kinds: list[Kind]
    actions: list[Row]
    verdicts: Row
    calibration: Calibration | None
    deciles: list[Decile]
    hearings: list[Hearing]


@dataclass(frozen=True)
class Span:
    """`until`: what was sold on that day or later is not known here, so that one span tells nothing of the next."""

    observations: Sequence[Observation]
    until: date

    @cached_property
    def moments(self) -> list[date]:
        return sorted({seen.day for seen in self.observations})

    def excess(self, seen: Observation, horizon: Horizon) -> float | None:
        came = seen.came.get(horizon)
        return came.excess if came and came.sold < self.until else None

    def list_excess(self, points: Iterable[Point], horizon: Horizon) -> Iterator[tuple[Point, float]]:
        for point in points:
            excess = self.excess(point.where, horizon)
            if excess is not None:
                yield point, excess

    def count(self) -> Figures:
        seen = self.observations
        verdicts = [
            Point(one, SIDES[one.said.action], one.said.confidence) for one in seen if one.said.action
        ]
        by_action = group(verdicts, lambda point: str(point.where.said.action))
        return Figures(
            dates=len(self.moments),
            observations=len(seen),
            base={horizon: self._base(horizon) for horizon in HORIZONS},
            experts=[self._expert(expert.value) for expert in ExpertType],
            kinds=list(self._kinds()),
            actions=[self.row(name, points, len(verdicts)) for name, points in by_action.items()],
            verdicts=self.row("", verdicts, len(seen), signed=True),
            calibration=self._calibrate(verdicts),
            deciles=list(self._deciles()),
            hearings=list(self._hearings()),
        )

    def row(
        self, name: str, points: Sequence[Point], of: int, *, horizon: Horizon = MAIN, signed: bool = False
    ) -> Row:
        """`signed`: excess counts for whoever took the side, and what takes none is left out of it."""
        sided = [(point, excess) for point, excess in self.list_excess(points, horizon) if point.side]
        base = self._base(horizon)
        hits = ((point.where.day, float(point.side * excess > 0)) for point, excess in sided)
        coin = fsum(base if point.side > 0 else 1 - base for point, _ in sided)
        return Row(
            name=name,
            n=len(points),
            share=len(points) / of if of else 0.0,
            horizon=horizon,
            hits=estimate(hits, self.moments, OVERLAP[horizon]),
            coin=coin / len(sided) if sided else None,
            excess=dict(self._estimate_excess(points, signed)),
        )

    def _estimate_excess(self, points: Sequence[Point], signed: bool) -> Iterator[tuple[Horizon, Estimate]]:
        for horizon in HORIZONS:
            values = (
                (point.where.day, point.side * excess if signed else excess)
                for point, excess in self.list_excess(points, horizon)
                if point.side or not signed
            )
            if found := estimate(values, self.moments, OVERLAP[horizon]):
                yield horizon, found

    def _base(self, horizon: Horizon) -> float:
        """How many shares beat the mean at all: fewer than half, as few that rise much lift it for all."""
        beat = [
            excess > 0 for seen in self.observations if (excess := self.excess(seen, horizon)) is not None
        ]
        return sum(beat) / len(beat) if beat else 0.5

    def _calibrate(self, points: Iterable[Point]) -> Calibration | None:
        """Confidence taken for the probability that the side is right."""
        return calibrate(
            Told(point.confidence, point.side * excess > 0)
            for point, excess in self.list_excess(points, MAIN)
            if point.side and point.confidence is not None
        )

    def _expert(self, name: str) -> Expert:
        heard = [one for one in self.observations if name in one.said.views]
        views = [(one, one.said.views[name]) for one in heard]
        points = [Point(one, _sign(view.stance), view.confidence) for one, view in views]
        by_signal = group(points, lambda point: point.where.said.views[name].signal)
        return Expert(
            name=name,
            heard=len(heard),
            asked=len(self.observations),
            signals=[self.row(signal, members, len(points)) for signal, members in by_signal.items()],
            sided=self.row(name, points, len(self.observations), signed=True),
            calibration=self._calibrate(points),
        )

    def _kinds(self) -> Iterator[Kind]:
        found: dict[str, list[tuple[Point, Said]]] = {}
        for one in self.observations:
            for said in one.said.claims:
                found.setdefault(said.kind, []).append((Point(one, _sign(said.pull)), said))
        for name, members in sorted(found.items()):
            points, horizon = [point for point, _ in members], members[0][1].horizon
            yield Kind(
                name=name,
                pull=fsum(said.pull for _, said in members) / len(members),
                row=self.row(name, points, len(self.observations), horizon=horizon, signed=True),
                halves=self._halve(members, horizon),
            )

    def _halve(self, members: Sequence[tuple[Point, Said]], horizon: Horizon) -> Halves | None:
        """By strength, and where that is one by how unusual the figure is; None where neither tells them apart."""
        known: list[tuple[tuple[float, float], Dated]] = []
        for point, said in members:
            excess = self.excess(point.where, horizon)
            if excess is not None and point.side:
                key = abs(said.pull), self._unusual(said)
                known.append((key, (point.where.day, point.side * excess)))
        if len(known) < FEWEST_COMPARED:
            return None
        cut = sorted(key for key, _ in known)[len(known) // 2]
        stronger = [dated for key, dated in known if key >= cut]
        weaker = [dated for key, dated in known if key < cut]
        if min(len(stronger), len(weaker)) < SMALLEST_PART * len(known):
            return None
        more = contrast(stronger, weaker, self.moments, OVERLAP[horizon])
        return Halves(stronger=average(stronger), weaker=average(weaker), more=more) if more else None

    def _unusual(self, said: Said) -> float:
        usual = self._usual.get(said.figure)
        return 0.0 if said.value is None or usual is None else abs(said.value - usual)

    @cached_property
    def _usual(self) -> Mapping[str, float]:
        """What each figure is in the middle, of all companies and dates of the span, claimed of or not."""
        figures: dict[str, list[float]] = {}
        for one in self.observations:
            for name, value in one.said.figures.items():
                figures.setdefault(name, []).append(value)
        return {name: median(values) for name, values in figures.items()}

    def _deciles(self) -> Iterator[Decile]:
        leans = [(lean, one) for one in self.observations if (lean := one.said.leans.get("all")) is not None]
        leans.sort(key=lambda pair: (pair[0], pair[1].day, pair[1].symbol))
        for place in range(DECILES):
            members = leans[len(leans) * place // DECILES : len(leans) * (place + 1) // DECILES]
            if members:
                points = [Point(one, _sign(lean)) for lean, one in members]
                mean = fsum(lean for lean, _ in members) / len(members)
                yield Decile(lean=mean, row=self.row(str(place + 1), points, len(leans)))

    def _hearings(self) -> Iterator[Hearing]:
        names = dict.fromkeys(name for one in self.observations for name in one.said.leans)
        order = ["all", *sorted(name for name in names if name != "all")] if names else []
        for name in (*order, UNARGUED):
            leans = {
                (one.day, one.symbol): (one, lean)
                for one in self.observations
                if (lean := one.said.unargued if name == UNARGUED else one.said.leans.get(name)) is not None
            }
            points = [Point(one, _sign(lean)) for one, lean in leans.values()]
            yield Hearing(
                name=name,
                ranks=dict(self._rank(list(leans.values()))),
                sided=self.row(name, points, len(self.observations), signed=True),
            )

    def _rank(self, leans: Sequence[tuple[Observation, float]]) -> Iterator[tuple[Horizon, Estimate]]:
        for horizon in HORIZONS:
            by_date: dict[date, list[tuple[float, float]]] = {}
            for one, lean in leans:
                excess = self.excess(one, horizon)
                if excess is not None:
                    by_date.setdefault(one.day, []).append((lean, excess))
            ranked = ((day, correlate_ranks(pairs)) for day, pairs in sorted(by_date.items()))
            known = [(day, rank) for day, rank in ranked if rank is not None]
            if found := estimate(known, self.moments, OVERLAP[horizon]):
                yield horizon, found


def group(points: Iterable[Point], key: Callable[[Point], str]) -> dict[str, list[Point]]:
    """By name, in the order of the names."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(key(point), []).append(point)
    return dict(sorted(found.items()))


def list_fading(figures: Figures) -> list[Kind]:
    """Kinds of claims whose stronger half did worse than their weaker half, the worst first."""
    by = {kind.name: kind.halves.more.mean for kind in figures.kinds if kind.halves}
    return sorted(
        (kind for kind in figures.kinds if by.get(kind.name, 0.0) < 0), key=lambda kind: by[kind.name]
    )


def _sign(value: float) -> int:
    return int(value > 0) - int(value < 0)
