"""The valuation modeler of many shares: its own snapshot of each, taken from what was read of all at once."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

from moot.modules.research.application.scope import Scope
from moot.modules.research.application.valuation_modeler import (
    HISTORY_DAYS,
    REPORTS_READ,
    YIELD_DAYS,
    find_bond,
)
from moot.modules.research.application.valuation_modeler.appraisal import Material, valuation_snapshot
from moot.modules.research.application.valuation_modeler.snapshot import ValuationSnapshot
from moot.modules.research.domain.facts import MarketFacts
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import FinancialReport, MacroObservation
from moot.shared.domain.symbol import Symbol


class Days(Sequence[Any]):
    """A table as a sequence of its rows, each made when it is looked at: a share has hundreds, of which three are."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, place: Any) -> Any:
        return SimpleNamespace(**{name: column[place] for name, column in self.columns.items()})


@dataclass(frozen=True)
class Tabled(Material):
    """Material whose history is a table."""

    history: Days

    def list_values(self, field: str) -> Sequence[float | None]:
        return self.history.columns[field]


async def value_many(facts: MarketFacts, scope: Scope) -> dict[str, ValuationSnapshot]:
    valuations = await scope.read_valuations(HISTORY_DAYS)
    reports = await scope.read_filed(FinancialReport)
    peers = await scope.find_cross_sections()
    materials = {
        share: Tabled(
            Days(valuations[share.text]),
            reports[share.text][:REPORTS_READ],
            peers.get(share.text),
            await scope.read_once(share.market, partial(_find_bond, facts, share, scope.as_of)),
        )
        for share in scope.shares
        if share.text in valuations and share.text in reports
    }
    return await asyncio.to_thread(_take_snapshots, scope, materials)


async def _find_bond(facts: MarketFacts, share: Symbol, as_of: datetime) -> MacroObservation | None:
    """The same for all shares of a market."""
    with suppress(Unavailable):
        return find_bond(await facts.macro(share, YIELD_DAYS, as_of=as_of))
    return None


def _take_snapshots(scope: Scope, materials: Mapping[Symbol, Material]) -> dict[str, ValuationSnapshot]:
    return {
        share.text: valuation_snapshot(scope.open_case(share), material)
        for share, material in materials.items()
    }
