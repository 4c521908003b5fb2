"""The financial auditor: how a company's books are graded by rule."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.application.financial_auditor.snapshot import (
    FinancialDimension,
    FinancialResult,
    FinancialSnapshot,
    financial_snapshot,
    signal_for,
)
from moot.modules.research.application.remit import Remit, judging_each
from moot.modules.research.domain.evidence import measured
from moot.modules.research.domain.rubric import Rubric, analyses, narrative, summary, with_extremes
from moot.modules.research.domain.scorecard import Rule, Scorecard, bands, difference, mark
from moot.modules.research.domain.texts import COMMON
from moot.modules.research.domain.voice import Voice
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Catalogue, Locale, Message

FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
LIMITS = range(1, 21)
EARLIER_PERIODS = 4
"""Loaded beyond the asked ones, so that the oldest of them has its year-on-year."""

QUALITY = FinancialDimension.EARNINGS_QUALITY
EFFICIENCY = FinancialDimension.EFFICIENCY
RETURNS = FinancialDimension.RETURNS
SOLVENCY = FinancialDimension.SOLVENCY
GROWTH = FinancialDimension.GROWTH

SLOWER_IS_WORSE = bands((-5, 2, "faster"), (10, 0, "steady"), (30, -1, "slower"), rest=(-2, "jump"))


def _leverage(s: FinancialSnapshot) -> float | None:
    """Books without current assets are a bank's or an insurer's: its debts are its trade."""
    return None if s.current_ratio is None else s.debt_to_assets


RULES: tuple[Rule[FinancialSnapshot], ...] = (
    Rule(
        "cash_backing",
        "quality_ratio_ttm",
        bands((0, -2, "negative"), (0.6, -1, "thin"), (0.9, 0, "fair"), rest=(2, "solid")),
        QUALITY,
    ),
    Rule("profit", "eps_ttm", bands((0, -1, "loss"), rest=(1, "profit")), QUALITY),
    Rule(
        "core_profit",
        "deducted_share",
        bands((0.5, -1, "oneoff"), (0.85, 0, "mixed"), rest=(1, "core")),
        QUALITY,
    ),
    Rule("inventory", "invturn_days_growth", SLOWER_IS_WORSE, EFFICIENCY),
    Rule("receivables", "arturn_days_growth", SLOWER_IS_WORSE, EFFICIENCY),
    Rule(
        "turnover",
        "assets_turn_growth",
        bands((-5, -1, "slower"), (5, 0, "steady"), rest=(1, "faster")),
        EFFICIENCY,
    ),
    Rule(
        "roic",
        "roic_annualised",
        bands((4, -2, "poor"), (8, 0, "modest"), (15, 1, "good"), rest=(2, "excellent")),
        RETURNS,
    ),
    Rule("roe", "roe_annualised", bands((5, -1, "poor"), (10, 0, "modest"), rest=(1, "good")), RETURNS),
    Rule("margin", "gross_margin", bands((15, -1, "thin"), (40, 0, "medium"), rest=(1, "thick")), RETURNS),
    Rule(
        "margin_change",
        "gross_margin_change",
        bands((-1, -1, "down"), (1, 0, "steady"), rest=(1, "up")),
        RETURNS,
    ),
    Rule("free_cash", "fcff_ttm", bands((0, -2, "burning"), rest=(2, "earning")), SOLVENCY),
    Rule(
        "liquidity",
        "current_ratio",
        bands((1, -1, "short"), (1.5, 0, "adequate"), rest=(1, "ample")),
        SOLVENCY,
    ),
    Rule(
        "leverage",
        _leverage,
        bands((40, 2, "low"), (60, 0, "medium"), (75, -1, "high"), rest=(-2, "extreme")),
        SOLVENCY,
    ),
    Rule("net_debt", "netdebt", bands((0, 1, "net_cash"), rest=(0, "net_debt")), SOLVENCY),
    Rule(
        "profit_growth",
        "profit_growth",
        bands((-20, -2, "slump"), (0, -1, "down"), (10, 0, "slow"), (25, 1, "up"), rest=(2, "surge")),
        GROWTH,
    ),
    Rule("revenue_growth", "revenue_growth", bands((-5, -1, "down"), (5, 0, "flat"), rest=(1, "up")), GROWTH),
    Rule(
        "acceleration",
        lambda s: difference(s.profit_growth, s.profit_growth_before),
        bands((-5, -1, "slowing"), (5, 0, "steady"), rest=(1, "quickening")),
        GROWTH,
    ),
    Rule(
        "operating_leverage",
        lambda s: difference(s.profit_growth, s.revenue_growth),
        bands((-10, -1, "lagging"), (10, 0, "in_line"), rest=(1, "leading")),
        GROWTH,
    ),
)


def overall_score(card: Scorecard) -> int:
    """The mean of the dimensions that have data."""
    return round(fmean(score for d in FinancialDimension if (score := card.of(d).score_100) is not None))


def _concludes(s: FinancialSnapshot, card: Scorecard, say: Voice) -> FinancialResult:
    score = overall_score(card)
    signal = signal_for(score)
    say = with_extremes(FinancialDimension, card, say).also(score=score)
    conclusion, risk = say(f"conclusion.{signal}"), say(f"risk.{signal}")
    return FinancialResult(
        financial_score=score,
        signal=signal,
        confidence=card.confidence,
        summary_reasoning=summary(card, say, conclusion),
        dimension_analyses=analyses(FinancialDimension, card, say),
        key_risks=card.cons or [say("no_cons")],
        risk_warning=risk,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


def named_by_score(result: FinancialResult) -> tuple[FinancialResult, Sequence[Message]]:
    """The score decides; a model that named it otherwise is corrected, and the reader told."""
    score, signal = result.financial_score, signal_for(result.financial_score)
    if signal == result.signal:
        return result, ()
    remark = SAY("signal_from_score", score=score, said=result.signal, signal=signal)
    return result.model_copy(update={"signal": signal}), [remark]


class FinancialAuditorService(ExpertService[FinancialSnapshot, FinancialResult]):
    expert = ExpertType.FINANCIAL_AUDITOR
    rubric = Rubric(SAY, partial(mark, RULES), _concludes)
    remit = Remit(
        FOLDER,
        judging_each(FinancialDimension, FinancialResult),
        shows=("stock_name", "symbol", "industry", "report_period", "announced_on", "quarter_list"),
        settles=named_by_score,
    )

    async def run(self, symbol: str, limit: int = 5, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        if limit not in LIMITS:
            said = SAY("limit_out_of_range", limit=limit, least=LIMITS[0], most=LIMITS[-1])
            raise InvalidInput(said, field="limit")
        case = await self._open(symbol, as_of, locale)
        reports = await self._facts.reports(case.symbol, limit + EARLIER_PERIODS, as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        snapshot = financial_snapshot(case, reports, limit)
        evidence = measured(self.expert.prefix, snapshot, reports[0], labels=snapshot.quarter_list)
        return await self._report(case, snapshot, evidence)


SERVICE = FinancialAuditorService
