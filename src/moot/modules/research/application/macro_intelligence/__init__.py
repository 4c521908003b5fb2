"""The macro intelligence officer: its view of the economy around a company, and how that is read by rule."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf, prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from moot.modules.research.application.expert_service import Reported, ReportedService, WebSearch, judge_each
from moot.modules.research.domain.events import (
    WINDOW_DAYS,
    Event,
    balance,
    event_evidence,
    read_events,
    tell_events,
)
from moot.modules.research.domain.evidence import Confidence, DimensionAnalysis, ExpertResult, cite
from moot.modules.research.domain.facts import COMMON, Case
from moot.modules.research.domain.rubric import Scorecard, Voice
from moot.shared.domain import units
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import MacroObservation
from moot.shared.domain.messages import Catalogue, Locale

FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
PREFIX = ExpertType.MACRO_INTELLIGENCE.prefix
QUARTER = timedelta(days=80)
"""How far back a figure must lie to show a change over about three months."""

MacroEnvironment = Literal["Favorable (有利)", "Neutral (中性)", "Unfavorable (不利)"]


class MacroDimension(StrEnum):
    MONETARY = "货币与流动性环境"
    POLICY = "产业政策与监管动态"
    ECONOMY = "宏观经济周期定位"
    INDUSTRY = "行业景气与资金流向"


SERIES: Mapping[str, tuple[str, ...]] = {
    "monetary_context": ("m2_yoy", "lpr_1y", "cgb_10y"),
    "economic_context": ("pmi_manufacturing", "cpi_yoy", "ppi_yoy"),
    "industry_context": ("industry_prosperity",),
}
SEARCHES = (
    WebSearch("monetary", "monetary_context", 6, "oneMonth"),
    WebSearch("policy", "policy_context", 6, "oneMonth"),
    WebSearch("economy", "economic_context", 6, "oneMonth"),
    WebSearch("industry", "industry_context", 6, "oneWeek"),
)
"""Money, policy and the cycle move by the month, an industry's flows by the week."""


class MacroSnapshot(Reported):
    """The latest figures, their change over three months, and what policy said; the contexts tell it as texts."""

    monetary_context: str
    policy_context: str
    economic_context: str
    industry_context: str
    m2_yoy: units.Percent = None
    m2_yoy_change: units.Points = None
    lpr_1y: units.Rate = None
    lpr_1y_change: units.RatePoints = None
    cgb_10y: units.Rate = None
    cgb_10y_change: units.RatePoints = None
    pmi_manufacturing: units.Index = None
    pmi_manufacturing_change: units.Index = None
    cpi_yoy: units.Percent = None
    cpi_yoy_change: units.Points = None
    ppi_yoy: units.Percent = None
    ppi_yoy_change: units.Points = None
    industry_prosperity: units.Index = None
    industry_prosperity_change: units.Index = None
    policy_balance: units.Ratio = None
    supportive_policies: units.Count
    restrictive_policies: units.Count
    latest_policy: str
    policy_events: list[Event]


class MacroResult(ExpertResult):
    macro_environment: MacroEnvironment
    confidence_score: Confidence
    macro_summary: str
    dimension_analyses: list[DimensionAnalysis] = Field(min_length=4, max_length=4)
    key_opportunities: list[str] = Field(min_length=1)
    key_risks: list[str] = Field(min_length=1)
    information_sources: list[str] = Field(min_length=1)


YEAR = 12
CHAINED = {"cpi_mom": "cpi_yoy", "ppi_mom": "ppi_yoy"}
"""Where a source tells the change on the month alone, twelve of them make one on the year."""


def chain_months(figures: Sequence[MacroObservation]) -> list[MacroObservation]:
    """With changes on the year where only those on the month were told."""
    told, made = {figure.series for figure in figures}, list[MacroObservation]()
    for monthly, yearly in CHAINED.items():
        months = {f.period.year * YEAR + f.period.month: f for f in figures if f.series == monthly}
        for number, last in months.items() if yearly not in told else ():
            year = [months.get(number - back) for back in range(YEAR)]
            changes = [1 + month.value / 100 for month in year if month]
            if len(changes) == YEAR:
                made.append(
                    last.model_copy(update={"series": yearly, "value": round(100 * prod(changes) - 100, 1)})
                )
    return [*figures, *made]


class Trend(NamedTuple):
    """The latest figure of a series, and how it moved over about three months."""

    latest: MacroObservation
    change: float | None


def trends(figures: Iterable[MacroObservation]) -> dict[str, Trend]:
    series: dict[str, list[MacroObservation]] = {}
    for figure in sorted(figures, key=lambda figure: (figure.period, figure.available_at)):
        series.setdefault(figure.series, []).append(figure)
    found = {}
    for name, (*before, latest) in series.items():
        earlier = [figure for figure in before if figure.period <= latest.period - QUARTER]
        found[name] = Trend(latest, round(latest.value - earlier[-1].value, 2) if earlier else None)
    return found


def macro_snapshot(case: Case, by_series: Mapping[str, Trend], policies: Sequence[Event]) -> MacroSnapshot:
    """`policies` are newest first."""
    locale = case.locale
    known = {name: by_series[name] for names in SERIES.values() for name in names if name in by_series}
    urls = [*(trend.latest.url for trend in known.values()), *(policy.url for policy in policies)]
    return MacroSnapshot(
        stock_name=case.stock_name,
        third_code=case.company.symbol,
        industry=case.industry,
        exposure=case.sector.exposure,
        current_date=case.today,
        policy_context=tell_events(policies, locale),
        **{context: _tell_figures(names, known, locale) for context, names in SERIES.items()},
        all_source_urls=list(dict.fromkeys(urls)),
        policy_balance=balance(policies),
        supportive_policies=sum(policy.points > 0 for policy in policies),
        restrictive_policies=sum(policy.points < 0 for policy in policies),
        latest_policy=policies[0].title if policies else SAY("not_available").in_locale(locale),
        policy_events=list(policies),
        **{name: trend.latest.value for name, trend in known.items()},
        **{f"{name}_change": trend.change for name, trend in known.items()},
    )


def macro_evidence(snapshot: MacroSnapshot, by_series: Mapping[str, Trend]) -> list[Evidence]:
    figures = {name: trend.latest for name, trend in by_series.items()}
    origins = figures | {f"{name}_change": figure for name, figure in figures.items()}
    policies = snapshot.policy_events
    newest = policies[0] if policies else next(iter(figures.values()), None)
    if newest is None:
        return []
    return [*cite(PREFIX, snapshot, newest, origins=origins), *event_evidence(PREFIX, policies)]


def _tell_figures(names: Iterable[str], known: Mapping[str, Trend], locale: Locale) -> str:
    lines = [
        SAY(
            "figure_line",
            series=SAY(f"series.{name}"),
            period=f"{figure.period:%Y-%m}",
            value=f"{figure.value:g}{figure.unit if figure.unit == '%' else ''}",
            url=figure.url,
        )
        for name in names
        if name in known
        for figure in [known[name].latest]
    ]
    return "\n".join(line.in_locale(locale) for line in lines) or SAY("no_results").in_locale(locale)


FIGURE_DAYS = 500
"""A year of monthly changes, and a quarter before it."""
EFFECTS = ((-0.3, "hurts"), (-0.01, "hurts_little"), (0.01, "nothing"), (0.3, "helps_little"), (inf, "helps"))
FLOOR = 20
"""A dimension below this spoils the rest."""


def environment_for(scores: Sequence[int]) -> MacroEnvironment:
    """Most dimensions that have data decide, but one that is very bad spoils it."""
    most = len(scores) / 2
    if min(scores) < FLOOR or sum(score < 40 for score in scores) > most:
        return "Unfavorable (不利)"
    return "Favorable (有利)" if sum(score >= 60 for score in scores) > most else "Neutral (中性)"


def _spoiler(dimensions: Sequence[DimensionAnalysis]) -> str:
    """Names the risk where it is one dimension alone that makes the environment unfavourable."""
    scores = sorted(dimension.score for dimension in dimensions)
    lifted = [max(score, FLOOR) for score in scores]
    return "spoiled" if scores != lifted and environment_for(lifted) != environment_for(scores) else ""


def _size(felt: float) -> str:
    """How much something is felt, and which way."""
    return next(name for below, name in EFFECTS if felt < below)


class MacroIntelligenceService(ReportedService[MacroSnapshot, MacroResult]):
    expert = ExpertType.MACRO_INTELLIGENCE
    folder, texts, dimensions = FOLDER, SAY, MacroDimension
    answer = judge_each(MacroDimension, MacroResult)
    searches, quotes = SEARCHES, [search.context for search in SEARCHES]
    _chained = False

    def speak(self, snapshot: MacroSnapshot, case: Case, locale: Locale) -> Voice:
        """It can also say what more and less of each factor does to companies of the industry."""
        say, newest = super().speak(snapshot, case, locale), next(iter(snapshot.policy_events), None)
        for factor, exposure in snapshot.exposure.items():
            effects = {f"more_{factor}": exposure, f"less_{factor}": -exposure}
            say = say.also(**{name: say(f"effect.{_size(felt)}") for name, felt in effects.items()})
        return say.also(latest_policy=newest.titles[locale]) if newest else say

    def conclude(self, snapshot: MacroSnapshot, card: Scorecard, say: Voice) -> MacroResult:
        dimensions = card.grade(MacroDimension, say)
        heard = [said for said in dimensions if card.of(said.dimension).score is not None]
        environment = environment_for([dimension.score for dimension in heard])
        say, stance = card.with_extremes(MacroDimension, say), self.expert.stances[environment]
        view = environment.partition(" ")[0].lower()
        conclusion, risk = say(f"conclusion.{view}"), say(f"risk.{_spoiler(heard) or view}")
        return MacroResult(
            macro_environment=environment,
            confidence_score=card.confidence,
            macro_summary=card.summarise(say, conclusion, stance),
            dimension_analyses=dimensions,
            key_opportunities=[f.brief for f in card.on_side(1)] or [say("no_opportunity")],
            key_risks=[risk, *([f.brief for f in card.on_side(-1)] or [say("no_risk")])],
            information_sources=snapshot.all_source_urls,
            narrative_report=card.narrate(say, view=say(f"view.{view}"), stance=stance),
        )

    def _remark(self, case: Case) -> list[str]:
        made = [self.texts("chained").in_locale(case.locale)] if self._chained else []
        return [*made, *super()._remark(case)]

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        figures = await self._facts.macro(case.symbol, FIGURE_DAYS, as_of=as_of)
        told = chain_months(figures)
        self._chained = len(told) > len(figures)
        by_series = trends(f for f in told if f.industry in (None, case.company.industry))
        news = await self._spare(self._facts.news(case.symbol, WINDOW_DAYS, as_of=as_of), ())
        policies = read_events([item for item in news if item.kind == "policy"], case)
        snapshot, read = await self._search(case, macro_snapshot(case, by_series, policies))
        if not snapshot.all_source_urls:
            raise self._refusal(case, "no_macro", days=FIGURE_DAYS)
        return await self._report(case, snapshot, [*macro_evidence(snapshot, by_series), *read])


SERVICE = MacroIntelligenceService
