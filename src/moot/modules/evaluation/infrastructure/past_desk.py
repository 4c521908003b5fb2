"""The desk's own panel, asked by rule as a session asks it: nothing is stored, and no model is asked. And the prices
of the past, as its data has them by now.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from math import fsum
from typing import Any

from moot.modules.coordinator.application.results import summarise
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.evaluation.domain.observation import ARGUED, UNARGUED, Deliberation, Said, View
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.upkeep import MarketDataUpkeep
from moot.shared.domain.claims import SIGNS, Claim
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.experts import STANCES, ExpertType
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.infrastructure.execution_context import ExecutionContext

Found = dict[str, Any]
JUDGE = "judge"
BARS = "bars"


class RubricPanel:
    def __init__(self, coordinator: CoordinatorContainer) -> None:
        self._experts, self._debate, self._judge = coordinator.gateways()

    async def deliberate(self, symbol: Symbol, as_of: datetime) -> Deliberation:
        with ExecutionContext(
            as_of=as_of, locale="en-US", experts=tuple(ExpertType), analyst="rubric"
        ).active():
            return await self._deliberate(symbol.text)

    async def _deliberate(self, symbol: str) -> Deliberation:
        results, failures = await self._ask(symbol)
        if not results:
            return Deliberation(views={}, failures=failures)
        views = {name: _read_view(ExpertType(name), result) for name, result in results.items()}
        outcome = await self._debate.run_debate(symbol, results)
        leans = {ARGUED: _lean(outcome), UNARGUED: fsum(view.stance for view in views.values()) / len(views)}
        for hearing, heard in _list_hearings(results):
            again = outcome if len(heard) == len(results) else await self._debate.run_debate(symbol, heard)
            leans[hearing] = _lean(again)
        try:
            verdict = await self._judge.run_verdict(symbol, outcome)
            action, confidence = verdict["action"], verdict["confidence"]
            views[JUDGE] = View(signal=action, stance=SIGNS[action], confidence=confidence)
        except AppError as e:
            failures[JUDGE] = e.code
        return Deliberation(views=views, failures=failures, claims=_read_claims(outcome), leans=leans)

    async def _ask(self, symbol: str) -> tuple[Found, dict[str, str]]:
        results: Found = {}
        failures: dict[str, str] = {}
        for expert in ExpertType:
            try:
                results[expert.value] = await self._experts.run_expert(expert, symbol)
            except AppError as e:
                failures[expert.value] = e.code
        return results, failures


def _list_hearings(results: Found) -> Iterable[tuple[str, Found]]:
    """Each expert alone, and all but one: who had nothing to say is not missed."""
    for expert in ExpertType:
        alone = {name: result for name, result in results.items() if name == expert}
        others = {name: result for name, result in results.items() if name != expert}
        yield from (
            (how, who) for how, who in ((f"only {expert}", alone), (f"without {expert}", others)) if who
        )


def _lean(outcome: Found) -> float:
    """Of the argument itself; what a silent expert might have said takes nothing from it here."""
    return round(2 * float(outcome["argument"]["motion"]) - 1, 6)


def _read_view(expert: ExpertType, result: Found) -> View:
    said = summarise(expert, result)
    return View(signal=said.signal, stance=STANCES[said.signal], confidence=said.confidence)


def _read_claims(outcome: Found) -> list[Said]:
    values = {item["id"]: item["value"] for item in outcome["evidence"] if not isinstance(item["value"], str)}
    return [
        Said(
            **claim.model_dump(include={"id", "kind", "horizon"}),
            pull=claim.pull,
            settled=round(outcome["argument"]["strengths"][claim.id], 6),
            value=values.get(claim.evidence[0]),
        )
        for claim in map(Claim.model_validate, outcome["argument"]["claims"])
    ]


class PastPrices:
    def __init__(self, market_data: MarketData, upkeep: MarketDataUpkeep, now: datetime) -> None:
        self._market_data, self._upkeep, self._now = market_data, upkeep, now

    async def list_symbols(self, start: date, end: date) -> list[Symbol]:
        kept = [held.coverage for held in await self._upkeep.holdings() if held.coverage.dataset == BARS]
        spans = {one.subject: one.span for one in kept}
        inside = [
            name for name, (first, last) in spans.items() if first and last and first <= end and last >= start
        ]
        return sorted(map(Symbol.parse, inside), key=str)

    def list_sessions(self, market: Market, start: date, end: date) -> list[date]:
        return self._market_data.calendar_of(market).within(start, end)

    async def read_bars(self, symbol: Symbol, start: date, end: date) -> Sequence[DailyBar]:
        try:
            return await self._market_data.daily_bars(symbol, start, end, as_of=self._now, adjusted=False)
        except Unavailable:
            return []
