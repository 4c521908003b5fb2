"""The catalyst detective: what was published about a company, weighed by rule: what kind, which way, how fresh."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from moot.modules.research.application.expert_service import Reported, ReportedService, WebSearch, judge_each
from moot.modules.research.domain.events import (
    DOUBT,
    WINDOW_DAYS,
    Event,
    Probability,
    Timeframe,
    event_evidence,
    read_events,
    tell_events,
)
from moot.modules.research.domain.evidence import Confidence, DimensionAnalysis, Engine, ExpertResult, cite
from moot.modules.research.domain.facts import COMMON, Case
from moot.modules.research.domain.rubric import Finding, Scorecard, Voice, dimension_name
from moot.shared.domain import units
from moot.shared.domain.claims import Claim
from moot.shared.domain.datasets import DataUntil
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import Catalogue, Locale

CatalystAssessment = Literal["Positive (正面催化)", "Neutral (中性)", "Negative (负面催化)"]


class CatalystDimension(StrEnum):
    COMPANY = "公司重大事件与动态"
    INDUSTRY = "行业催化与竞争格局"
    SENTIMENT = "市场情绪与机构动向"
    EARNINGS = "财报预期与业绩催化"


SEARCHES = (
    WebSearch("company", "company_events_context", 8, "oneWeek"),
    WebSearch("industry", "industry_catalyst_context", 6, "oneMonth"),
    WebSearch("sentiment", "market_sentiment_context", 8, "oneWeek"),
    WebSearch("earnings", "earnings_context", 6, "oneMonth"),
)
"""By topic: where its events are tell_events, and how many at most, be they known or found."""


class CatalystContext(Reported):
    """The newest events of each dimension, and the same as texts."""

    window_days: units.Count
    company_events_context: str
    industry_catalyst_context: str
    market_sentiment_context: str
    earnings_context: str
    event_count: units.Count
    positive_count: units.Count
    negative_count: units.Count
    events: list[Event]


class Catalyst(BaseModel, frozen=True):
    event: str
    expected_impact: str = ""
    timeframe: Timeframe
    probability: Probability


class CatalystResult(ExpertResult):
    catalyst_assessment: CatalystAssessment
    confidence_score: Confidence
    catalyst_summary: str
    dimension_analyses: list[DimensionAnalysis] = Field(min_length=4, max_length=4)
    positive_catalysts: list[Catalyst] = Field(min_length=1)
    negative_catalysts: list[Catalyst] = Field(min_length=1)
    information_sources: list[str] = Field(min_length=1)


class CatalystDetectiveAgentResult(BaseModel, frozen=True):
    """The detective's answer with its record; for a rubric the `raw_llm_output` is its scorecard."""

    result: CatalystResult
    raw_llm_output: str
    user_prompt: str
    catalyst_context: CatalystContext
    narrative_report: str
    evidence: list[Evidence]
    claims: list[Claim] = []
    engine: Engine
    grounding: Grounding | None = None
    warnings: list[str] = []
    data_until: DataUntil = {}


def catalyst_context(case: Case, events: Sequence[Event]) -> CatalystContext:
    """`events` are newest first; each dimension keeps what is grave, then its newest."""
    events = sorted(events, key=lambda event: not event.grave)
    kept = {s.context: [e for e in events if e.topic == s.dimension][: s.count] for s in SEARCHES}
    chosen = [event for of_topic in kept.values() for event in of_topic]
    return CatalystContext(
        stock_name=case.stock_name,
        third_code=case.company.symbol,
        industry=case.industry,
        current_date=case.today,
        window_days=WINDOW_DAYS,
        **{context: tell_events(of_topic, case.locale) for context, of_topic in kept.items()},
        all_source_urls=[event.url for event in chosen],
        event_count=len(chosen),
        positive_count=sum(event.points > 0 for event in chosen),
        negative_count=sum(event.points < 0 for event in chosen),
        events=chosen,
    )


FOLDER = Path(__file__).parent
SILENCE_WEIGHT = 2.0
"""What a dimension without any event is missing."""
MOST_CATALYSTS = 5
MOST_TOLD = 6
"""A title is as long as two findings of another expert."""
ASSESSMENTS: Mapping[int, CatalystAssessment] = {
    1: "Positive (正面催化)",
    0: "Neutral (中性)",
    -1: "Negative (负面催化)",
}


def _findings(context: CatalystContext, dimension: CatalystDimension, say: Voice) -> list[Finding]:
    name = dimension_name(dimension, say)
    events = [event for event in context.events if event.topic == dimension.name.lower()]
    if not events:
        return [Finding(name, say("no_results"), None, SILENCE_WEIGHT, dimension)]
    found = []
    for event in events:
        place = f"event.{context.events.index(event) + 1}"
        told = (place, event.category, (place,), True, say("event_brief", title=event.title))
        found.append(Finding(name, _tell(event, say), event.points, event.weight, dimension, *told))
    return found


def _tell(event: Event, say: Voice) -> str:
    impact, title = say(f"impact.{event.category}"), event.titles[say.locale]
    return say("event", published=event.published, title=title, impact=impact)


def _catalysts(side: Literal["positive", "negative"], events: list[Event], say: Voice) -> list[Catalyst]:
    """The weightiest first. A side may be silent; that is said, and no event is made up for it."""
    if not events:
        said = {"event": say(f"none_{side}"), "expected_impact": say("none_impact")}
        return [Catalyst(**said, timeframe="近期", probability="低")]
    weightiest = sorted(events, key=lambda event: -abs(event.points))
    return [
        Catalyst(
            event=say("event_name", published=event.published, title=event.title),
            expected_impact=say(f"impact.{event.category}"),
            timeframe=event.timeframe,
            probability=event.probability,
        )
        for event in weightiest[:MOST_CATALYSTS]
    ]


def _lead(context: CatalystContext, side: int) -> str | None:
    """The weightiest event on the side of the assessment, if any points anywhere."""
    pointing = [event for event in context.events if event.points]
    pointing.sort(key=lambda event: -event.points * side if side else -abs(event.points))
    return pointing[0].title if pointing else None


class CatalystDetectiveService(ReportedService[CatalystContext, CatalystResult]):
    expert = ExpertType.CATALYST_DETECTIVE
    folder, texts = FOLDER, Catalogue(COMMON, FOLDER)
    answer = judge_each(CatalystDimension, CatalystResult)
    searches, quotes = SEARCHES, [search.context for search in SEARCHES]

    def mark(self, snapshot: CatalystContext, say: Voice) -> Scorecard:
        findings = [f for dimension in CatalystDimension for f in _findings(snapshot, dimension, say)]
        return Scorecard(tuple(findings), doubt=DOUBT)

    def tell(self, snapshot: CatalystContext, say: Voice, finding: Finding) -> str:
        return _tell(snapshot.events[int(finding.id.rpartition(".")[2]) - 1], say)

    def conclude(self, snapshot: CatalystContext, card: Scorecard, say: Voice) -> CatalystResult:
        assessment = ASSESSMENTS[card.side]
        lead = _lead(snapshot, card.side)
        view, say = assessment.partition(" ")[0].lower() if lead else "silent", say.also(lead=lead)
        good = [event for event in snapshot.events if event.points > 0]
        bad = [event for event in snapshot.events if event.points < 0]
        conclusion, risk = say(f"conclusion.{view}"), say(f"risk.{view}")
        return CatalystResult(
            catalyst_assessment=assessment,
            confidence_score=card.confidence,
            catalyst_summary=card.summarise(say, conclusion, card.side),
            dimension_analyses=card.grade(CatalystDimension, say),
            positive_catalysts=_catalysts("positive", good, say),
            negative_catalysts=_catalysts("negative", bad, say),
            information_sources=snapshot.all_source_urls,
            narrative_report=card.narrate(
                say, view=say(f"view.{view}"), stance=card.side, risk=risk, most=MOST_TOLD
            ),
        )

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> CatalystDetectiveAgentResult:
        case = await self._open(symbol, as_of, locale)
        news = await self._spare(self._facts.news(case.symbol, WINDOW_DAYS, as_of=as_of))
        of_interest = [item for item in news if item.kind != "policy" or item.industry]
        events = read_events(of_interest, case)
        context, read = await self._search(case, catalyst_context(case, events))
        if not context.all_source_urls:
            raise self._refusal(case, "no_news", days=WINDOW_DAYS)
        evidence = [
            *(cite(self.expert.prefix, context, events[0]) if events else []),
            *event_evidence(self.expert.prefix, context.events),
            *read,
        ]
        opinion = await self._judge(case, context, evidence)
        return CatalystDetectiveAgentResult(
            result=opinion.result,
            raw_llm_output=opinion.output,
            user_prompt=opinion.input,
            catalyst_context=context,
            narrative_report=opinion.result.narrative_report,
            evidence=evidence,
            claims=list(opinion.claims),
            engine=opinion.engine,
            grounding=opinion.grounding,
            warnings=[*opinion.warnings, *self._remark(case)],
            data_until=dict(self._facts.newest),
        )


SERVICE = CatalystDetectiveService
