"""The technical analyst of many shares: their bars in panels, a row of what its rules measure for each."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moot.modules.research.application.scope import Scope
from moot.modules.research.application.technical_analyst import MIN_BARS_REQUIRED, read_indexes
from moot.modules.research.application.technical_analyst.derived import Derived, stand_among, stand_beside
from moot.modules.research.domain.facts import MarketFacts
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import IndexBar
from moot.shared.domain.symbol import Symbol

SERIES = ("open", "high", "low", "close", "volume", "amount")
AT_ONCE = 200
"""Shares in a panel: so many of them fit into the processor's cache."""
LONGEST_WINDOW = 61
"""Days that returns are compared over, and the one they begin from."""

UNREAD = {"calculated_support_levels", "calculated_resistance_levels", "pattern_days"}
"""What no rule goes by."""

Measure = Callable[..., Mapping[str, Sequence[Any]]]
"""Takes `SERIES` of shares with equally many bars, a row a share; gives columns, a value a share."""


class Chart(SimpleNamespace, Derived):
    """What the rules measure of one share; `days` are the last it was traded on."""

    days: NDArray[np.datetime64]
    trade = "company"
    market_excess_60d: float | None = None
    industry_excess_60d: float | None = None
    peer_excess_3m: float | None = None


def chart_many(traded: pl.DataFrame, measure: Measure) -> dict[str, Chart]:
    """Of each share with enough bars; `traded` is in the order of symbols and days."""
    charts: dict[str, Chart] = {}
    days = traded["trade_date"].to_numpy()
    for symbols, places, panel in _cut_panels(traded):
        columns = {name: column for name, column in measure(*panel).items() if name not in UNREAD}
        for symbol, place, values in zip(symbols, places, zip(*columns.values(), strict=True), strict=True):
            chart = charts[symbol] = Chart(**dict(zip(columns, values, strict=True)))
            chart.days = days[place[0] : place[-1] + 1][-LONGEST_WINDOW:]
    return charts


def _cut_panels(
    traded: pl.DataFrame,
) -> Iterator[tuple[list[str], NDArray[np.intp], list[NDArray[np.float64]]]]:
    """Shares with equally many bars side by side: who they are, where their bars are, and these."""
    runs = traded["symbol"].rle().struct
    symbols, lengths = runs.field("value").to_numpy(), runs.field("len").to_numpy().astype(np.intp)
    starts = np.cumsum(lengths) - lengths
    series = [traded[name].to_numpy() for name in SERIES]
    for length in np.unique(lengths[lengths >= MIN_BARS_REQUIRED]):
        alike = np.flatnonzero(lengths == length)
        for begin in range(0, len(alike), AT_ONCE):
            chosen = alike[begin : begin + AT_ONCE]
            places = starts[chosen, np.newaxis] + np.arange(length)
            yield symbols[chosen].tolist(), places, [each[places] for each in series]


async def chart_beside(facts: MarketFacts, measure: Measure, scope: Scope) -> dict[str, Chart]:
    """Beside the indexes that the expert would put a share beside, or among its peers."""
    charts = await asyncio.to_thread(chart_many, scope.traded, measure)
    for symbol, chart in charts.items():
        share, days, industry = Symbol.parse(symbol), chart.days.tolist(), scope.companies[symbol].industry
        span = days[0], days[-1]
        read = partial(_read_by_industry, facts, share, *span, scope.as_of)
        indexes = await scope.read_once((share.market, *span), read)
        near = [*indexes.get(None, ()), *indexes.get(industry, ())]
        beside, origins = stand_beside(days, near, industry, vars(chart))
        if not origins:
            beside |= stand_among((await scope.find_cross_sections()).get(symbol))
        vars(chart).update(beside)
    return charts


async def _read_by_industry(
    facts: MarketFacts, share: Symbol, start: date, end: date, as_of: datetime
) -> Mapping[str | None, Sequence[IndexBar]]:
    """Those of the whole market under None; the same for all shares traded on the same days."""
    by_industry: dict[str | None, list[IndexBar]] = {}
    with suppress(Unavailable):
        for bar in await read_indexes(facts, share, start, end, as_of):
            by_industry.setdefault(bar.industry, []).append(bar)
    return by_industry
