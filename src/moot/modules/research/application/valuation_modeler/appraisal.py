"""How the snapshot of the valuation modeler is taken from what is known of a company."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import fmean, median
from typing import Any

from moot.modules.research.application.valuation_modeler import models
from moot.modules.research.application.valuation_modeler.snapshot import (
    FEWEST_SESSIONS,
    FEWEST_YEARS,
    ValuationSnapshot,
)
from moot.modules.research.domain.books import SHARES_CHANGED, Periods, quarter_number
from moot.modules.research.domain.facts import COMMON, Case
from moot.shared.domain.facts import DailyValuation, FinancialReport, MacroObservation, quarter_of
from moot.shared.domain.messages import Catalogue, Locale
from moot.shared.domain.peers import CrossSection

FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
FINANCE_PERIODS = 8
GROWTH_PERIODS = 4
FEWEST_PEERS = 4
MOST_PE = 100
"""Beyond it there are hardly any earnings, and a PE says nothing."""
EQUITY_PREMIUM = 5.5
"""In points over the government's ten-year yield; surveys of practitioners put China's between 5 and 7."""
USUAL_YIELD, USUAL_PAYOUT = 3.0, 30.0
"""Taken, and told to be, where neither is known: about China's mean, and what its regulator asks companies to pay."""

PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "gross_margin": (-100, 100),
    "roe_waa": (-500, 500),
    "netprofit_margin": (-1000, 1000),
    "debt_to_assets": (0, 300),
}
MULTIPLES = {"pe": "pe_ttm", "pb": "pb", "ps": "ps_ttm"}
STEADY = ("residual_value", "graham_intrinsic_val", "pe_implied_value", "pb_implied_value")
ON_BOOK = ("residual_value", "pb_implied_value")
"""The models that apply where one year's earnings mislead, and to those whose book is their trade."""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Material:
    """`history` is oldest first and ends today, `reports` are newest first."""

    history: Sequence[DailyValuation]
    reports: Sequence[FinancialReport]
    peers: CrossSection | None = None
    bond: MacroObservation | None = None

    @property
    def today(self) -> DailyValuation:
        return self.history[-1]

    def list_values(self, field: str) -> Sequence[float | None]:
        return [getattr(day, field) for day in self.history]


def valuation_snapshot(case: Case, material: Material) -> ValuationSnapshot:
    today, latest, first = material.today, material.reports[0], material.history[0].trade_date
    known = {
        **_rank_multiples(material),
        **(_place_among(material.peers) if material.peers else {}),
        **_quality(material.reports[:FINANCE_PERIODS], case.locale),
        **_per_share(material),
        **_growth(today, material.reports),
        **_assume(today, material.bond),
        **_list_returns(material.reports),
    }
    known |= _residual_income(today, known, case.sector.cyclical)
    return ValuationSnapshot(
        trade=case.sector.trade,
        stock_name=case.stock_name,
        stock_code=case.company.symbol,
        current_date=case.today,
        industry=case.industry,
        cyclical=case.sector.cyclical,
        report_period=latest.period_end,
        history_start=first,
        history_years=round((today.trade_date - first).days / 365.25, 1),
        current_price=today.close,
        total_mv=round(today.total_mv / 1e8, 2),
        dv_ratio=today.dv_ratio,
        **known,
        **_range_of(known, ON_BOOK if case.sector.cyclical or case.sector.trade != "company" else STEADY),
    )


def _rank_multiples(material: Material) -> Figures:
    found: Figures = {}
    for name, field in MULTIPLES.items():
        values = material.list_values(field)
        sessions, usual = len(models.keep_valid(values)), models.find_usual(values)
        found |= {
            field: values[-1],
            f"{name}_percentile": models.percentile(values[-1], values),
            f"{name}_median": usual,
            f"{name}_sessions": sessions,
        }
        if name != "ps":
            lasting = usual if sessions >= FEWEST_SESSIONS else None
            found[f"{name}_implied_value"] = models.implied_value(material.today.close, values[-1], lasting)
    return found


def _place_among(industry: CrossSection) -> Figures:
    """Beside enough of them; losses are no multiples, neither its own nor theirs."""
    found: Figures = {"profit_yoy": industry.own.profit_yoy}
    for name, field in (MULTIPLES | {"growth": "profit_yoy"}).items():
        own, *theirs = (
            value if value is not None and (value > 0 or name == "growth") else None
            for value in (getattr(peer, field) for peer in (industry.own, *industry.peers))
        )
        others = [value for value in theirs if value is not None]
        found[f"peer_{name}_count"] = len(others)
        if len(others) >= FEWEST_PEERS:
            found[f"peer_{name}_median"] = round(median(others), 2)
            found[f"peer_{name}_percentile"] = None if own is None else models.rank_among(own, others)
    return found


def _quality(reports: Sequence[FinancialReport], locale: Locale) -> Figures:
    implausible = sorted({name for report in reports for name in PLAUSIBLE if not _plausible(report, name)})
    cleaned = [_clean(report) for report in reports]
    latest = cleaned[0]
    periods, now = Periods(cleaned), quarter_number(latest)
    change = None if "gross_margin" in implausible else periods.change("gross_margin", now)
    return {
        "roe": latest.roe_waa,
        "roe_ttm": periods.trailing("roe_waa", now),
        "gros_profit_margin": latest.gross_margin,
        "gross_margin_change": change,
        "gross_margin_trend": margin_trend(change, locale),
        "net_profit_margin": latest.netprofit_margin,
        "debt_to_assets": latest.debt_to_assets,
        "implausible": implausible,
    }


def margin_trend(change: float | None, locale: Locale) -> str:
    if change is None:
        return SAY("not_available").in_locale(locale)
    size = round(change, 1)
    direction = "flat" if size == 0 else "up" if size > 0 else "down"
    return SAY(f"margin.{direction}", change=f"{abs(size):.1f}").in_locale(locale)


def _plausible(report: FinancialReport, name: str) -> bool:
    value, (low, high) = getattr(report, name), PLAUSIBLE[name]
    return value is None or low <= value <= high


def _clean(report: FinancialReport) -> FinancialReport:
    return report.model_copy(update={name: None for name in PLAUSIBLE if not _plausible(report, name)})


def _per_share(material: Material) -> Figures:
    """On today's shares. That their count changed is said only where it did since the year reported began: what a
    year earned is summed from reports on the shares of their own days.
    """
    today, latest = material.today, material.reports[0]
    eps_ttm = Periods(material.reports).trailing("eps", quarter_number(latest))
    reported = {"eps_ttm": eps_ttm, "bps": latest.bps}
    multiples = {"eps_ttm": today.pe_ttm, "bps": today.pb}
    used = {n: models.on_todays_shares(reported[n], today.close, multiples[n]) for n in reported}
    restated = any(reported[n] not in (None, used[n]) for n in used)
    begin = latest.period_end - timedelta(days=365)
    first = next((day for day in reversed(material.history) if day.trade_date <= begin), material.history[0])
    then, now = (day.shares or day.total_mv / day.close for day in (first, today))
    changed = abs(now / then - 1) > SHARES_CHANGED
    eps, bps = used["eps_ttm"], used["bps"]
    graham = models.graham_value(eps, bps)
    return {
        "eps_ttm": None if eps is None else round(eps, 4),
        "bps": bps,
        "graham_intrinsic_val": graham,
        "graham_safety_margin": models.safety_margin(graham, today.close),
        "rebased": restated and changed,
        "unmatched": restated and not changed,
        "shares_since": first.trade_date,
        "shares_then": then,
        "shares_now": now,
    }


def _growth(today: DailyValuation, reports: Sequence[FinancialReport]) -> Figures:
    growth, periods = growth_average(reports)
    return {
        "growth_rate_avg": growth,
        "growth_periods": periods,
        "peg_ratio": models.peg(today.pe_ttm, growth),
    }


def growth_average(reports: Sequence[FinancialReport]) -> tuple[float | None, int]:
    """The mean year-on-year growth of deducted profit over the last four periods, and how many of them had one."""
    periods = Periods(reports)
    growths = (periods.growth("profit_dedt", quarter_number(r)) for r in reports[:GROWTH_PERIODS])
    rates = [rate for rate in growths if rate is not None]
    return (round(fmean(rates), 1), len(rates)) if rates else (None, 0)


def _assume(today: DailyValuation, bond: MacroObservation | None) -> Figures:
    """What a model has to be told; a dividend yield times a PE is the part of the earnings that is paid out."""
    dividends, pe = today.dv_ratio, today.pe_ttm
    paid = None if dividends is None or pe is None or pe <= 0 else round(min(dividends * pe, 100.0), 1)
    risk_free = USUAL_YIELD if bond is None else bond.value
    return {
        "risk_free": risk_free,
        "equity_premium": EQUITY_PREMIUM,
        "cost_of_equity": round(risk_free + EQUITY_PREMIUM, 2),
        "payout": USUAL_PAYOUT if paid is None else paid,
        "fade_years": models.FADES[1],
        "assumed": [n for n, told in {"risk_free": bond, "payout": paid}.items() if told is None],
    }


def _list_returns(reports: Sequence[FinancialReport]) -> Figures:
    """The returns on equity of the full years known."""
    years = {
        r.period_end: r.roe_waa
        for r in reports
        if quarter_of(r.period_end)[1] == 4 and r.roe_waa is not None and _plausible(r, "roe_waa")
    }
    returns = list(years.values())
    return {
        "roe_years": len(returns),
        "roe_from": min(years, default=None),
        "roe_until": max(years, default=None),
        "roe_middle": round(median(returns), 2) if returns else None,
        "roe_worst": min(returns, default=None),
        "roe_best": max(returns, default=None),
    }


def _residual_income(today: DailyValuation, known: Figures, cyclical: bool) -> Figures:
    pe, pb = today.pe_ttm, today.pb
    found: Figures = {"residual_table": [], "residual_cases": []}
    if pb is None or pb <= 0:
        return found
    middle = known["roe_middle"] if known["roe_years"] >= FEWEST_YEARS else None
    roe = middle if cyclical else round(100 * pb / pe, 2) if pe and pe > 0 else None
    cost, payout, book = known["cost_of_equity"] / 100, known["payout"] / 100, today.close / pb
    implied = models.find_implied_roe(pb, models.Outlook(0.0, cost, payout))
    if implied is not None:
        growth = implied * (1 - payout)
        found |= {"implied_roe": round(100 * implied, 1), "implied_growth": round(100 * growth, 1)}
    if roe is None or roe <= 0:
        return found
    outlook = models.Outlook(roe / 100, cost, payout)
    cases = models.vary(outlook)
    table = [round(book * models.times_book(case), 2) for case in cases]
    value = round(book * models.times_book(outlook), 2)
    return found | {
        "mid_cycle_pe": round(100 * pb / roe, 2) if cyclical and 100 * pb / roe <= MOST_PE else None,
        "residual_roe": roe,
        "residual_value": value,
        "residual_margin": models.safety_margin(value, today.close),
        "residual_table": table,
        "residual_cases": [f"{10_000 * case.cost:.0f}bp_{case.fade}y" for case in cases],
        "residual_low": min(table),
        "residual_high": max(table),
    }


def _range_of(known: Figures, names: Sequence[str]) -> Figures:
    """From the lowest to the highest of the models that apply."""
    values = [round(value, 2) for name in names if (value := known.get(name)) is not None]
    return {"value_low": min(values, default=None), "value_high": max(values, default=None)}
