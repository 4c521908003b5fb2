"""How the financial auditor grades a company's books by rule."""

from functools import partial
from statistics import fmean

from moot.modules.research.domain.financial import (
    FinancialDimension,
    FinancialResult,
    FinancialSnapshot,
    signal_for,
)
from moot.modules.research.domain.scorecard import Rule, Scorecard, bands, mark
from moot.modules.research.domain.voice import Voice
from moot.modules.research.infrastructure.rubrics.rubric import (
    Rubric,
    analyses,
    narrative,
    summary,
    with_extremes,
)

QUALITY = FinancialDimension.EARNINGS_QUALITY
EFFICIENCY = FinancialDimension.EFFICIENCY
RETURNS = FinancialDimension.RETURNS
SOLVENCY = FinancialDimension.SOLVENCY
GROWTH = FinancialDimension.GROWTH

SLOWER_IS_WORSE = bands((-5, 2, "faster"), (10, 0, "steady"), (30, -1, "slower"), rest=(-2, "jump"))


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _leverage(s: FinancialSnapshot) -> float | None:
    """Books without current assets are a bank's or an insurer's: its debts are its trade."""
    return None if s.current_ratio is None else s.debt_to_assets


RULES: tuple[Rule[FinancialSnapshot], ...] = (
    Rule(
        "cash_backing",
        lambda s: s.quality_ratio_ttm,
        bands((0, -2, "negative"), (0.6, -1, "thin"), (0.9, 0, "fair"), rest=(2, "solid")),
        QUALITY,
    ),
    Rule("profit", lambda s: s.eps_ttm, bands((0, -1, "loss"), rest=(1, "profit")), QUALITY),
    Rule(
        "core_profit",
        lambda s: s.deducted_share,
        bands((0.5, -1, "oneoff"), (0.85, 0, "mixed"), rest=(1, "core")),
        QUALITY,
    ),
    Rule("inventory", lambda s: s.invturn_days_growth, SLOWER_IS_WORSE, EFFICIENCY),
    Rule("receivables", lambda s: s.arturn_days_growth, SLOWER_IS_WORSE, EFFICIENCY),
    Rule(
        "turnover",
        lambda s: s.assets_turn_growth,
        bands((-5, -1, "slower"), (5, 0, "steady"), rest=(1, "faster")),
        EFFICIENCY,
    ),
    Rule(
        "roic",
        lambda s: s.roic_annualised,
        bands((4, -2, "poor"), (8, 0, "modest"), (15, 1, "good"), rest=(2, "excellent")),
        RETURNS,
    ),
    Rule(
        "roe",
        lambda s: s.roe_annualised,
        bands((5, -1, "poor"), (10, 0, "modest"), rest=(1, "good")),
        RETURNS,
    ),
    Rule(
        "margin",
        lambda s: s.gross_margin,
        bands((15, -1, "thin"), (40, 0, "medium"), rest=(1, "thick")),
        RETURNS,
    ),
    Rule(
        "margin_change",
        lambda s: s.gross_margin_change,
        bands((-1, -1, "down"), (1, 0, "steady"), rest=(1, "up")),
        RETURNS,
    ),
    Rule("free_cash", lambda s: s.fcff_ttm, bands((0, -2, "burning"), rest=(2, "earning")), SOLVENCY),
    Rule(
        "liquidity",
        lambda s: s.current_ratio,
        bands((1, -1, "short"), (1.5, 0, "adequate"), rest=(1, "ample")),
        SOLVENCY,
    ),
    Rule(
        "leverage",
        _leverage,
        bands((40, 2, "low"), (60, 0, "medium"), (75, -1, "high"), rest=(-2, "extreme")),
        SOLVENCY,
    ),
    Rule("net_debt", lambda s: s.netdebt, bands((0, 1, "net_cash"), rest=(0, "net_debt")), SOLVENCY),
    Rule(
        "profit_growth",
        lambda s: s.profit_growth,
        bands((-20, -2, "slump"), (0, -1, "down"), (10, 0, "slow"), (25, 1, "up"), rest=(2, "surge")),
        GROWTH,
    ),
    Rule(
        "revenue_growth",
        lambda s: s.revenue_growth,
        bands((-5, -1, "down"), (5, 0, "flat"), rest=(1, "up")),
        GROWTH,
    ),
    Rule(
        "acceleration",
        lambda s: _difference(s.profit_growth, s.profit_growth_before),
        bands((-5, -1, "slowing"), (5, 0, "steady"), rest=(1, "quickening")),
        GROWTH,
    ),
    Rule(
        "operating_leverage",
        lambda s: _difference(s.profit_growth, s.revenue_growth),
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
    say = with_extremes("financial", FinancialDimension, card, say).also(score=score)
    conclusion, risk = say(f"financial.conclusion.{signal}"), say(f"financial.risk.{signal}")
    return FinancialResult(
        financial_score=score,
        signal=signal,
        confidence=card.confidence,
        summary_reasoning=summary(card, say, conclusion),
        dimension_analyses=analyses("financial", FinancialDimension, card, say),
        key_risks=card.cons or [say("financial.no_cons")],
        risk_warning=risk,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


FINANCIAL_RUBRIC = Rubric(partial(mark, "financial", RULES), _concludes)
