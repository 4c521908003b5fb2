"""The desk's own panel, asked by rule: nothing is stored, and no model is asked."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import fsum
from typing import Any

from moot.modules.coordinator.application.dtos.research_dtos import OPTIONS
from moot.modules.coordinator.application.results import summarise
from moot.modules.debate.application.debate_service import DebateInput, DebateOutcomeDTO, ExpertSummary
from moot.modules.debate.container import DebateContainer
from moot.modules.evaluation.domain.observation import Deliberation, Said, View
from moot.modules.judge.application.judge_service import JudgeInput, VerdictAbstained
from moot.modules.judge.container import JudgeContainer
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import STANCES, ExpertType
from moot.shared.domain.symbol import Symbol

Results = Mapping[ExpertType, dict[str, Any]]
LOCALE = "en-US"
ALL = "all"


class RubricPanel:
    def __init__(self, research: ResearchContainer, debate: DebateContainer, judge: JudgeContainer) -> None:
        self._research, self._debate, self._judge = research, debate, judge

    async def deliberate(self, symbol: Symbol, as_of: datetime) -> Deliberation:
        results, failures = await self._ask(symbol, as_of)
        views = {expert.value: _view(expert, result) for expert, result in results.items()}
        if not results:
            return Deliberation(views=views, failures=failures)
        outcome = await self._argue(symbol, as_of, results)
        leans = {ALL: _lean(outcome)}
        for name, heard in _list_hearings(results):
            again = outcome if heard == results else await self._argue(symbol, as_of, heard)
            leans[name] = _lean(again)
        numbers = {e.id: float(e.value) for e in outcome.evidence if isinstance(e.value, int | float)}
        return Deliberation(
            views=views,
            failures=failures,
            claims=[_said(claim, outcome, numbers) for claim in outcome.argument.claims],
            leans=leans,
            unargued=fsum(view.stance for view in views.values()) / len(views),
            figures=numbers,
            **await self._rule(outcome, as_of),
        )

    async def _ask(
        self, symbol: Symbol, as_of: datetime
    ) -> tuple[dict[ExpertType, dict[str, Any]], dict[str, str]]:
        results: dict[ExpertType, dict[str, Any]] = {}
        failures: dict[str, str] = {}
        for expert in ExpertType:
            asked = OPTIONS[expert]().arguments(symbol.text, as_of)
            try:
                found = await self._research.service(expert).run(**asked, as_of=as_of, locale=LOCALE)
            except AppError as e:
                failures[expert.value] = e.code
                continue
            results[expert] = found if isinstance(found, dict) else found.model_dump(mode="json")
        return results, failures

    async def _argue(self, symbol: Symbol, as_of: datetime, results: Results) -> DebateOutcomeDTO:
        told = {expert.value: summarise(expert, result) for expert, result in results.items()}
        debate = DebateInput(
            symbol=symbol.text,
            expert_summaries={name: ExpertSummary(**said._asdict()) for name, said in told.items()},
            evidence=[Evidence.model_validate(item) for r in results.values() for item in r["evidence"]],
            claims=[Claim.model_validate(claim) for r in results.values() for claim in r["claims"]],
            locale=LOCALE,
            as_of=as_of,
        )
        return await self._debate.debate_service().run(debate)

    async def _rule(self, outcome: DebateOutcomeDTO, as_of: datetime) -> dict[str, Any]:
        try:
            verdict = await self._judge.judge_service().run(_judge_input(outcome, as_of))
        except VerdictAbstained as e:
            return {"reason": e.code}
        return {"action": verdict.action, "confidence": verdict.confidence}


def _judge_input(outcome: DebateOutcomeDTO, as_of: datetime) -> JudgeInput:
    return JudgeInput(
        symbol=outcome.symbol,
        direction=outcome.direction,
        confidence=outcome.confidence,
        bull_thesis=outcome.bull_case.core_thesis,
        bear_thesis=outcome.bear_case.core_thesis,
        risk_factors=[row.risk for row in outcome.risk_matrix],
        key_disagreements=outcome.key_disagreements,
        conflict_resolution=outcome.conflict_resolution,
        evidence=outcome.evidence,
        argument=outcome.argument,
        experts_asked=len(ExpertType),
        experts_heard=len(outcome.experts),
        locale=LOCALE,
        as_of=as_of,
    )


def _list_hearings(results: Results) -> Iterable[tuple[str, Results]]:
    """Each expert alone, and all but one: who had nothing to say is not missed."""
    for expert in ExpertType:
        alone = {expert: results[expert]} if expert in results else {}
        others = {other: result for other, result in results.items() if other is not expert}
        for name, heard in ((f"only {expert}", alone), (f"without {expert}", others)):
            if heard:
                yield name, heard


def _lean(outcome: DebateOutcomeDTO) -> float:
    """Of the argument itself; what a silent expert might have said takes nothing from it here."""
    return round(2 * outcome.argument.motion - 1, 6)


def _view(expert: ExpertType, result: dict[str, Any]) -> View:
    said = summarise(expert, result)
    return View(signal=said.signal, stance=STANCES[said.signal], confidence=said.confidence)


def _said(claim: Claim, outcome: DebateOutcomeDTO, numbers: Mapping[str, float]) -> Said:
    return Said(
        id=claim.id,
        kind=claim.kind,
        pull=claim.pull,
        settled=round(outcome.argument.strengths[claim.id], 6),
        horizon=claim.horizon,
        figure=claim.evidence[0],
        value=numbers.get(claim.evidence[0]),
    )
