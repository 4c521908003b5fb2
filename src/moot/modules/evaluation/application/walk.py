"""A walk through past months: what the desk would have said of each company, and what came of it."""

from collections.abc import Callable, Sequence
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
)
from moot.modules.evaluation.domain.outcomes import compare, evening_of, find_month_ends, trade
from moot.shared.domain.symbol import Market, Symbol

AFTER = timedelta(days=400)
"""How far beyond the last moment prices are read: sixty sessions, and as long as most suspensions last."""

Watch = Callable[[int], None]


@dataclass(frozen=True)
class Plan:
    """Whom to look at, and on which evenings: the last session of each month."""

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
    """`observations` of every company on every day; those before `tune_until` are for tuning, no others."""

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
        fading = [kind.name for kind in list_fading(self.tuning)]
        body = {**self.model_dump(), "figures": figures, "fading": fading}
        return to_json(body).decode() + "\n"


class WalkService:
    def __init__(self, panel: Panel, prices: Prices, now: datetime) -> None:
        self._panel, self._prices, self._now = panel, prices, now

    async def plan(self, symbols: Sequence[Symbol], start: date, end: date, tune_until: date) -> Plan:
        """From the month of `start` to that of `end`; without symbols, everybody there are bars of."""
        first, last = start.replace(day=1), _last_of_month(end)
        chosen = tuple(dict.fromkeys(symbols)) or tuple(await self._prices.list_symbols(first, last))
        markets = sorted({symbol.market for symbol in chosen})
        if not chosen:
            raise NothingToWalk(SAY("no_symbols"))
        if len(markets) > 1:
            raise NothingToWalk(SAY("several_markets", markets=markets))
        ends = find_month_ends(self._prices.list_sessions(markets[0], first, last))
        days = tuple(day for day in ends if evening_of(day, markets[0]) <= self._now)
        if not days:
            raise NothingToWalk(SAY("no_months", start=first, end=last))
        return Plan(chosen, days, tune_until)

    async def walk(self, plan: Plan, watch: Watch = lambda _: None) -> Walk:
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
        self, plan: Plan, said: dict[tuple[date, Symbol], Deliberation]
    ) -> list[Observation]:
        """Prices are read when everybody has spoken."""
        span = plan.days[0], plan.days[-1] + AFTER
        sessions = self._prices.list_sessions(plan.market, *span)
        bars = {symbol: await self._prices.read_bars(symbol, *span) for symbol in plan.symbols}
        cited = {claim.figure for one in said.values() for claim in one.claims}
        seen = []
        for day in plan.days:
            came = compare({symbol.text: trade(bars[symbol], sessions, day) for symbol in plan.symbols})
            for symbol in plan.symbols:
                kept = _keep_figures(said[day, symbol], cited)
                seen.append(Observation(symbol=symbol.text, day=day, said=kept, came=came[symbol.text]))
        return seen


def _keep_figures(said: Deliberation, cited: set[str]) -> Deliberation:
    """Those that some claim of the walk rests on first."""
    return said.model_copy(update={"figures": {k: v for k, v in said.figures.items() if k in cited}})


def _last_of_month(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
