"""The macro intelligence officer: how the environment of a company is read by rule."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.application.macro_intelligence.snapshot import (
    FOLDER,
    SAY,
    MacroDimension,
    MacroEnvironment,
    MacroResult,
    MacroSnapshot,
    macro_evidence,
    macro_snapshot,
    trends,
)
from moot.modules.research.application.remit import Remit, judging_each, sources_were_given
from moot.modules.research.domain.events import WINDOW_DAYS, read_events
from moot.modules.research.domain.rubric import Rubric, analyses, narrative, summary, with_extremes
from moot.modules.research.domain.scorecard import Scorecard, load_rules, mark
from moot.modules.research.domain.voice import Voice
from moot.modules.research.domain.web_context import WebSearch
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale

FIGURE_DAYS = 200


def environment_for(scores: Sequence[int]) -> MacroEnvironment:
    """Most dimensions decide, but one that is very bad spoils it."""
    most = len(scores) / 2
    if min(scores) < 20 or sum(score < 40 for score in scores) > most:
        return "Unfavorable (不利)"
    return "Favorable (有利)" if sum(score >= 60 for score in scores) > most else "Neutral (中性)"


def _marks(s: MacroSnapshot, say: Voice) -> Scorecard:
    return mark(load_rules(FOLDER, MacroDimension), s, say)


def _concludes(s: MacroSnapshot, card: Scorecard, say: Voice) -> MacroResult:
    dimensions = analyses(MacroDimension, card, say)
    environment = environment_for([dimension.score for dimension in dimensions])
    say = with_extremes(MacroDimension, card, say)
    view = environment.partition(" ")[0].lower()
    conclusion, risk = say(f"conclusion.{view}"), say(f"risk.{view}")
    return MacroResult(
        macro_environment=environment,
        confidence_score=card.confidence,
        macro_summary=summary(card, say, conclusion),
        dimension_analyses=dimensions,
        key_opportunities=card.pros or [say("no_opportunity")],
        key_risks=card.cons or [say("no_risk")],
        information_sources=s.all_source_urls,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


class MacroIntelligenceService(ExpertService[MacroSnapshot, MacroResult]):
    """Money, policy and the cycle move by the month, an industry's flows by the week."""

    expert = ExpertType.MACRO_INTELLIGENCE
    rubric = Rubric(SAY, _marks, _concludes)
    remit = Remit(
        FOLDER,
        judging_each(MacroDimension, MacroResult),
        shows=("stock_name", "third_code", "industry", "current_date", "all_source_urls"),
        quotes=("monetary_context", "policy_context", "economic_context", "industry_context"),
        checks=sources_were_given,
    )
    searches = (
        WebSearch("monetary", "monetary_context", 6, "oneMonth"),
        WebSearch("policy", "policy_context", 6, "oneMonth"),
        WebSearch("economy", "economic_context", 6, "oneMonth"),
        WebSearch("industry", "industry_context", 6, "oneWeek"),
    )

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        by_series = trends(await self._facts.macro(case.symbol, FIGURE_DAYS, as_of=as_of))
        news = await self._facts.news(case.symbol, WINDOW_DAYS, as_of=as_of)
        policies = read_events([item for item in news if item.kind == "policy"], case.today, locale)
        snapshot, read = await self._search(case, macro_snapshot(case, by_series, policies))
        if not snapshot.all_source_urls:
            raise self._refusal(case, "no_macro", days=FIGURE_DAYS)
        return await self._report(case, snapshot, [*macro_evidence(snapshot, by_series), *read])


SERVICE = MacroIntelligenceService
