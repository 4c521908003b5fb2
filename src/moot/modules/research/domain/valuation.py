"""The valuation modeler's view: what the market pays, what it used to pay, and what simple models would pay."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.modules.research.domain.analyst import Confidence, ExpertResult
from moot.modules.research.domain.evidence import (
    COUNT,
    PRICE,
    HundredMillion,
    Percent,
    Points,
    Price,
    Rank,
    Ratio,
    Snapshot,
    Times,
)
from moot.modules.research.domain.facts import Company, Report, Valuation
from moot.modules.research.domain.periods import Periods, annualised
from moot.modules.research.domain.texts import SAY
from moot.modules.research.domain.valuation_models import (
    graham_value,
    growth_average,
    implied_value,
    on_todays_shares,
    peg,
    percentile,
    safety_margin,
    usual,
)
from moot.shared.domain.messages import Locale

HISTORY_DAYS = 3 * 365
FINANCE_PERIODS = 8

PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "gross_margin": (-100, 100),
    "roe_waa": (-500, 500),
    "netprofit_margin": (-1000, 1000),
    "debt_to_assets": (0, 300),
}

ValuationVerdict = Literal["Undervalued", "Fair", "Overvalued"]


class ValuationSnapshot(Snapshot):
    """`implausible` names reported fields that were out of all bounds and were therefore left out; `rebased` says
    that per-share figures did not fit today's share count and were brought onto it.
    """

    stock_name: str
    stock_code: str
    current_date: date
    industry: str
    report_period: date
    current_price: Annotated[float, PRICE]
    total_mv: HundredMillion
    pe_ttm: Times
    pe_percentile: Rank
    pe_median: Times
    pb: Times
    pb_percentile: Rank
    pb_median: Times
    ps_ttm: Times
    ps_percentile: Rank
    dv_ratio: Percent
    roe: Percent
    roe_annualised: Percent
    gros_profit_margin: Percent
    gross_margin_change: Points
    gross_margin_trend: str
    net_profit_margin: Percent
    debt_to_assets: Percent
    eps_ttm: Price
    bps: Price
    growth_rate_avg: Percent
    growth_periods: Annotated[int, COUNT]
    peg_ratio: Ratio
    graham_intrinsic_val: Price
    graham_safety_margin: Percent
    pe_implied_value: Price
    pb_implied_value: Price
    rebased: bool
    implausible: list[str]


FROM_REPORTS = (
    *("roe", "roe_annualised", "gros_profit_margin", "gross_margin_change", "net_profit_margin"),
    *("debt_to_assets", "eps_ttm", "bps", "growth_rate_avg", "growth_periods"),
)


class IntrinsicValueRange(BaseModel):
    model_config = ConfigDict(frozen=True)

    lower_bound: str
    upper_bound: str


class ValuationResult(ExpertResult):
    """`reasoning_summary` says whether a low price is an opportunity or a trap."""

    valuation_verdict: ValuationVerdict
    confidence_score: Confidence
    estimated_intrinsic_value_range: IntrinsicValueRange
    key_evidence: list[str] = Field(min_length=1)
    risk_factors: list[str] = Field(min_length=1)
    reasoning_summary: str


def margin_trend(change: float | None, locale: Locale) -> str:
    if change is None:
        return SAY("not_available").in_locale(locale)
    size = round(change, 1)
    direction = "flat" if size == 0 else "up" if size > 0 else "down"
    return SAY(f"valuation.margin.{direction}", change=f"{abs(size):.1f}").in_locale(locale)


def valuation_snapshot(
    company: Company,
    history: Sequence[Valuation],
    reports: Sequence[Report],
    current_date: date,
    locale: Locale,
) -> ValuationSnapshot:
    """`history` is oldest first and ends today; `reports` are newest first."""
    today, latest = history[-1], reports[0]
    return ValuationSnapshot(
        stock_name=company.names[locale],
        stock_code=company.symbol,
        current_date=current_date,
        industry=company.industries[locale],
        report_period=latest.period_end,
        **_market(today, history),
        **_quality(reports, locale),
        **_models(today, history, reports),
    )


def _market(today: Valuation, history: Sequence[Valuation]) -> dict[str, Any]:
    return {
        "current_price": today.close,
        "total_mv": round(today.total_mv / 1e8, 2),
        **{name: getattr(today, name) for name in ("pe_ttm", "pb", "ps_ttm", "dv_ratio")},
        "pe_percentile": percentile(today.pe_ttm, [day.pe_ttm for day in history]),
        "pb_percentile": percentile(today.pb, [day.pb for day in history]),
        "ps_percentile": percentile(today.ps_ttm, [day.ps_ttm for day in history]),
    }


def _quality(reports: Sequence[Report], locale: Locale) -> dict[str, Any]:
    implausible = sorted({name for report in reports for name in PLAUSIBLE if not _plausible(report, name)})
    cleaned = [_cleaned(report) for report in reports]
    latest = cleaned[0]
    change = None if "gross_margin" in implausible else Periods(cleaned).change(latest, "gross_margin")
    return {
        "roe": latest.roe_waa,
        "roe_annualised": annualised(latest, "roe_waa"),
        "gros_profit_margin": latest.gross_margin,
        "gross_margin_change": change,
        "gross_margin_trend": margin_trend(change, locale),
        "net_profit_margin": latest.netprofit_margin,
        "debt_to_assets": latest.debt_to_assets,
        "implausible": implausible,
    }


def _models(today: Valuation, history: Sequence[Valuation], reports: Sequence[Report]) -> dict[str, Any]:
    reported_eps, reported_bps = Periods(reports).trailing_year(reports[0], "eps"), reports[0].bps
    eps = on_todays_shares(reported_eps, today.close, today.pe_ttm)
    bps = on_todays_shares(reported_bps, today.close, today.pb)
    growth, periods = growth_average(reports)
    graham = graham_value(eps, bps)
    pe_median, pb_median = (usual([getattr(day, name) for day in history]) for name in ("pe_ttm", "pb"))
    return {
        "eps_ttm": None if eps is None else round(eps, 4),
        "bps": bps,
        "rebased": (eps, bps) != (reported_eps, reported_bps),
        "growth_rate_avg": growth,
        "growth_periods": periods,
        "peg_ratio": peg(today.pe_ttm, growth),
        "graham_intrinsic_val": graham,
        "graham_safety_margin": safety_margin(graham, today.close),
        "pe_median": pe_median,
        "pb_median": pb_median,
        "pe_implied_value": implied_value(today.close, today.pe_ttm, pe_median),
        "pb_implied_value": implied_value(today.close, today.pb, pb_median),
    }


def _plausible(report: Report, name: str) -> bool:
    value, (low, high) = getattr(report, name), PLAUSIBLE[name]
    return value is None or low <= value <= high


def _cleaned(report: Report) -> Report:
    return report.model_copy(update={name: None for name in PLAUSIBLE if not _plausible(report, name)})
