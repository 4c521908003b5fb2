"""Scores of a year's accounts, as published: financial strength, distress, manipulation, accruals, working capital.

A year is four quarters: flows are those of all four, balances those at their end. A score that lacks a line is None
and names the line.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, NamedTuple

from moot.modules.research.domain.books import Books, last_full_year, name_quarter
from moot.modules.research.domain.facts import Sector

DAYS_A_YEAR = 365
Find = Callable[[str, int], float | None]
"""A line of the accounts, so many years back."""
Parts = Mapping[str, float]


@dataclass(frozen=True)
class Score:
    """`parts` are what it was computed from."""

    value: float | None
    parts: Parts
    lacking: tuple[str, ...] = ()


class Lines:
    """What a formula asks for, as numbers; what is not there is remembered, and makes the result none."""

    def __init__(self, find: Find) -> None:
        self._find, self.lacking = find, dict[str, None]()

    def __call__(self, line: str, back: int = 0) -> float:
        value = self._find(line, back)
        if value is None:
            self.lacking[line] = None
            return nan
        return value

    def either(self, line: str, other: str) -> float:
        found = self._find(line, 0)
        return self(other) if found is None else found

    def change(self, line: str) -> float:
        return self(line) - self(line, 1)

    def average(self, line: str, back: int = 0) -> float:
        return (self(line, back) + self(line, back + 1)) / 2

    def long_debt(self, back: int) -> float:
        return self("long_debt", back) + self("bonds", back)


Formula = Callable[[Lines], tuple[float, Parts]]


def compute(formula: Formula, find: Find) -> Score:
    lines = Lines(find)
    value, parts = formula(lines)
    if lines.lacking or isnan(value):
        return Score(None, {}, tuple(lines.lacking))
    return Score(value, parts)


def piotroski(get: Lines) -> tuple[float, Parts]:
    """Piotroski (2000): nine signs of strength, a point for each part above zero, and for one without new equity.

    Returns and turnover are on the assets that the year began with, debt on their average. New shares that brought no
    money, as a bonus issue does, are no new equity: what came in is what equity grew by beyond the year's profit.
    """

    def on_opening(line: str, back: int = 0) -> float:
        return over(get(line, back), get("total_assets", back + 1))

    def debt(back: int) -> float:
        return over(get.long_debt(back), get.average("total_assets", back))

    profit, cash = on_opening("net_profit"), on_opening("operating_cash")
    raised = get.change("equity") - get("net_profit_parent") if get.change("shares") > 0 else 0.0
    parts = {
        "profit": profit,
        "cash": cash,
        "profit_change": profit - on_opening("net_profit", 1),
        "cash_over_profit": cash - profit,
        "less_debt": debt(1) - debt(0),
        "liquidity_change": current_ratio(get, 0) - current_ratio(get, 1),
        "no_new_equity": 0.0 - max(over(raised, get("equity", 1)), 0.0),
        "gross_margin_change": gross_margin(get, 0) - gross_margin(get, 1),
        "turnover_change": on_opening("revenue") - on_opening("revenue", 1),
    }
    holes = any(isnan(part) for part in parts.values())
    points = sum(part >= 0 if name == "no_new_equity" else part > 0 for name, part in parts.items())
    return nan if holes else points, parts


def altman_z(get: Lines) -> tuple[float, Parts]:
    """Altman (1968), for listed manufacturers: equity counts at its market value."""
    x = {
        **_altman_ratios(get),
        "value_to_debt": over(get("market_value"), get("total_liabilities")),
        "sales_to_assets": over(get("revenue"), get("total_assets")),
    }
    weights = (1.2, 1.4, 3.3, 0.6, 1.0)
    return sum(weight * ratio for weight, ratio in zip(weights, x.values(), strict=True)), x


def altman_z2(get: Lines) -> tuple[float, Parts]:
    """Altman's Z'' (1995), for all others and for emerging markets: equity at book value, no sales."""
    equity = get("equity") + get("minority_interest")
    x = {**_altman_ratios(get), "equity_to_debt": over(equity, get("total_liabilities"))}
    weights = (6.56, 3.26, 6.72, 1.05)
    return sum(weight * ratio for weight, ratio in zip(weights, x.values(), strict=True)), x


def _altman_ratios(get: Lines) -> dict[str, float]:
    assets = get("total_assets")
    earned = get("profit_before_tax") + get.either("interest_expense", "finance_expense")
    return {
        "working_capital_to_assets": over(get("current_assets") - get("current_liabilities"), assets),
        "retained_to_assets": over(get("retained_earnings"), assets),
        "ebit_to_assets": over(earned, assets),
    }


def beneish(get: Lines) -> tuple[float, Parts]:
    """Beneish (1999), all eight variables; accruals are profit less operating cash."""

    def index(measure: Callable[[int], float]) -> float:
        return over(measure(0), measure(1))

    def slack(back: int) -> float:
        return 1 - over(get("current_assets", back) + get("fixed_assets", back), get("total_assets", back))

    def wear(back: int) -> float:
        worn = get("depreciation", back)
        return over(worn, worn + get("fixed_assets", back))

    def overhead(back: int) -> float:
        return over(get("selling_expense", back) + get("admin_expense", back), get("revenue", back))

    def debt(back: int) -> float:
        return over(get("current_liabilities", back) + get.long_debt(back), get("total_assets", back))

    parts = {
        "receivables_index": index(lambda back: over(get("receivables", back), get("revenue", back))),
        "gross_margin_index": over(gross_margin(get, 1), gross_margin(get, 0)),
        "asset_quality_index": index(slack),
        "sales_growth_index": over(get("revenue"), get("revenue", 1)),
        "depreciation_index": over(wear(1), wear(0)),
        "overhead_index": index(overhead),
        "leverage_index": index(debt),
        "accruals_to_assets": over(get("net_profit") - get("operating_cash"), get("total_assets")),
    }
    weights = (0.92, 0.528, 0.404, 0.892, 0.115, -0.172, -0.327, 4.679)
    return -4.84 + sum(weight * part for weight, part in zip(weights, parts.values(), strict=True)), parts


def accruals(get: Lines) -> tuple[float, Parts]:
    """Sloan (1996): how much of the profit is no cash, by what the balance sheets tell, to average assets.

    Taxes owed, which he leaves out of the liabilities, are no line of the statements and stay among them.
    """
    parts = {
        "current_assets_change": get.change("current_assets") - get.change("cash"),
        "current_liabilities_change": get.change("current_liabilities") - get.change("short_debt"),
        "depreciation": get("depreciation"),
    }
    assets, gained, owed, worn = get.average("total_assets"), *parts.values()
    return over(gained - owed - worn, assets), {name: over(part, assets) for name, part in parts.items()}


def cash_cycle(get: Lines) -> tuple[float, Parts]:
    """Days from paying for goods to being paid for them, on average balances."""
    days = {
        "inventory": over(get.average("inventory"), get("cost_of_sales")),
        "receivables": over(get.average("receivables"), get("revenue")),
        "payables": over(get.average("payables"), get("cost_of_sales")),
    }
    days = {name: DAYS_A_YEAR * part for name, part in days.items()}
    return days["inventory"] + days["receivables"] - days["payables"], days


def current_ratio(get: Lines, back: int) -> float:
    return over(get("current_assets", back), get("current_liabilities", back))


def gross_margin(get: Lines, back: int) -> float:
    return over(get("revenue", back) - get("cost_of_sales", back), get("revenue", back))


def over(part: float, whole: float) -> float:
    return part / whole if whole else nan


class Altman(NamedTuple):
    """Below `distress` a company is likely to fail, above `safe` it is not."""

    variant: str
    formula: Formula
    distress: float
    safe: float


MANUFACTURERS = Altman("Z", altman_z, 1.81, 2.99)
OTHERS = Altman("Z''", altman_z2, 1.1, 2.6)


def score_accounts(sector: Sector, books: Books, now: int, market_value: float | None) -> dict[str, Any]:
    """Of the four quarters up to the latest report, or of the last full year where that allows more of them: some
    lines are told once or twice a year. A bank, an insurer and a broker keep no such accounts.
    """
    if sector.trade != "company":
        return {}
    altman = MANUFACTURERS if sector.manufacturer else OTHERS
    formulas: Mapping[str, Formula] = {
        "piotroski": piotroski,
        "altman": altman.formula,
        "beneish": beneish,
        "accruals": accruals,
        "cash_cycle": cash_cycle,
    }

    def compute_all(quarter: int) -> dict[str, Score]:
        def find(line: str, back: int) -> float | None:
            return market_value if line == "market_value" else books.year(line, quarter - 4 * back)

        return {name: compute(formula, find) for name, formula in formulas.items()}

    years = {quarter: compute_all(quarter) for quarter in dict.fromkeys((now, last_full_year(now)))}
    best = max(years, key=lambda quarter: _allow(years[quarter].values()))
    before = compute(cash_cycle, lambda line, back: books.year(line, best - 4 * back - 4))
    return {"scored_period": name_quarter(best), **_tell(years[best], altman, before.value)}


def _allow(scores: Collection[Score]) -> tuple[int, int]:
    """How many there are, and how little those lack that are not."""
    return sum(score.value is not None for score in scores), -sum(len(score.lacking) for score in scores)


def _tell(scores: Mapping[str, Score], altman: Altman, cycle_before: float | None) -> dict[str, Any]:
    values = {name: score.value for name, score in scores.items()}
    variant, _, distress, safe = altman
    limits = {"altman_variant": variant, "altman_distress": distress, "altman_safe": safe}
    return {
        "piotroski_score": values["piotroski"],
        "altman_score": _round(values["altman"]),
        **({} if values["altman"] is None else limits),
        "beneish_score": _round(values["beneish"]),
        "accruals_share": _round(values["accruals"], times=100),
        "cash_cycle": _round(values["cash_cycle"]),
        "cash_cycle_before": _round(cycle_before),
        **{
            f"{name}_parts": {part: round(value, 4) for part, value in score.parts.items()}
            for name, score in scores.items()
        },
        "lacking": {name: list(score.lacking) for name, score in scores.items() if score.lacking},
    }


def _round(value: float | None, times: int = 1) -> float | None:
    return None if value is None else round(times * value, 2)
