"""The macro intelligence officer: how the environment of a company is read by rule."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
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
from moot.modules.research.domain.scorecard import Rule, Scorecard, bands, mark
from moot.modules.research.domain.voice import Voice
from moot.modules.research.domain.web_context import WebSearch
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale

FIGURE_DAYS = 200

MONETARY = MacroDimension.MONETARY
POLICY = MacroDimension.POLICY
ECONOMY = MacroDimension.ECONOMY
INDUSTRY = MacroDimension.INDUSTRY

RULES: tuple[Rule[MacroSnapshot], ...] = (
    Rule("m2", "m2_yoy", bands((7, -1, "tight"), (9, 0, "normal"), rest=(1, "ample")), MONETARY),
    Rule(
        "m2_change",
        "m2_yoy_change",
        bands((-0.3, -1, "slowing"), (0.3, 0, "steady"), rest=(1, "quickening")),
        MONETARY,
    ),
    Rule("lpr", "lpr_1y_change", bands((-0.01, 2, "cut"), (0.01, 0, "held"), rest=(-2, "raised")), MONETARY),
    Rule("cgb", "cgb_10y_change", bands((-0.1, 1, "down"), (0.1, 0, "steady"), rest=(-1, "up")), MONETARY),
    Rule(
        "policy",
        "policy_balance",
        bands(
            (-0.6, -2, "restrictive"),
            (-0.2, -1, "leaning_against"),
            (0.2, 0, "mixed"),
            (0.6, 1, "leaning_for"),
            rest=(2, "supportive"),
        ),
        POLICY,
    ),
    Rule(
        "pmi",
        "pmi_manufacturing",
        bands((49, -2, "contracting"), (50, -1, "soft"), (51, 1, "expanding"), rest=(2, "brisk")),
        ECONOMY,
    ),
    Rule(
        "pmi_change",
        "pmi_manufacturing_change",
        bands((-0.5, -1, "down"), (0.5, 0, "steady"), rest=(1, "up")),
        ECONOMY,
    ),
    Rule("cpi", "cpi_yoy", bands((0.2, -1, "deflation"), (3, 1, "mild"), rest=(-1, "hot")), ECONOMY),
    Rule(
        "ppi",
        "ppi_yoy",
        bands((-1, -1, "falling"), (0, 0, "soft"), (4, 1, "firm"), rest=(-1, "hot")),
        ECONOMY,
    ),
    Rule(
        "prosperity",
        "industry_prosperity",
        bands((42, -3, "poor"), (50, -1, "weak"), (58, 1, "good"), rest=(3, "strong")),
        INDUSTRY,
    ),
    Rule(
        "prosperity_change",
        "industry_prosperity_change",
        bands((-1, -1, "down"), (1, 0, "steady"), rest=(1, "up")),
        INDUSTRY,
    ),
)


def environment_for(scores: Sequence[int]) -> MacroEnvironment:
    """Most dimensions decide, but one that is very bad spoils it."""
    most = len(scores) / 2
    if min(scores) < 20 or sum(score < 40 for score in scores) > most:
        return "Unfavorable (不利)"
    return "Favorable (有利)" if sum(score >= 60 for score in scores) > most else "Neutral (中性)"


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
    rubric = Rubric(SAY, partial(mark, RULES), _concludes)
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
