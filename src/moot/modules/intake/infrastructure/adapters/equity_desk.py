"""Equity steps are sessions of the research graph; what a session says becomes a finding."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, ExpertResultItem, ResearchResult
from moot.modules.coordinator.application.report_opening import tell_ruling
from moot.modules.coordinator.application.report_words import Wording
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.results import summarise
from moot.modules.intake.application.intake_state import Errand, Task
from moot.modules.intake.application.report_text import shorten
from moot.modules.intake.domain.question import Citation, Finding, Spent, Step, View
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.claims import lean_of
from moot.shared.domain.errors import AppError, DecisionRejected
from moot.shared.domain.experts import STANCES
from moot.shared.domain.messages import Locale

TRIGGER = "intake"
CAME_TO_NOTHING = ("SESSION_CANCELLED", "ALL_EXPERTS_FAILED")
LONGEST_REASONING, LONGEST_RISK, LONGEST_LINE = 600, 400, 240
FACTS: Mapping[str, tuple[str, ...]] = {
    "valuation_modeler": ("pe_ttm", "pe_percentile", "pb", "peg_ratio", "dv_ratio", "current_price"),
    "financial_auditor": ("roe_ttm", "profit_growth", "revenue_growth", "debt_to_assets"),
    "technical_analyst": ("rsi_value", "volume_ratio", "support", "resistance"),
    "catalyst_detective": ("positive_count", "negative_count"),
}
"""By expert, which of its evidence tells companies apart, the most telling first."""
FEW_EXPERTS, OF_MANY = 2, 2
"""Where more experts than a few are heard, this many facts of each."""


class ResearchGraphDesk:
    def __init__(self, service: ResearchOrchestrationService) -> None:
        self._service = service

    async def research(self, step: Step, task: Task) -> Finding:
        asked = {"symbol": step.symbol or "", "experts": list(step.experts) or EXPERTS, "locale": task.reader}
        try:
            result = await self._result(step, asked, task.errand)
        except AppError as e:
            error, session = e.in_locale(task.reader), str(e.details.get("session_id") or "") or None
            refused = isinstance(e, DecisionRejected)
            return Finding(step_id=step.id, status="failed", error=error, session_id=session, refused=refused)
        return _finding(step, result, task.reader)

    async def _result(self, step: Step, asked: dict[str, Any], errand: Errand) -> ResearchResult:
        """A turn that was interrupted goes on with the session it had begun.

        One that came to nothing before is retried, and keeps what its experts had found.
        """
        by: dict[str, Any] = {
            "trigger_source": TRIGGER,
            "workspace": errand.workspace,
            "requested_by": errand.caller or None,
        }
        if not errand.record:
            return await self._service.execute(asked, **by)
        ask, key = partial(self._service.execute, asked), _key(errand.record, step, asked)
        while True:
            seen: list[Any] = []
            try:
                return await ask(**by, idempotency_key=key, watch=seen.append)
            except AppError as e:
                if seen or e.code not in CAME_TO_NOTHING:
                    raise
                past = UUID(e.details["session_id"])
                ask, key = partial(self._service.retry, past), f"{TRIGGER}:{errand.record}:{past}"


def _key(turn: str, step: Step, asked: dict[str, Any]) -> str:
    """Another plan of the same turn may mean something else by the same step."""
    question = "|".join([step.id, asked["symbol"], *asked["experts"], asked["locale"]])
    return f"{TRIGGER}:{turn}:{hashlib.sha256(question.encode()).hexdigest()[:16]}"


def _finding(step: Step, result: ResearchResult, language: Locale) -> Finding:
    """A question about the field of one or two experts is answered by their figures and views, not by a verdict."""
    say, verdict = Wording(language), None
    ruled = None if 0 < len(step.experts) <= FEW_EXPERTS else result.verdict
    if ruled:
        why = str(ruled["reasoning"]).splitlines()[0]
        verdict = _view(say("report.verdict"), ruled["action"], ruled["confidence"], why, say)
    heard = [item for item in result.expert_results.values() if item.data]
    views = tuple(_opinion(item, say) for item in heard)
    failed = [
        f"{say(f'node.{item.expert_type}')}: {say('report.expert_failed', error=item.error)}"
        for item in result.expert_results.values()
        if item.data is None
    ]
    evidence = {item.expert_type.value: item.data.get("evidence", []) for item in heard if item.data}
    facts = dict(read_facts(evidence, say))
    asked = result.verdict is not None and ruled is None
    figures = " · ".join(say("report.item", name=name, words=value) for name, value in facts.items())
    first = f"**{result.symbol}** · {figures if asked and figures else tell_ruling(result, say)}"
    risks = tuple(_line(risk, LONGEST_RISK) for risk in (ruled["risk_warnings"] if ruled else ()))
    cited = Citation(
        title=SAY("steps.session", symbol=result.symbol).in_locale(language),
        source=f"session:{result.session_id}",
        published_at=result.as_of.isoformat() if result.as_of else None,
    )
    return Finding(
        step_id=step.id,
        status="completed" if result.overall_status == "completed" else "partial",
        text="\n\n".join([first, *_text(result, verdict, views, risks, say)]),
        citations=(cited,),
        session_id=result.session_id or None,
        warnings=(*result.notices, *failed),
        figures={
            SAY("steps.figure.symbol").in_locale(language): result.symbol,
            **({} if asked else _figures(result, say)),
            **{view.who: view.says for view in views},
        },
        facts=facts,
        verdict=verdict,
        views=views,
        risks=risks,
        spent=Spent.model_validate(result.usage.model_dump()),
    )


def _text(
    result: ResearchResult, verdict: View | None, views: Sequence[View], risks: Sequence[str], say: Wording
) -> Iterator[str]:
    if verdict is not None and (outcome := result.debate_outcome):
        yield verdict.why
        theses = {side: outcome[f"{side}_case"]["core_thesis"] for side in ("bull", "bear")}
        sides = {f"**{say(f'report.{side}')}**": thesis for side, thesis in theses.items()}
        yield "\n".join(f"- {say('report.item', name=n, words=_line(told))}" for n, told in sides.items())
    if risks:
        yield "\n".join([f"**{say('report.risk_warnings')}**", *(f"- {risk}" for risk in risks)])
    who = [say("report.about", what=f"**{view.who}**", claim=view.says) for view in views]
    why = [_line(view.why) for view in views]
    told = [f"- {say('report.item', name=n, words=w)}" for n, w in zip(who, why, strict=True)]
    yield "\n".join([f"**{say('report.experts')}**", *told])


def _figures(result: ResearchResult, say: Wording) -> dict[str, str]:
    verdict = result.verdict
    figures = {say("report.verdict"): say.literal(verdict["action"] if verdict else result.verdict_status)}
    if verdict is None:
        return figures
    return figures | {
        say("report.confidence"): f"{verdict['confidence']:.0%}",
        SAY("steps.figure.position").in_locale(say.locale): f"{verdict['position_percent']:.0%}",
    }


def _opinion(item: ExpertResultItem, say: Wording) -> View:
    summary = summarise(item.expert_type, item.data or {})
    who = say(f"node.{item.expert_type}")
    return _view(who, summary.signal, summary.confidence, summary.reasoning, say)


def _view(who: str, signal: str, confidence: float, why: str, say: Wording) -> View:
    return View(
        who=who,
        says=say("report.view", signal=say.literal(signal), confidence=confidence),
        why=_line(why, LONGEST_REASONING),
        leaning=leaning(signal, confidence),
    )


def leaning(signal: str, confidence: float) -> float:
    """How far a signal of an expert speaks for the company, or else a verdict."""
    stance = STANCES.get(signal)
    if stance is None:
        return lean_of(signal, confidence)
    return math.copysign(confidence, stance) if stance else 0.0


def read_facts(
    evidence: Mapping[str, Sequence[Mapping[str, Any]]], say: Wording
) -> Iterator[tuple[str, str]]:
    """Facts by their names, from the `evidence` of each expert."""
    for expert, found in evidence.items():
        known = {str(fact["id"]).partition(".")[2]: fact for fact in found}
        wanted = FACTS.get(expert, ())
        for name in wanted if len(evidence) <= FEW_EXPERTS else wanted[:OF_MANY]:
            if name in known:
                told = SAY(f"answer.fact.{name}").in_locale(say.locale)
                yield told, say.value(known[name]["value"], known[name]["unit"])


def _line(text: str, longest: int = LONGEST_LINE) -> str:
    """One line; the session has the rest."""
    return shorten(" ".join(text.split()), longest)
