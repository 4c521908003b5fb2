"""What the auditor reads: the latest report, the year before, eight quarters, scores and what was told in advance."""

from collections.abc import Mapping, Sequence
from datetime import date
from statistics import pstdev
from typing import Annotated, Any, Literal

from pydantic import Field

from moot.modules.research.domain.accounting_scores import score_accounts
from moot.modules.research.domain.books import (
    Books,
    Periods,
    grow,
    name_quarter,
    percent_of,
    quarter_number,
    ratio,
    shares_of,
)
from moot.modules.research.domain.evidence import Counted, Snapshot
from moot.modules.research.domain.facts import Case, positive
from moot.shared.domain import units
from moot.shared.domain.facts import EarningsNotice, Figures, FinancialReport, Statement

Series = Annotated[dict[str, float | None], units.PERCENT]
Parts = Annotated[dict[str, float], units.Unit("plain", "", 4)]
TREND_QUARTERS, TREND_AT_LEAST = 8, 6
PERIODS_READ = 16
"""Eight quarters, the same a year before, and the start of the year that the first of those is in."""
LOSS, SMALLER_LOSS, OUT_OF_LOSS = -1e9, -1e7, 1e9
"""What no percentage tells of a forecast, beyond all that one could."""


class FinancialSnapshot(Snapshot, Figures):
    """The latest report, what follows from it and from the year before, and series with the newest first.

    `_ttm` is over the four quarters up to the latest report, `_before` over the four before those. Scores are of the
    four quarters up to `scored_period`; `lacking` names the lines that one could not be computed without.
    `profit_basis`: which profit the growth is of; `minorities`: net profit counts their part too. `notice_…`: what
    was told in advance of the next report.
    """

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
    profit_ttm: units.Amount
    fcff_ttm: units.Amount
    roic_annualised: units.Percent
    revenue_growth: units.Percent
    profit_growth: units.Percent
    profit_growth_before: units.Percent
    gross_margin_change: units.Points
    invturn_days_growth: units.Percent
    arturn_days_growth: units.Percent
    assets_turn_growth: units.Percent
    profit_basis: Literal["recurring", "net"]
    minorities: bool = False

    roe_ttm: units.Percent
    roe_ttm_before: units.Percent
    roa_ttm: units.Rate
    net_margin_ttm: units.Percent
    net_margin_ttm_before: units.Percent
    equity_to_assets: units.Percent
    revenue_rises: Counted
    revenue_quarters: Counted
    revenue_swing: units.Points
    profit_rises: Counted
    profit_quarters: Counted

    scored_period: str | None = None
    piotroski_score: Counted = None
    altman_variant: Literal["Z", "Z''"] | None = None
    altman_score: units.Ratio = None
    altman_distress: units.Ratio = None
    altman_safe: units.Ratio = None
    beneish_score: units.Ratio = None
    accruals_share: units.Percent = None
    cash_cycle: units.Days = None
    cash_cycle_before: units.Days = None
    lacking: dict[str, list[str]] = Field(default_factory=dict)

    notice_kind: Literal["forecast", "express"] | None = None
    notice_period: str | None = None
    notice_on: date | None = None
    notice_profit_low: units.Amount = None
    notice_profit_high: units.Amount = None
    notice_profit_before: units.Amount = None
    notice_change_low: units.Percent = None
    notice_change_high: units.Percent = None
    notice_revenue: units.Amount = None
    notice_revenue_growth: units.Percent = None

    quarter_list: list[str]
    revenue_growth_series: Annotated[list[float | None], units.PERCENT]
    profit_growth_series: Annotated[list[float | None], units.PERCENT]
    gross_margin_series: Annotated[list[float | None], units.PERCENT]
    roic_series: Annotated[list[float | None], units.PERCENT]
    fcff_series: Annotated[list[float | None], units.AMOUNT]
    invturn_days_series: Annotated[list[float | None], units.DAYS]
    arturn_days_series: Annotated[list[float | None], units.DAYS]
    revenue_by_quarter: Series
    profit_by_quarter: Series
    net_margin_by_quarter: Series
    roe_by_quarter: Series
    piotroski_parts: Parts = Field(default_factory=dict)
    altman_parts: Parts = Field(default_factory=dict)
    beneish_parts: Parts = Field(default_factory=dict)
    accruals_parts: Parts = Field(default_factory=dict)
    cash_cycle_parts: Annotated[dict[str, float], units.DAYS] = Field(default_factory=dict)

    @property
    def roe_course(self) -> float | None:
        return _course(self.roe_ttm, self.roe_ttm_before)

    @property
    def margin_course(self) -> float | None:
        return _course(self.net_margin_ttm, self.net_margin_ttm_before)

    @property
    def altman_place(self) -> float | None:
        """Below 0 in the zone of distress, from 1 on in the safe one: the two variants have limits of their own."""
        if self.altman_score is None or self.altman_distress is None or self.altman_safe is None:
            return None
        return (self.altman_score - self.altman_distress) / (self.altman_safe - self.altman_distress)

    @property
    def forecast_outlook(self) -> float | None:
        return self._outlook() if self.notice_kind == "forecast" else None

    @property
    def express_outlook(self) -> float | None:
        return self._outlook() if self.notice_kind == "express" else None

    def _outlook(self) -> float | None:
        low, high, before = self.notice_profit_low, self.notice_profit_high, self.notice_profit_before
        if low is None or high is None or before is None:
            return None
        if high < 0:
            return SMALLER_LOSS if low > before else LOSS
        if before <= 0:
            return OUT_OF_LOSS if low > 0 else None
        return 100 * ((low + high) / 2 / before - 1)


def _course(now: float | None, before: float | None) -> float | None:
    """By how much of itself a rate changed, in per cent; one below 1 % counts as that, lest a trifle seem much."""
    return None if now is None or before is None else 100 * (now - before) / max(abs(before), 1.0)


AS_REPORTED_SERIES = ("gross_margin", "roic", "fcff", "invturn_days", "arturn_days")


def financial_snapshot(
    case: Case,
    reports: Sequence[FinancialReport],
    limit: int,
    statements: Sequence[Statement],
    notices: Sequence[EarningsNotice],
    market_value: float | None,
) -> FinancialSnapshot:
    """`reports` are newest first and may reach further back than the `limit` periods that are shown."""
    latest, shown = reports[0], reports[:limit]
    periods, books = Periods(reports), Books(reports, statements)
    quarters = [quarter_number(report) for report in shown]
    now = quarters[0]
    return FinancialSnapshot(
        symbol=case.company.symbol,
        stock_name=case.stock_name,
        industry=case.industry,
        trade=case.sector.trade,
        report_period=name_quarter(now),
        announced_on=latest.announced_on,
        **{name: getattr(latest, name) for name in Figures.model_fields},
        **_derive(latest, periods, books, now),
        **_grow(reports, periods, books, now),
        **_follow(books, now),
        **score_accounts(case.sector, books, now, market_value),
        **_foretell(notices, books, now),
        quarter_list=[name_quarter(quarter) for quarter in quarters],
        revenue_growth_series=[periods.revenue_growth(quarter) for quarter in quarters],
        profit_growth_series=[periods.growth("profit_dedt", quarter) for quarter in quarters],
        **{f"{name}_series": [getattr(report, name) for report in shown] for name in AS_REPORTED_SERIES},
    )


def _derive(latest: FinancialReport, periods: Periods, books: Books, now: int) -> dict[str, float | None]:
    deducted = ratio(latest.profit_dedt, shares_of(latest) or books.at("shares", now))
    eps_ttm, ocfps_ttm = (periods.trailing(line, now) for line in ("eps", "ocfps"))
    profit, cash = (books.trailing(line, now) for line in ("profit", "cash_earned"))
    conversion = ratio(cash, positive(profit))
    return {
        "profit_dedt_ps": deducted,
        "deducted_share": ratio(deducted, positive(latest.eps)),
        "quality_ratio": ratio(latest.ocfps, latest.eps),
        "quality_ratio_ttm": ratio(ocfps_ttm, positive(eps_ttm)) if conversion is None else conversion,
        "eps_ttm": eps_ttm,
        "profit_ttm": profit,
        "fcff_ttm": periods.trailing("fcff", now),
        "roic_annualised": periods.annualise("roic", now),
        "gross_margin_change": periods.change("gross_margin", now),
        "invturn_days_growth": periods.growth("invturn_days", now),
        "arturn_days_growth": periods.growth("arturn_days", now),
        "assets_turn_growth": periods.growth("assets_turn", now),
        "equity_to_assets": None if latest.debt_to_assets is None else round(100 - latest.debt_to_assets, 2),
    }


def _grow(
    reports: Sequence[FinancialReport], periods: Periods, books: Books, now: int
) -> dict[str, float | str | None]:
    """Of recurring profit where it is reported, else of the profit there is."""
    growth = periods.revenue_growth(now)
    recurring = reports[0].profit_dedt is not None
    told, line = (periods, "profit_dedt") if recurring else (books, "profit")
    profit = [told.growth(line, quarter_number(report)) for report in reports[:2]]
    return {
        "profit_basis": "recurring" if recurring else "net",
        "minorities": books.minorities,
        "profit_growth": profit[0],
        "profit_growth_before": profit[1] if len(profit) > 1 else None,
        "revenue_growth": books.growth("sales", now) if growth is None else growth,
    }


def _follow(books: Books, now: int) -> dict[str, Any]:
    """Single quarters against the same a year before, and four quarters against the four before."""
    quarters = range(now, now - TREND_QUARTERS, -1)
    sales, profit = (_year_on_year(books, line, quarters) for line in ("sales", "profit"))
    margins = {q: percent_of(books.single("profit", q), books.single("sales", q)) for q in quarters}
    returns = {q: books.single("roe", q) for q in quarters}
    swings = [growth for growth in sales.values() if growth is not None]
    margin, turnover = books.margin(now), books.trailing("turnover", now)
    return {
        **_count("revenue", sales),
        **_count("profit", profit),
        "revenue_swing": round(pstdev(swings), 1) if len(swings) >= TREND_AT_LEAST else None,
        "net_margin_ttm": margin,
        "net_margin_ttm_before": books.margin(now - 4),
        "roe_ttm": books.trailing("roe", now),
        "roe_ttm_before": books.trailing("roe", now - 4),
        "roa_ttm": None if margin is None or turnover is None else round(margin * turnover, 2),
        "revenue_by_quarter": _name(sales),
        "profit_by_quarter": _name(profit),
        "net_margin_by_quarter": _name(margins),
        "roe_by_quarter": _name(returns),
    }


def _year_on_year(books: Books, line: str, quarters: range) -> dict[int, float | None]:
    return {q: grow(books.single(line, q), books.single(line, q - 4)) for q in quarters}


def _count(name: str, growth: Mapping[int, float | None]) -> dict[str, int | None]:
    """How many of the quarters that can be compared were better than a year before."""
    known = [rate for rate in growth.values() if rate is not None]
    enough = len(known) >= TREND_AT_LEAST
    rises = sum(rate > 0 for rate in known)
    return {f"{name}_rises": rises if enough else None, f"{name}_quarters": len(known) if enough else None}


def _name(values: Mapping[int, float | None]) -> dict[str, float | None]:
    return {name_quarter(q): None if value is None else round(value, 2) for q, value in values.items()}


def newest_notice(notices: Sequence[EarningsNotice], now: int) -> EarningsNotice | None:
    """The last that was told of the newest period that has no report yet."""
    ahead = [notice for notice in notices if quarter_number(notice) > now]
    return max(ahead, key=lambda notice: (notice.period_end, notice.available_at), default=None)


def _foretell(notices: Sequence[EarningsNotice], books: Books, now: int) -> dict[str, Any]:
    notice = newest_notice(notices, now)
    if notice is None:
        return {}
    ahead = quarter_number(notice)
    before = ahead - 4
    base = books.at("profit", before)
    low = _told_or_implied(notice.net_profit_low, base, notice.change_low)
    high = _told_or_implied(notice.net_profit_high, base, notice.change_high)
    return {
        "notice_kind": notice.kind,
        "notice_period": name_quarter(ahead),
        "notice_on": notice.announced_on,
        "notice_profit_low": low,
        "notice_profit_high": high,
        "notice_profit_before": base,
        "notice_change_low": grow(low, base),
        "notice_change_high": grow(high, base),
        "notice_revenue": notice.revenue,
        "notice_revenue_growth": grow(notice.revenue, books.at("sales", before)),
    }


def _told_or_implied(profit: float | None, base: float | None, change: float | None) -> float | None:
    """Where only the change is told, and there was a profit to change."""
    if profit is not None or change is None or base is None or base <= 0:
        return profit
    return base * (1 + change / 100)
