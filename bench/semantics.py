"""Which gradual semantics to weigh arguments by: `python -m bench.semantics FOLDER` compares two on the demo market
and on a folder of real tables, by how they saturate and how steady they are.

DF-QuAD as the debate uses it; quadratic energy (Potyka 2018) on the same graph, once with the same weights on the
edges to the motion and once without. Each has its own neutral band, as wide as leaves a third undecided.
"""

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path

import polars as pl

from bench import real_data
from moot.modules.debate.domain.schemes import relate
from moot.modules.debate.domain.weighing import Dimension, Weighing
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.claims import Claim
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.symbol import TIME_ZONES, Market

DEMO_DAYS = [date(2025, 3, 3) + timedelta(days=28 * n) for n in range(10)]
UNDECIDED_SHARE = 1 / 3
SATURATED = 0.95
PASSES = 200


@dataclass(frozen=True)
class Case:
    symbol: str
    day: date
    claims: list[Claim]
    heard: frozenset[ExpertType]

    def weigh(self) -> Weighing:
        return Weighing(self.claims, relate(self.claims), self.heard)


@dataclass(frozen=True)
class Weighed:
    lean: float
    dimensions: dict[Dimension, float]


Semantics = Callable[[Weighing], Weighed]


def weigh_dfquad(weighing: Weighing) -> Weighed:
    return Weighed(weighing.lean, weighing.dimensions)


def weigh_energy(weighing: Weighing, *, weighted: bool = True) -> Weighed:
    strengths = settle_energy(weighing)
    pulls: dict[Dimension, float] = {}
    for claim in weighing.claims:
        place = claim.expert, claim.dimension
        sign = {"for": 1, "against": -1, "neither": 0}[claim.side]
        pulls[place] = pulls.get(place, 0.0) + sign * strengths[claim.id]
    dimensions = {place: impact(pull) - impact(-pull) for place, pull in pulls.items()}
    energy = sum(
        (weighing.counting.places[place] if weighted else 1.0) * pull for place, pull in dimensions.items()
    )
    return Weighed(impact(energy) - impact(-energy), dimensions)


def settle_energy(weighing: Weighing) -> dict[str, float]:
    bases = weighing.bases
    strengths = dict(bases)
    for _ in range(PASSES):
        energy = dict.fromkeys(bases, 0.0)
        for relation in weighing.relations:
            energy[relation.target] += (1 if relation.kind == "support" else -1) * strengths[relation.source]
        moved = {
            id_: base - base * impact(-energy[id_]) + (1 - base) * impact(energy[id_])
            for id_, base in bases.items()
        }
        if max((abs(moved[id_] - strengths[id_]) for id_ in bases), default=0.0) < 1e-12:
            break
        strengths = moved
    return strengths


def impact(energy: float) -> float:
    return max(0.0, energy) ** 2 / (1 + max(0.0, energy) ** 2)


SEMANTICS: dict[str, Semantics] = {
    "DF-QuAD": weigh_dfquad,
    "quadratic energy, weighted": weigh_energy,
    "quadratic energy": lambda weighing: weigh_energy(weighing, weighted=False),
}


def measure(cases: Sequence[Case], semantics: Semantics) -> dict[str, float]:
    weighed = {(case.symbol, case.day): semantics(case.weigh()) for case in cases}
    leans = [one.lean for one in weighed.values()]
    pulls = [pull for one in weighed.values() for pull in one.dimensions.values()]
    band = sorted(map(abs, leans))[int(len(leans) * UNDECIDED_SHARE)]
    dropped = [turns(semantics, case, weighed[case.symbol, case.day].lean, band) for case in cases]
    nights = [
        (lean.lean, after.lean)
        for (symbol, day), lean in weighed.items()
        if (after := weighed.get((symbol, day + timedelta(days=1))))
    ]
    return {
        "motions beyond 0.95": share((1 + abs(lean)) / 2 > SATURATED for lean in leans),
        "dimensions beyond 0.95": share(abs(pull) > SATURATED for pull in pulls),
        "dimensions: standard deviation": statistics.pstdev(pulls),
        "motions: standard deviation of the lean": statistics.pstdev(leans),
        "outcome changed by dropping one claim": statistics.mean(dropped),
        "largest change by one claim / deviation": statistics.mean(
            most_moved(semantics, case) for case in cases[::7]
        )
        / statistics.pstdev(leans),
        "outcome changed overnight": share(side(one, band) != side(other, band) for one, other in nights),
    }


def turns(semantics: Semantics, case: Case, lean: float, band: float) -> float:
    """Of its claims, the share without which the outcome is another."""
    weighing = case.weigh()
    return share(
        side(semantics(weighing.without([claim.id])).lean, band) != side(lean, band)
        for claim in case.claims[::5]
    )


def most_moved(semantics: Semantics, case: Case) -> float:
    weighing = case.weigh()
    lean = semantics(weighing).lean
    return max(abs(semantics(weighing.without([claim.id])).lean - lean) for claim in case.claims)


def side(lean: float, band: float) -> int:
    return 0 if abs(lean) < band else 1 if lean > 0 else -1


def share(hits: Iterator[bool]) -> float:
    found = list(hits)
    return sum(found) / len(found) if found else 0.0


async def hear(data: MarketData, symbol: str, day: date, as_of: datetime) -> Case:
    claims: list[Claim] = []
    heard = set()
    for expert in ExpertType:
        of_the_day = (day,) if expert is ExpertType.TECHNICAL_ANALYST else ()
        service = ResearchContainer(data).service(expert)
        try:
            found = await service.run(symbol, *of_the_day, as_of=as_of, locale="en-US")
        except AppError:
            continue
        told = found if isinstance(found, dict) else found.model_dump(mode="json")
        claims += [Claim.model_validate(claim) for claim in told["claims"]]
        heard.add(expert)
    return Case(symbol, day, claims, frozenset(heard))


async def hear_demo() -> list[Case]:
    data = MarketData({Market.DEMO: DemoMarket(seed=1, clock=SystemClock())})
    days = [day + timedelta(days=n) for day in DEMO_DAYS for n in (0, 1)]
    return [
        await hear(data, f"9000{number:02}.DEMO", day, datetime.combine(day, time_of_day(12), UTC))
        for number in range(1, 13)
        for day in days
    ]


async def hear_real(folder: Path) -> list[Case]:
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as prepared:
        symbols = (
            pl.read_csv(folder / real_data.DAILY, columns=["ts_code"])["ts_code"].unique().sort().to_list()
        )
        for choices in [
            *((folder / name,) for name in real_data.AS_THEY_ARE),
            *real_data.prepare(folder, Path(prepared), symbols),
        ]:
            await real_data.bring_in(Path(home), choices)
        data = real_data.container(Path(home)).market_data()
        days = [day - timedelta(days=n) for day in real_data.DAYS[:8] for n in (1, 0)]
        at = {
            day: datetime.combine(day, time_of_day(20), TIME_ZONES[Market.CN]).astimezone(UTC) for day in days
        }
        return [await hear(data, symbol, day, at[day]) for symbol in symbols for day in days]


async def main(folder: str = "") -> None:
    markets = {"demo": await hear_demo()} | ({"real": await hear_real(Path(folder))} if folder else {})
    for market, heard in markets.items():
        cases = [case for case in heard if case.claims]
        print(f"\n{market}, {len(cases)} arguments")
        table = {name: measure(cases, semantics) for name, semantics in SEMANTICS.items()}
        print("| |", " | ".join(table), "|")
        for row in next(iter(table.values())):
            print(f"| {row} |", " | ".join(f"{measured[row]:.3f}" for measured in table.values()), "|")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
