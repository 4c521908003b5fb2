"""The catalyst detective's view of what was published about a company and what it may conclude from it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.modules.research.domain.analyst import Confidence, DimensionAnalysis, Engine, ExpertResult
from moot.modules.research.domain.events import WINDOW_DAYS, Event, Probability, Timeframe, Topic, told
from moot.modules.research.domain.evidence import COUNT, Count
from moot.modules.research.domain.facts import Case
from moot.modules.research.domain.web_context import Reported
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import Grounding

CatalystAssessment = Literal["Positive (正面催化)", "Neutral (中性)", "Negative (负面催化)"]


class CatalystDimension(StrEnum):
    COMPANY = "公司重大事件与动态"
    INDUSTRY = "行业催化与竞争格局"
    SENTIMENT = "市场情绪与机构动向"
    EARNINGS = "财报预期与业绩催化"


TOPICS: Mapping[CatalystDimension, Topic] = {
    CatalystDimension.COMPANY: "company",
    CatalystDimension.INDUSTRY: "industry",
    CatalystDimension.SENTIMENT: "sentiment",
    CatalystDimension.EARNINGS: "earnings",
}
MOST_EVENTS: Mapping[Topic, int] = {"company": 8, "industry": 6, "sentiment": 8, "earnings": 6}


class CatalystContext(Reported):
    """The newest events of each dimension, and the same as texts."""

    window_days: Annotated[int, COUNT]
    company_events_context: str
    industry_catalyst_context: str
    market_sentiment_context: str
    earnings_context: str
    event_count: Count
    positive_count: Count
    negative_count: Count
    events: list[Event]

    def about(self, topic: Topic) -> list[Event]:
        return [event for event in self.events if event.topic == topic]


class Catalyst(BaseModel):
    model_config = ConfigDict(frozen=True)

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


class CatalystDetectiveAgentResult(BaseModel):
    """The detective's answer with its record; for a rubric the `raw_llm_output` is its scorecard."""

    model_config = ConfigDict(frozen=True)

    result: CatalystResult
    raw_llm_output: str
    user_prompt: str
    catalyst_context: CatalystContext
    narrative_report: str
    evidence: list[Evidence]
    engine: Engine
    grounding: Grounding | None = None
    warnings: list[str] = []


def catalyst_context(case: Case, events: Sequence[Event]) -> CatalystContext:
    """`events` are newest first; each dimension keeps its newest."""
    kept = {topic: [e for e in events if e.topic == topic][:most] for topic, most in MOST_EVENTS.items()}
    chosen = [event for of_topic in kept.values() for event in of_topic]
    return CatalystContext(
        stock_name=case.stock_name,
        third_code=case.company.symbol,
        industry=case.industry,
        current_date=case.today,
        window_days=WINDOW_DAYS,
        company_events_context=told(kept["company"], case.locale),
        industry_catalyst_context=told(kept["industry"], case.locale),
        market_sentiment_context=told(kept["sentiment"], case.locale),
        earnings_context=told(kept["earnings"], case.locale),
        all_source_urls=[event.url for event in chosen],
        event_count=len(chosen),
        positive_count=sum(event.points > 0 for event in chosen),
        negative_count=sum(event.points < 0 for event in chosen),
        events=chosen,
    )
