"""The catalyst detective: what was published and disclosed about a company, weighed by rule: what kind, which way,
how fresh, what such events did before, and what is to come.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from moot.modules.research.application.catalyst_detective.context import (
    SEARCHES,
    CatalystContext,
    catalyst_context,
    cite_context,
    list_events,
)
from moot.modules.research.application.catalyst_detective.disclosed import (
    HISTORY_DAYS,
    SAY,
    Disclosed,
    count_once,
    date_kinds,
    gather,
    list_occurrences,
    measure,
    name_period,
    read_facts,
)
from moot.modules.research.application.expert_service import ReportedService, judge_each
from moot.modules.research.domain.event_study import Study, Tape, study_kinds
from moot.modules.research.domain.events import (
    DOUBT,
    UNREAD_WEIGHT,
    WINDOW_DAYS,
    Event,
    Probability,
    Timeframe,
    is_grave,
    read_events,
)
from moot.modules.research.domain.evidence import Confidence, DimensionAnalysis, Engine, ExpertResult, show
from moot.modules.research.domain.facts import Case
from moot.modules.research.domain.rubric import Finding, Rule, Scorecard, Voice, dimension_name
from moot.shared.domain import units
from moot.shared.domain.claims import Claim
from moot.shared.domain.datasets import DataUntil
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyBar, IndexBar, NewsItem
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import Locale

CatalystAssessment = Literal["Positive (正面催化)", "Neutral (中性)", "Negative (负面催化)"]


class CatalystDimension(StrEnum):
    COMPANY = "公司重大事件与动态"
    INDUSTRY = "行业催化与竞争格局"
    SENTIMENT = "市场情绪与机构动向"
    EARNINGS = "财报预期与业绩催化"


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


FOLDER = Path(__file__).parent
SILENCE_WEIGHT = 2.0
"""What a dimension without any event is missing."""
LEAST_WEIGHT = 0.1
MOST_CATALYSTS = 5
MOST_TOLD = 6
"""A title is as long as two findings of another expert."""
MOST_STUDIES = 2
MONTH = 20
ASSESSMENTS: Mapping[int, CatalystAssessment] = {
    1: "Positive (正面催化)",
    0: "Neutral (中性)",
    -1: "Negative (负面催化)",
}


def _find(context: CatalystContext, dimension: CatalystDimension, say: Voice) -> Iterator[Finding]:
    name = dimension_name(dimension, say)
    for id_, place, event in list_events(context):
        if event.topic == dimension.name.lower():
            headline, title = event.kind != "fact", event.title
            marked = (name, _tell(event, say), event.points, event.weight, dimension, id_, event.category)
            brief = say("event_brief", title=title) if headline else title
            yield Finding(*marked, (place,), reported=headline, brief=brief, horizon=event.horizon)


def _tell(event: Event, say: Voice) -> str:
    impact, title = say(f"impact.{event.category}"), event.titles[say.locale]
    key = "fact_event" if event.kind == "fact" else "event"
    return say(key, published=event.published, title=title, impact=impact)


def _find_studied(context: CatalystContext, say: Voice) -> Iterator[Finding]:
    """Where earlier events of a kind went one way more than chance would."""
    topics = {event.category: CatalystDimension[event.topic.upper()] for event in context.events}
    for one in context.studies:
        if one.side:
            name, kind = say("study.name", kind=say(f"event.{one.category}")), f"study.{STUDIED[one.side]}"
            marked = (name, _tell_study(one, say), float(one.side), 1.0, topics[one.category])
            id_ = f"study.{one.category}"
            yield Finding(*marked, id_, kind, (id_,), brief=name, horizon=one.horizon)


STUDIED = {1: "up", 0: "open", -1: "down"}


def _tell_study(one: Study, say: Voice) -> str:
    shown = {name: show(getattr(one, name), units.PERCENT, say.locale) for name in ("mean", "low", "high")}
    key = "few" if one.mean is None else STUDIED[one.side] if one.judged else "some"
    kind = say(f"event.{one.category}")
    return say(f"study.{key}", kind=kind, n=one.n, horizon=one.horizon, level=f"{one.level}%", **shown)


def _tell_open_studies(context: CatalystContext, say: Voice) -> list[str]:
    """How many earlier events there were of the kinds of which they tell nothing for certain."""
    found = sorted((one for one in context.studies if not one.side), key=lambda one: one.mean is None)
    told = [_tell_study(one, say) for one in found]
    return [say("study.paragraph", told=say.prose(told[:MOST_STUDIES]))] if told else []


def _ask(rule: Rule, context: CatalystContext, say: Voice) -> Finding:
    """What points nowhere says less than what does, and that nothing bad is near next to nothing."""
    found = rule.find(context, say)
    if found.points is None or found.points:
        return found
    two_sided = any(band.points > 0 for band in rule.bands)
    return replace(found, weight=UNREAD_WEIGHT if two_sided else LEAST_WEIGHT)


def _catalysts(
    side: Literal["positive", "negative"], found: Sequence[Finding], context: CatalystContext, say: Voice
) -> list[Catalyst]:
    """The weightiest first. A side may be silent; that is said, and no event is made up for it."""
    if not found:
        said = {"event": say(f"none_{side}"), "expected_impact": say("none_impact")}
        return [Catalyst(**said, timeframe="近期", probability="低")]
    events = {id_: event for id_, _, event in list_events(context)}
    return [_catalyst(finding, events.get(finding.id), say) for finding in found[:MOST_CATALYSTS]]


def _catalyst(finding: Finding, event: Event | None, say: Voice) -> Catalyst:
    """What is measured is certain, what it leads to is not."""
    if event is None:
        said = {"event": finding.brief, "expected_impact": finding.text}
        return Catalyst(**said, timeframe="中期" if finding.horizon > MONTH else "近期", probability="中")
    return Catalyst(
        event=say("event_name", published=event.published, title=event.title),
        expected_impact=say(f"impact.{event.category}"),
        timeframe=event.timeframe,
        probability=event.probability,
    )


def _rank(found: Sequence[Finding]) -> list[Finding]:
    """What is grave first, then by weight."""
    return sorted(found, key=lambda finding: (not is_grave(finding.kind), -abs(finding.points or 0.0)))


class CatalystDetectiveService(ReportedService[CatalystContext, CatalystResult]):
    expert = ExpertType.CATALYST_DETECTIVE
    folder, texts, dimensions = FOLDER, SAY, CatalystDimension
    answer = judge_each(CatalystDimension, CatalystResult)
    searches, quotes = SEARCHES, [search.context for search in SEARCHES]

    def speak(self, snapshot: CatalystContext, case: Case, locale: Locale) -> Voice:
        ends = {"due_report": snapshot.report_period, "last_report": snapshot.reported}
        named = {name: name_period(end).in_locale(locale) for name, end in ends.items() if end}
        say = super().speak(snapshot, case, locale)
        usual = str(show(snapshot.usual_3d, units.PERCENT, locale))
        return say.also(
            **named, usual=usual, benchmark=say("adjusted" if snapshot.adjusted else "unadjusted")
        )

    def mark(self, snapshot: CatalystContext, say: Voice) -> Scorecard:
        """What never points is told where there is something to tell, and is no hole where there is not."""
        asked = [rule for rule in self.rules() if rule.weight or getattr(snapshot, rule.measure) is not None]
        measured = [_ask(rule, snapshot, say) for rule in asked]
        findings: list[Finding] = []
        for dimension in CatalystDimension:
            found = [*_find(snapshot, dimension, say), *(f for f in measured if f.dimension == dimension)]
            if all(finding.points is None for finding in found):
                name = dimension_name(dimension, say)
                findings.append(Finding(name, say("no_results"), None, SILENCE_WEIGHT, dimension))
            findings += found
        return Scorecard((*findings, *_find_studied(snapshot, say)), doubt=DOUBT)

    def conclude(self, snapshot: CatalystContext, card: Scorecard, say: Voice) -> CatalystResult:
        assessment, good, bad = ASSESSMENTS[card.side], card.on_side(1), _rank(card.on_side(-1))
        leading = {1: good, 0: _rank([*good, *bad]), -1: bad}[card.side][:1]
        lead = leading[0].brief if leading else None
        view = assessment.partition(" ")[0].lower() if lead else "silent"
        say = say.also(lead=lead, helping=len(good), hurting=len(bad))
        say = say.also(heard=say("heard.some" if snapshot.events else "heard.none"))
        conclusion, risk = say(f"conclusion.{view}"), say(f"risk.{view}")
        told = card.narrate(say, view=say(f"view.{view}"), stance=card.side, risk=risk, most=MOST_TOLD)
        return CatalystResult(
            catalyst_assessment=assessment,
            confidence_score=card.confidence,
            catalyst_summary=card.summarise(say, conclusion, card.side),
            dimension_analyses=card.grade(CatalystDimension, say),
            positive_catalysts=_catalysts("positive", good, snapshot, say),
            negative_catalysts=_catalysts("negative", bad, snapshot, say),
            information_sources=snapshot.all_source_urls,
            narrative_report="\n\n".join([told, *_tell_open_studies(snapshot, say)]),
        )

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> CatalystDetectiveAgentResult:
        case = await self._open(symbol, as_of, locale)
        news = await self._spare(self._facts.news(case.symbol, WINDOW_DAYS, as_of=as_of), ())
        of_interest = [item for item in news if item.kind != "policy" or item.industry]
        found = await gather(self._facts, case)
        until = dict(self._facts.newest)
        known, evidence = await self._look(case, read_events(of_interest, case), found)
        context, read = await self._search(case, known)
        if not context.all_source_urls:
            raise self._refusal(case, "no_news", days=WINDOW_DAYS)
        evidence += read
        opinion = await self._judge(case, context, evidence)
        without = [SAY("without", names=names).in_locale(locale)] if (names := found.missing) else []
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
            warnings=[*opinion.warnings, *self._remark(case), *without],
            data_until=until,
        )

    async def _look(
        self, case: Case, headlines: Sequence[Event], found: Disclosed
    ) -> tuple[CatalystContext, list[Evidence]]:
        """All that is known without the web, and the evidence it is."""
        tape = Tape(found.of(DailyBar), found.of(IndexBar))
        occurrences, measured = list_occurrences(found, case), measure(found, tape, case)
        events = count_once(headlines, read_facts(occurrences, case), measured)
        context = catalyst_context(case, events, **measured)
        pointing = {event.category: event.horizon for event in context.events if event.points}
        told: Sequence[NewsItem] = ()
        if pointing and tape.sums[1:]:
            with suppress(Unavailable):  # what is known of today does not wait for what is known of the past
                told = await self._facts.news(case.symbol, HISTORY_DAYS, as_of=case.as_of)
        studies = study_kinds(pointing, date_kinds(occurrences, told), tape)
        urls = context.all_source_urls or found.sources
        context = context.model_copy(update={"studies": studies, "all_source_urls": urls})
        return context, cite_context(self.expert.prefix, context, found, case.as_of)


SERVICE = CatalystDetectiveService
