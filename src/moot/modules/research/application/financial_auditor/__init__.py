"""The financial auditor: its view of a company's reports, and how the books are graded by rule."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field

from moot.modules.research.application.expert_service import ExpertService, judge_each
from moot.modules.research.domain.evidence import (
    Confidence,
    DimensionAnalysis,
    ExpertResult,
    Score,
    Snapshot,
    cite,
)
from moot.modules.research.domain.facts import (
    COMMON,
    Case,
    Periods,
    annualise,
    positive,
    quarter_name,
    ratio,
    shares_of,
)
from moot.modules.research.domain.rubric import Scorecard, Voice
from moot.shared.domain import units
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Figures, FinancialReport
from moot.shared.domain.messages import Catalogue, Locale, Message

FinancialSignal = Literal["STRONG_BULLISH", "BULLISH", "NEUTRAL", "BEARISH", "STRONG_BEARISH"]
SIGNAL_FROM: Mapping[int, FinancialSignal] = {
    90: "STRONG_BULLISH",
    75: "BULLISH",
    50: "NEUTRAL",
    30: "BEARISH",
    0: "STRONG_BEARISH",
}


class FinancialDimension(StrEnum):
    EARNINGS_QUALITY = "盈利含金量"
    EFFICIENCY = "运营效率与造假侦测"
    RETURNS = "资本回报与护城河"
    SOLVENCY = "偿债与生存能力"
    GROWTH = "成长加速度"


def signal_for(score: int) -> FinancialSignal:
    """The score decides; the signal is its name."""
    return next(signal for lowest, signal in SIGNAL_FROM.items() if score >= lowest)


class FinancialSnapshot(Snapshot, Figures):
    """The latest report, what follows from it and from the year before, and series with the newest first."""

    symbol: str
    stock_name: str
    industry: str
    report_period: str
    announced_on: date

    profit_dedt_ps: units.Price
    deducted_share: units.Ratio
    quality_ratio: units.Ratio
    quality_ratio_ttm: units.Ratio
    eps_ttm: units.Price
    fcff_ttm: units.Amount
    roic_annualised: units.Percent
    roe_annualised: units.Percent
    revenue_growth: units.Percent
    profit_growth: units.Percent
    profit_growth_before: units.Percent
    gross_margin_change: units.Points
    invturn_days_growth: units.Percent
    arturn_days_growth: units.Percent
    assets_turn_growth: units.Percent

    quarter_list: list[str]
    revenue_growth_series: Annotated[list[float | None], units.PERCENT]
    profit_growth_series: Annotated[list[float | None], units.PERCENT]
    gross_margin_series: Annotated[list[float | None], units.PERCENT]
    roic_series: Annotated[list[float | None], units.PERCENT]
    fcff_series: Annotated[list[float | None], units.AMOUNT]
    invturn_days_series: Annotated[list[float | None], units.DAYS]
    arturn_days_series: Annotated[list[float | None], units.DAYS]

    @property
    def leverage(self) -> float | None:
        """Books without current assets are a bank's or an insurer's: its debts are its trade."""
        return None if self.current_ratio is None else self.debt_to_assets


AS_REPORTED_SERIES = ("gross_margin", "roic", "fcff", "invturn_days", "arturn_days")


class FinancialResult(ExpertResult):
    financial_score: Score
    signal: FinancialSignal
    confidence: Confidence
    summary_reasoning: str
    dimension_analyses: list[DimensionAnalysis] = Field(min_length=5, max_length=5)
    key_risks: list[str]
    risk_warning: str


def financial_snapshot(case: Case, reports: Sequence[FinancialReport], limit: int) -> FinancialSnapshot:
    """`reports` are newest first and may reach further back than the `limit` periods that are shown."""
    latest, shown = reports[0], reports[:limit]
    periods = Periods(reports)
    profit_growth = [periods.growth(report, "profit_dedt") for report in reports]
    return FinancialSnapshot(
        symbol=case.company.symbol,
        stock_name=case.stock_name,
        industry=case.industry,
        report_period=quarter_name(latest.period_end),
        announced_on=latest.announced_on,
        **{name: getattr(latest, name) for name in Figures.model_fields},
        **_derive(latest, periods),
        profit_growth=profit_growth[0],
        profit_growth_before=profit_growth[1] if len(reports) > 1 else None,
        quarter_list=[quarter_name(report.period_end) for report in shown],
        revenue_growth_series=[periods.revenue_growth(report) for report in shown],
        profit_growth_series=profit_growth[:limit],
        **{f"{name}_series": [getattr(report, name) for report in shown] for name in AS_REPORTED_SERIES},
    )


def _derive(latest: FinancialReport, periods: Periods) -> dict[str, float | None]:
    deducted = ratio(latest.profit_dedt, shares_of(latest))
    eps_ttm, ocfps_ttm = (periods.trailing_year(latest, field) for field in ("eps", "ocfps"))
    return {
        "profit_dedt_ps": deducted,
        "deducted_share": ratio(deducted, positive(latest.eps)),
        "quality_ratio": ratio(latest.ocfps, latest.eps),
        "quality_ratio_ttm": ratio(ocfps_ttm, positive(eps_ttm)),
        "eps_ttm": eps_ttm,
        "fcff_ttm": periods.trailing_year(latest, "fcff"),
        "roic_annualised": annualise(latest, "roic"),
        "roe_annualised": annualise(latest, "roe_waa"),
        "revenue_growth": periods.revenue_growth(latest),
        "gross_margin_change": periods.change(latest, "gross_margin"),
        "invturn_days_growth": periods.growth(latest, "invturn_days"),
        "arturn_days_growth": periods.growth(latest, "arturn_days"),
        "assets_turn_growth": periods.growth(latest, "assets_turn"),
    }


FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
EARLIER_PERIODS = 4
"""Loaded beyond the asked ones, so that the oldest of them has its year-on-year."""


class FinancialAuditorService(ExpertService[FinancialSnapshot, FinancialResult]):
    expert = ExpertType.FINANCIAL_AUDITOR
    folder, texts, dimensions = FOLDER, SAY, FinancialDimension
    answer = judge_each(FinancialDimension, FinancialResult)
    shows = ("stock_name", "symbol", "industry", "report_period", "announced_on", "quarter_list")

    def conclude(self, snapshot: FinancialSnapshot, card: Scorecard, say: Voice) -> FinancialResult:
        marks = (card.of(dimension).score_100 for dimension in FinancialDimension)
        score = round(fmean(mark for mark in marks if mark is not None))  # each dimension counts alike
        signal = signal_for(score)
        stance = self.expert.stances[signal]
        say = card.with_extremes(FinancialDimension, say).also(score=score)
        conclusion, risk = say(f"conclusion.{signal}"), say(f"risk.{signal}")
        return FinancialResult(
            financial_score=score,
            signal=signal,
            confidence=card.confidence,
            summary_reasoning=card.summarise(say, conclusion, stance),
            dimension_analyses=card.grade(FinancialDimension, say),
            key_risks=[f.brief for f in card.on_side(-1)] or [say("no_cons")],
            risk_warning=risk,
            narrative_report=card.narrate(say, view=say(f"view.{signal}"), stance=stance),
        )

    def settle(self, result: FinancialResult) -> tuple[FinancialResult, Sequence[Message]]:
        """The score decides; a model that named it otherwise is corrected, and the reader told."""
        score, signal = result.financial_score, signal_for(result.financial_score)
        if signal == result.signal:
            return result, ()
        remark = SAY("signal_from_score", score=score, said=result.signal, signal=signal)
        return result.model_copy(update={"signal": signal}), [remark]

    async def run(self, symbol: str, limit: int = 5, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        reports = await self._facts.financial_reports(case.symbol, limit + EARLIER_PERIODS, as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        snapshot = financial_snapshot(case, reports, limit)
        evidence = cite(self.expert.prefix, snapshot, reports[0], labels=snapshot.quarter_list)
        return await self._report(case, snapshot, evidence)


SERVICE = FinancialAuditorService
