"""The financial auditor: its view of a company's reports, and how the books are graded by rule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import Field

from moot.modules.research.application.expert_service import ExpertService, judge_each
from moot.modules.research.application.financial_auditor.snapshot import (
    PERIODS_READ,
    FinancialSnapshot,
    financial_snapshot,
    newest_notice,
)
from moot.modules.research.domain.books import quarter_number
from moot.modules.research.domain.evidence import (
    Confidence,
    DimensionAnalysis,
    ExpertResult,
    Score,
    cite,
)
from moot.modules.research.domain.facts import COMMON, Case, Trade
from moot.modules.research.domain.rubric import Finding, Rule, Scorecard, Voice, dimension_name
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyValuation, EarningsNotice, Fact, FinancialReport, Statement
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


class FinancialResult(ExpertResult):
    financial_score: Score
    signal: FinancialSignal
    confidence: Confidence
    summary_reasoning: str
    dimension_analyses: list[DimensionAnalysis] = Field(min_length=5, max_length=5)
    key_risks: list[str]
    risk_warning: str


FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
PERIODS_SHOWN, EARLIER_PERIODS = 5, 4
"""The latter are loaded beyond the asked ones, so that the oldest of them has its year-on-year."""
PRICED_WITHIN = timedelta(days=30)
TOLD_AHEAD = ("forecast", "express", "express_revenue")
"""Rules on what few companies tell: where nothing was told, nothing is missing."""
MOST_LACKING = 4
UNTOLD: Mapping[Trade, Mapping[FinancialDimension, Sequence[str]]] = {
    "bank": {
        FinancialDimension.EARNINGS_QUALITY: ("interest_margin", "bad_loans", "provisions"),
        FinancialDimension.SOLVENCY: ("capital_adequacy",),
    },
    "insurer": {
        FinancialDimension.EARNINGS_QUALITY: ("combined_ratio", "embedded_value"),
        FinancialDimension.SOLVENCY: ("solvency_ratio",),
    },
    "broker": {FinancialDimension.SOLVENCY: ("net_capital",)},
}
"""What one would judge a trade by, and no source of ours tells."""


class FinancialAuditorService(ExpertService[FinancialSnapshot, FinancialResult]):
    expert = ExpertType.FINANCIAL_AUDITOR
    folder, texts, dimensions = FOLDER, SAY, FinancialDimension
    answer = judge_each(FinancialDimension, FinancialResult)
    shows = (
        *("stock_name", "symbol", "industry", "trade", "report_period", "announced_on", "quarter_list"),
        *("profit_basis", "scored_period", "altman_variant", "notice_kind", "notice_period", "notice_on"),
    )

    def speak(self, snapshot: FinancialSnapshot, case: Case, locale: Locale) -> Voice:
        say = super().speak(snapshot, case, locale)
        since = say(f"since.{snapshot.notice_kind or 'report'}")
        net = say("basis.whole" if snapshot.minorities else "basis.net")
        names = {"net": net, "recurring": say("basis.recurring")}
        return say.also(profit_name=names[snapshot.profit_basis], net_profit=net, since=since)

    def mark(self, snapshot: FinancialSnapshot, say: Voice) -> Scorecard:
        """What could not be judged is called by what it lacks, and what nobody tells is missing too."""
        card = super().mark(snapshot, say)
        named = (_name_lacking(finding, snapshot, say) for finding in card.findings)
        return replace(card, findings=(*named, *_untold(snapshot.trade, say)))

    @classmethod
    def trust(cls, rule: Rule, snapshot: FinancialSnapshot) -> float:
        untold = rule.name in TOLD_AHEAD and rule.value_in(snapshot) is None
        return 0.0 if untold else super().trust(rule, snapshot)

    def conclude(self, snapshot: FinancialSnapshot, card: Scorecard, say: Voice) -> FinancialResult:
        score = _weigh(card)
        signal = signal_for(score)
        stance = self.expert.stances[signal]
        say = card.with_extremes(FinancialDimension, say).also(score=score)
        conclusion, risk = say(f"conclusion.{signal}"), say(f"risk.{signal}")
        return FinancialResult(
            financial_score=score,
            signal=signal,
            confidence=card.confidence,
            summary_reasoning=card.summarise(say, conclusion, stance),
            dimension_analyses=_grade(card, snapshot.trade, say),
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

    async def run(
        self, symbol: str, limit: int = PERIODS_SHOWN, *, as_of: datetime, locale: Locale
    ) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        reports = await self._facts.financial_reports(case.symbol, count_periods(limit), as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        statements = await self._spare(self._facts.read(Statement, case.symbol, as_of=as_of), ())
        notices = await self._spare(self._facts.read(EarningsNotice, case.symbol, as_of=as_of), ())
        valued = await self._value(case) if statements and case.sector.manufacturer else None
        snapshot = financial_snapshot(
            case, reports, limit, statements, notices, market_value=valued.total_mv if valued else None
        )
        return await self._report(case, snapshot, _cite(snapshot, reports, statements, notices, valued))

    async def _value(self, case: Case) -> DailyValuation | None:
        """What the market paid last, for a score that goes by it."""
        start = case.today - PRICED_WITHIN
        days = await self._spare(
            self._facts.daily_valuations(case.symbol, start, case.today, as_of=case.as_of), ()
        )
        return days[-1] if days else None


def count_periods(limit: int) -> int:
    """How many are read for so many that are shown."""
    return max(limit + EARLIER_PERIODS, PERIODS_READ)


def _weigh(card: Scorecard) -> int:
    """Each dimension counts by how much of it could be looked at: alike where the data are complete."""
    parts = [card.of(dimension) for dimension in FinancialDimension]
    marks = [(mark, part.completeness) for part in parts if (mark := part.score_100) is not None]
    return round(fmean(*zip(*marks, strict=True)))


def _cite(
    snapshot: FinancialSnapshot,
    reports: Sequence[FinancialReport],
    statements: Sequence[Statement],
    notices: Sequence[EarningsNotice],
    valued: DailyValuation | None,
) -> list[Evidence]:
    """Scores come from the statements, and one of them from the market too; what was told ahead from the notice."""
    stated: Fact | None = statements[-1] if statements else None
    told = dict.fromkeys(("piotroski", "altman", "beneish", "accruals", "cash"), stated)
    told |= {"altman": valued or stated, "notice": newest_notice(notices, quarter_number(reports[0]))}
    origins = {name: fact for name in snapshot.units() if (fact := told.get(name.partition("_")[0]))}
    prefix = FinancialAuditorService.expert.prefix
    return cite(prefix, snapshot, reports[0], origins=origins, labels=snapshot.quarter_list)


def _name_lacking(finding: Finding, snapshot: FinancialSnapshot, say: Voice) -> Finding:
    lines = snapshot.lacking.get(finding.id, ())
    if not 0 < len(lines) <= MOST_LACKING:
        return finding
    named = say.list_names(say(f"line.{line}") for line in lines)
    return replace(finding, name=say("lacks", name=finding.name, lines=named))


def _untold(trade: Trade, say: Voice) -> Iterator[Finding]:
    for dimension, names in UNTOLD.get(trade, {}).items():
        for name in names:
            yield Finding(say(f"untold.{name}"), say("no_data"), None, 1, dimension, name)


def _grade(card: Scorecard, trade: Trade, say: Voice) -> list[DimensionAnalysis]:
    """A dimension that nothing is asked about in that trade says so: its score is no judgement."""
    asked = {finding.dimension for finding in card.findings}
    return [
        analysis
        if analysis.dimension in asked
        else analysis.model_copy(update={"assessment": _leave_out(analysis, trade, say)})
        for analysis in card.grade(FinancialDimension, say)
    ]


def _leave_out(analysis: DimensionAnalysis, trade: Trade, say: Voice) -> str:
    name = dimension_name(FinancialDimension(analysis.dimension), say)
    return say("left_out", dimension=name, trade=say(f"trade.{trade}"), score=analysis.score)


SERVICE = FinancialAuditorService
