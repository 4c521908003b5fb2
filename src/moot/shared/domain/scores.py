"""The scores of Altman, Beneish and Piotroski, and the ratios they are made of, from statements of full years.

A ratio is None where a line of it was not reported or it would divide by nothing, a score where one of its ratios is:
banks have none. Debt and interest that nobody reports are none.
"""

from collections.abc import Mapping
from math import isfinite, nan

from moot.shared.domain.facts import Statement

Ratios = dict[str, float | None]

ALTMAN = {"working_capital": 1.2, "retained": 1.4, "ebit": 3.3, "market_to_liabilities": 0.6, "sales": 1.0}
ALTMAN_OTHERS = {"working_capital": 6.56, "retained": 3.26, "ebit": 6.72, "book_to_liabilities": 1.05}
"""For companies that make nothing: Z''."""
BENEISH = {
    "receivables": 0.92,
    "gross_margin": 0.528,
    "asset_quality": 0.404,
    "sales": 0.892,
    "depreciation": 0.115,
    "expenses": -0.172,
    "accruals": 4.679,
    "leverage": -0.327,
}
BENEISH_BASE = -4.84
NONE_UNLESS_TOLD = ("long_debt", "bonds", "interest_expense")
NO_NEW_SHARES = 0.001  # rounding, of all shares


def score(weights: Mapping[str, float], ratios: Ratios, base: float = 0.0) -> float | None:
    parts = [weight * (nan if (value := ratios[name]) is None else value) for name, weight in weights.items()]
    return _tell({"": base + sum(parts)})[""]


def list_altman_ratios(now: Statement, market_value: float | None) -> Ratios:
    """All of total assets, but for what all shares are worth on the market, or in the books, to the liabilities."""
    lines = _read(now)
    assets, owed = lines["total_assets"], lines["total_liabilities"]
    ratios = {
        "working_capital": _per(lines["current_assets"] - lines["current_liabilities"], assets),
        "retained": _per(lines["retained_earnings"], assets),
        "ebit": _per(lines["profit_before_tax"] + lines["interest_expense"], assets),
        "market_to_liabilities": _per(nan if market_value is None else market_value, owed),
        "book_to_liabilities": _per(lines["equity"], owed),
        "sales": _per(lines["revenue"], assets),
    }
    return _tell(ratios)


def list_beneish_ratios(now: Statement, before: Statement) -> Ratios:
    """Each is this year's to last year's, or the other way round, such that more is worse; accruals are of assets."""
    this, last = _read(now), _read(before)
    levels, levels_before = _beneish_levels(this), _beneish_levels(last)
    grown = {name: _per(level, levels_before[name]) for name, level in levels.items()}
    grown |= {name: _per(1.0, grown[name]) for name in ("gross_margin", "depreciation")}
    return _tell(
        {**grown, "accruals": _per(this["net_profit"] - this["operating_cash"], this["total_assets"])}
    )


def _beneish_levels(lines: Mapping[str, float]) -> dict[str, float]:
    sold, assets, worn = lines["revenue"], lines["total_assets"], lines["depreciation"]
    return {
        "receivables": _per(lines["receivables"], sold),
        "gross_margin": _per(sold - lines["cost_of_sales"], sold),
        "asset_quality": 1 - _per(lines["current_assets"] + lines["fixed_assets"], assets),
        "sales": sold,
        "depreciation": _per(worn, worn + lines["fixed_assets"]),
        "expenses": _per(lines["selling_expense"] + lines["admin_expense"], sold),
        "leverage": _per(lines["current_liabilities"] + lines["long_debt"] + lines["bonds"], assets),
    }


def list_piotroski_ratios(now: Statement, before: Statement) -> Ratios:
    """Flows are of the assets at the start of the year."""
    lines, opening = _read(now), _read(before)["total_assets"]
    sold, assets = lines["revenue"], (opening + lines["total_assets"]) / 2
    ratios = {
        "return": _per(lines["net_profit"], opening),
        "cash_return": _per(lines["operating_cash"], opening),
        "leverage": _per(lines["long_debt"] + lines["bonds"], assets),
        "current_ratio": _per(lines["current_assets"], lines["current_liabilities"]),
        "gross_margin": _per(sold - lines["cost_of_sales"], sold),
        "turnover": _per(sold, opening),
        "shares": lines["shares"],
    }
    return _tell(ratios)


def list_piotroski_signals(
    now: Ratios, before: Ratios, bonus_per_share: float = 0.0
) -> dict[str, bool] | None:
    """Nine that are good when true, of this year's ratios and last year's; shares for nothing are no new shares."""
    if None in now.values() or None in before.values():
        return None
    this, last = ({name: value or 0.0 for name, value in ratios.items()} for ratios in (now, before))
    return {
        "profit": this["return"] > 0,
        "cash": this["cash_return"] > 0,
        "better_return": this["return"] > last["return"],
        "cash_backs_profit": this["cash_return"] > this["return"],
        "less_debt": this["leverage"] < last["leverage"],
        "more_liquid": this["current_ratio"] > last["current_ratio"],
        "no_new_shares": this["shares"] <= last["shares"] * (1 + bonus_per_share) * (1 + NO_NEW_SHARES),
        "better_margin": this["gross_margin"] > last["gross_margin"],
        "better_turnover": this["turnover"] > last["turnover"],
    }


def _read(statement: Statement) -> dict[str, float]:
    numbers = {name: value for name, value in statement if isinstance(value, int | float | None)}
    return {
        name: (0.0 if name in NONE_UNLESS_TOLD else nan) if value is None else float(value)
        for name, value in numbers.items()
    }


def _per(part: float, whole: float) -> float:
    return part / whole if whole else nan


def _tell(ratios: Mapping[str, float]) -> Ratios:
    return {name: value if isfinite(value) else None for name, value in ratios.items()}
