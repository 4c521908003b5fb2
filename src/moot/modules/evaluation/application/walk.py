"""A walk through past months: what the desk would have said of each company, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property

from pydantic_core import to_json

from moot.modules.evaluation.application.figures import Figures, Span, list_fading
from moot.modules.evaluation.domain.observation import (
    SAY,
    Deliberation,
    Frozen,
    NothingToWalk,
    Observation,
    Panel,
    Prices,
    compare,
    evening_of,
    find_month_ends,
    trade,
)
from moot.shared.domain.symbol import Market, Symbol

AFTER = timedelta(days=400)
"""How far beyond the last moment prices are read: sixty sessions, and as long as most suspensions last."""


@dataclass(frozen=True)
class Plan:
    """Whom to look at, and on which evenings; those before `tune_until` are for tuning."""

    symbols: tuple[Symbol, ...]
    days: tuple[date, ...]
    tune_until: date

    @property
    def market(self) -> Market:
        return self.symbols[0].market

    @property
    def steps(self) -> int:
        return len(self.symbols) * len(self.days)


class Walk(Frozen):
    """`observations` are of every company on every day."""

    market: Market
    symbols: list[str]
    days: list[date]
    tune_until: date
    observations: list[Observation]

    @cached_property
    def tuning(self) -> Figures:
        before = [seen for seen in self.observations if seen.day < self.tune_until]
        return Span(before, self.tune_until).count()

    @cached_property
    def reporting(self) -> Figures:
        return Span([seen for seen in self.observations if seen.day >= self.tune_until], date.max).count()

    def to_json(self) -> str:
        """Everything, with the figures and the names of kinds that should lose weight."""
        figures = {"tuning": self.tuning.model_dump(), "reporting": self.reporting.model_dump()}
        fading = [row.name for row in list_fading(self.tuning)]
        return to_json({**self.model_dump(), "figures": figures, "fading": fading}).decode() + "\n"


class WalkService:
    def __init__(self, panel: Panel, prices: Prices, now: datetime) -> None:
        self._panel, self._prices, self._now = panel, prices, now

    async def plan(self, symbols: Sequence[Symbol], start: date, end: date, tune_until: date) -> Plan:
        """The last session of each month from that of `start` to that of `end`, as far as they are over; without
        symbols, everybody there are bars of.
        """
        first, last = start.replace(day=1), (end.replace(day=28) + timedelta(days=4)).replace(day=1)
        last -= timedelta(days=1)
        chosen = tuple(dict.fromkeys(symbols)) or tuple(await self._prices.list_symbols(first, last))
        markets = sorted({symbol.market for symbol in chosen})
        if len(markets) != 1:
            said = SAY("several_markets", markets=markets) if markets else SAY("no_symbols")
            raise NothingToWalk(said)
        ends = find_month_ends(self._prices.list_sessions(markets[0], first, last))
        days = tuple(day for day in ends if evening_of(day, markets[0]) <= self._now)
        if not days:
            raise NothingToWalk(SAY("no_months", start=first, end=last))
        return Plan(chosen, days, tune_until)

    async def walk(self, plan: Plan, watch: Callable[[int], None] = lambda _: None) -> Walk:
        said: dict[tuple[date, Symbol], Deliberation] = {}
        for symbol in plan.symbols:
            for day in plan.days:
                said[day, symbol] = await self._panel.deliberate(symbol, evening_of(day, plan.market))
                watch(len(said))
        return Walk(
            market=plan.market,
            symbols=[symbol.text for symbol in plan.symbols],
            days=list(plan.days),
            tune_until=plan.tune_until,
            observations=await self._look_back(plan, said),
        )

    async def _look_back(
        self, plan: Plan, said: Mapping[tuple[date, Symbol], Deliberation]
    ) -> list[Observation]:
        """Prices are read when everybody has spoken."""
        span = plan.days[0], plan.days[-1] + AFTER
        sessions = self._prices.list_sessions(plan.market, *span)
        bars = {symbol.text: await self._prices.read_bars(symbol, *span) for symbol in plan.symbols}
        came = {day: compare({name: trade(bars[name], sessions, day) for name in bars}) for day in plan.days}
        return [
            Observation(symbol=symbol.text, day=day, said=said[day, symbol], came=came[day][symbol.text])
            for day in plan.days
            for symbol in plan.symbols
        ]
