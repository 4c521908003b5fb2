"""What the observations of one span of time come to: for every signal, kind of claim and hearing, in figures."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import groupby
from math import fsum
from statistics import median
from typing import NamedTuple

from moot.modules.evaluation.domain.observation import ARGUED, Frozen, Observation, Said
from moot.modules.evaluation.domain.statistics import (
    OVERLAP,
    Bin,
    Dated,
    Estimate,
    average,
    bin_by_tenths,
    contrast,
    correlate_ranks,
    estimate,
    find_brier,
)
from moot.shared.domain.claims import HORIZONS, Horizon

MAIN: Horizon = 20
"""The horizon of what names none of its own."""
FEWEST_COMPARED = 40
SMALLEST_PART = 0.25
"""Of all claims of a kind, what either half must have: most are equally strong in some kinds."""
DECILES = 10
Estimates = dict[Horizon, Estimate]


class Point(NamedTuple):
    """Something that was said of a company: `weight` positive for it, negative against, 0 neither; `unusual` is how
    far the figure it rests on lies from the middle.
    """

    where: Observation
    weight: float
    horizon: Horizon = MAIN
    confidence: float | None = None
    unusual: float = 0.0

    @property
    def side(self) -> int:
        return int(self.weight > 0) - int(self.weight < 0)


class Halves(Frozen):
    """Excess on the side taken, of the stronger and of the weaker claims of a kind, and the one less the other."""

    stronger: float
    weaker: float
    more: Estimate


class Row(Frozen):
    """What was said `n` times, a `share` of all companies and dates, or of all signals of the same; claims of a kind
    have a `horizon` of their own. `hits` is how often the excess was on the side taken, `coin` how often it is on
    sides drawn by lot, as many for and against.

    `excess` is that of the shares, `gain` the same counted for whoever took the side, `ranks` its mean rank
    correlation with the weight, date by date. `brier` and `bins` take confidence for the probability to hit.
    """

    name: str
    n: int
    share: float
    weight: float
    horizon: Horizon
    hits: Estimates
    coin: dict[Horizon, float]
    excess: Estimates
    gain: Estimates
    ranks: Estimates
    brier: float | None
    bins: list[Bin]
    halves: Halves | None = None


class Figures(Frozen):
    """Of one span: the tuning dates, or those reported on; never of both. `base`: how many shares beat the mean."""

    dates: int
    n: int
    base: float
    tables: dict[str, list[Row]]


@dataclass(frozen=True)
class Span:
    """`until`: what was sold on that day or later is not known here, so that one span tells nothing of the next."""

    observations: Sequence[Observation]
    until: date

    def count(self) -> Figures:
        tables: dict[str, dict[str, list[Point]]] = {}
        for table, name, point in self._list_points():
            tables.setdefault(table, {}).setdefault(name, []).append(point)
        rows = {
            table: [self._row(table, name, tables) for name in sorted(named, key=_order)]
            for table, named in tables.items()
        }
        return Figures(dates=len(self.moments), n=len(self.observations), base=self._base(MAIN), tables=rows)

    @cached_property
    def moments(self) -> list[date]:
        return sorted({seen.day for seen in self.observations})

    def _excess(self, seen: Observation, horizon: Horizon) -> float | None:
        came = seen.came.get(horizon)
        return came.excess if came and came.sold < self.until else None

    def _list_points(self) -> Iterator[tuple[str, str, Point]]:
        """Each with its table and its name there."""
        for one in self.observations:
            for who, view in one.said.views.items():
                point = Point(one, view.stance, confidence=view.confidence)
                yield "voices", who, point
                yield "signals", f"{who} {view.signal}", point
            for claim in one.said.claims:
                yield "kinds", claim.kind, Point(one, claim.pull, claim.horizon, unusual=self._unusual(claim))
            for name, lean in one.said.leans.items():
                yield "hearings", name, Point(one, lean)
        leans = sorted(
            (one.said.leans[ARGUED], place) for place, one in enumerate(self.observations) if one.said.leans
        )
        for rank, (lean, place) in enumerate(leans):
            yield "deciles", str(1 + DECILES * rank // len(leans)), Point(self.observations[place], lean)

    def _unusual(self, said: Said) -> float:
        return 0.0 if said.value is None else abs(said.value - self._usual[said.id])

    @cached_property
    def _usual(self) -> Mapping[str, float]:
        """By claim, the number it rests on in the middle of all companies and dates, whatever was made of it."""
        claims = [claim for one in self.observations for claim in one.said.claims if claim.value is not None]
        claims.sort(key=lambda claim: claim.id)
        by_id = groupby(claims, key=lambda claim: claim.id)
        return {name: median(claim.value or 0.0 for claim in found) for name, found in by_id}

    def _row(self, table: str, name: str, tables: Mapping[str, Mapping[str, Sequence[Point]]]) -> Row:
        points = tables[table][name]
        sided = [point for point in points if point.side]
        whole = tables["voices"][name.partition(" ")[0]] if table == "signals" else self.observations
        hits = self._estimate(sided, lambda point, excess: float(point.side * excess > 0))
        told = [
            (point.confidence, point.side * excess > 0)
            for point, excess in self._look(sided, MAIN)
            if point.confidence is not None
        ]
        return Row(
            name=name,
            n=len(points),
            share=len(points) / len(whole),
            weight=fsum(point.weight for point in points) / len(points),
            horizon=points[0].horizon,
            hits={horizon: known.clip() for horizon, known in hits.items()},
            coin={horizon: self._toss(sided, horizon) for horizon in hits},
            excess=self._estimate(points, lambda point, excess: excess),
            gain=self._estimate(sided, lambda point, excess: point.side * excess),
            ranks=self._correlate(points),
            brier=find_brier(told),
            bins=bin_by_tenths(told),
            halves=self._halve(points) if table == "kinds" else None,
        )

    def _look(self, points: Iterable[Point], horizon: Horizon) -> Iterator[tuple[Point, float]]:
        for point in points:
            if (excess := self._excess(point.where, horizon)) is not None:
                yield point, excess

    def _toss(self, sided: Sequence[Point], horizon: Horizon) -> float:
        base, sides = self._base(horizon), [point.side for point, _ in self._look(sided, horizon)]
        return fsum(base if side > 0 else 1 - base for side in sides) / len(sides)

    def _base(self, horizon: Horizon) -> float:
        """Fewer than half beat the mean, as a rule: few that rise much lift it for all."""
        beat = [excess > 0 for one in self.observations if (excess := self._excess(one, horizon)) is not None]
        return sum(beat) / len(beat) if beat else 0.5

    def _estimate(self, points: Sequence[Point], value: Callable[[Point, float], float]) -> Estimates:
        return self._collect(
            lambda horizon: [(p.where.day, value(p, excess)) for p, excess in self._look(points, horizon)]
        )

    def _correlate(self, points: Sequence[Point]) -> Estimates:
        def rank(horizon: Horizon) -> Iterator[Dated]:
            pairs: dict[date, list[tuple[float, float]]] = {}
            for point, excess in self._look(points, horizon):
                pairs.setdefault(point.where.day, []).append((point.weight, excess))
            for day, found in pairs.items():
                if (correlation := correlate_ranks(found)) is not None:
                    yield day, correlation

        return self._collect(rank)

    def _collect(self, values: Callable[[Horizon], Iterable[Dated]]) -> Estimates:
        """By horizon, where anything is known."""
        found = {horizon: estimate(values(horizon), self.moments, OVERLAP[horizon]) for horizon in HORIZONS}
        return {horizon: known for horizon, known in found.items() if known}

    def _halve(self, points: Sequence[Point]) -> Halves | None:
        """By strength, and where that is one by how unusual the figure is; None where neither tells them apart."""
        horizon = points[0].horizon
        known = [
            ((abs(point.weight), point.unusual), (point.where.day, point.side * excess))
            for point, excess in self._look(points, horizon)
            if point.side
        ]
        cut = sorted(key for key, _ in known)[len(known) // 2] if known else (0.0, 0.0)
        stronger = [dated for key, dated in known if key >= cut]
        weaker = [dated for key, dated in known if key < cut]
        if min(len(stronger), len(weaker)) < SMALLEST_PART * max(len(known), FEWEST_COMPARED):
            return None
        more = contrast(stronger, weaker, self.moments, OVERLAP[horizon])
        return Halves(stronger=average(stronger), weaker=average(weaker), more=more) if more else None


def _order(name: str) -> tuple[int, str]:
    """By name, and numbers by their size."""
    return int(name) if name.isdecimal() else 0, name


def list_fading(figures: Figures) -> list[Row]:
    """Kinds of claims whose stronger half did worse than their weaker half, the worst first."""
    by = {row.name: row.halves.more.mean for row in figures.tables.get("kinds", []) if row.halves}
    fading = (row for row in figures.tables.get("kinds", []) if by.get(row.name, 0.0) < 0)
    return sorted(fading, key=lambda row: by[row.name])
