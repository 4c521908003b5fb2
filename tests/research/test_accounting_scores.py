"""Published scores, against a second reckoning by hand and against financetoolkit where it is installed.

Its definitions are those of the papers but for one: it takes money raised by issuing shares as given, where we infer
it. It has no Z'', which is held against the plain reckoning alone.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime
from math import isclose
from typing import Any

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.domain import accounting_scores as scores
from moot.modules.research.domain.accounting_scores import Score, compute
from moot.modules.research.domain.books import Books, quarter_number
from moot.shared.domain.facts import Statement
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.clock import FixedClock

Year = dict[str, float]
LINES = (
    *("revenue", "cost_of_sales", "selling_expense", "admin_expense", "interest_expense", "depreciation"),
    *("profit_before_tax", "net_profit", "net_profit_parent", "operating_cash", "cash", "receivables"),
    *("inventory", "current_assets", "fixed_assets", "total_assets", "short_debt", "payables"),
    *("current_liabilities", "long_debt", "bonds", "total_liabilities", "retained_earnings", "equity"),
    *("minority_interest", "shares", "market_value"),
)
SIGNED = ("profit_before_tax", "net_profit", "net_profit_parent", "operating_cash", "retained_earnings")
NOW = datetime(2026, 6, 26, 12, tzinfo=UTC)


def a_year(draw: random.Random) -> Year:
    lines = {name: draw.uniform(1, 100) for name in LINES}
    lines |= {name: draw.uniform(-30, 60) for name in SIGNED}
    return lines | {"total_assets": draw.uniform(150, 300), "shares": float(draw.choice((10, 10, 12)))}


def random_cases() -> list[list[Year]]:
    """Four years each, the newest first."""
    draw = random.Random(17)
    return [[a_year(draw) for _ in range(4)] for _ in range(200)]


def demo_cases() -> list[list[Year]]:
    """Of the steel maker, the chip maker and the distiller, at the end of several quarters."""
    data = MarketData({Market.DEMO: DemoMarket(seed=7, clock=FixedClock(NOW))})
    found = []
    for text in ("900001.DEMO", "900003.DEMO", "900004.DEMO"):
        told = asyncio.run(data.read(Statement, Symbol.parse(text), as_of=NOW))
        books, newest = Books([], told), quarter_number(told[-1])
        for end in range(newest, newest - 6, -1):
            years = [
                {n: books.year(n, end - 4 * back) for n in LINES if n != "market_value"} for back in range(4)
            ]
            found.append(
                [{n: v for n, v in year.items() if v is not None} | {"market_value": 5e9} for year in years]
            )
    return found


@pytest.fixture(scope="module")
def cases() -> list[list[Year]]:
    return random_cases() + demo_cases()


def by(formula: scores.Formula, years: list[Year]) -> Score:
    return compute(formula, lambda line, back: years[back].get(line))


def reckon_piotroski(years: list[Year]) -> float:
    now, last, before_last, _ = years
    points = now["net_profit"] > 0
    points += now["operating_cash"] > 0
    points += now["net_profit"] / last["total_assets"] > last["net_profit"] / before_last["total_assets"]
    points += now["operating_cash"] > now["net_profit"]
    debt = [
        (a["long_debt"] + a["bonds"]) / (a["total_assets"] + b["total_assets"])
        for a, b in ((now, last), (last, before_last))
    ]
    points += debt[0] < debt[1]
    points += (
        now["current_assets"] * last["current_liabilities"]
        > last["current_assets"] * now["current_liabilities"]
    )
    points += not raised(years) > 0
    points += now["cost_of_sales"] / now["revenue"] < last["cost_of_sales"] / last["revenue"]
    return points + (now["revenue"] / last["total_assets"] > last["revenue"] / before_last["total_assets"])


def raised(years: list[Year]) -> float:
    now, last, *_ = years
    came = now["equity"] - last["equity"] - now["net_profit_parent"]
    return max(came, 0.0) if now["shares"] > last["shares"] else 0.0


def reckon_z(years: list[Year]) -> float:
    y = years[0]
    sums = 1.2 * (y["current_assets"] - y["current_liabilities"]) + 1.4 * y["retained_earnings"]
    sums += 3.3 * (y["profit_before_tax"] + y["interest_expense"]) + y["revenue"]
    return sums / y["total_assets"] + 0.6 * y["market_value"] / y["total_liabilities"]


def reckon_z2(years: list[Year]) -> float:
    y = years[0]
    sums = 6.56 * (y["current_assets"] - y["current_liabilities"]) + 3.26 * y["retained_earnings"]
    sums += 6.72 * (y["profit_before_tax"] + y["interest_expense"])
    return sums / y["total_assets"] + 1.05 * (y["equity"] + y["minority_interest"]) / y["total_liabilities"]


def reckon_beneish(years: list[Year]) -> float:
    def shares(y: Year) -> tuple[float, ...]:
        sales, assets, worn = y["revenue"], y["total_assets"], y["depreciation"]
        return (
            y["receivables"] / sales,
            (sales - y["cost_of_sales"]) / sales,
            1 - (y["current_assets"] + y["fixed_assets"]) / assets,
            worn / (worn + y["fixed_assets"]),
            (y["selling_expense"] + y["admin_expense"]) / sales,
            (y["current_liabilities"] + y["long_debt"] + y["bonds"]) / assets,
        )

    now, last = shares(years[0]), shares(years[1])
    bills, margin, slack, wear, overhead, debt = (a / b for a, b in zip(now, last, strict=True))
    growth = years[0]["revenue"] / years[1]["revenue"]
    tata = (years[0]["net_profit"] - years[0]["operating_cash"]) / years[0]["total_assets"]
    score = -4.84 + 0.92 * bills + 0.528 / margin + 0.404 * slack + 0.892 * growth + 0.115 / wear
    return score - 0.172 * overhead + 4.679 * tata - 0.327 * debt


def reckon_accruals(years: list[Year]) -> float:
    now, last = years[0], years[1]

    def tied(y: Year) -> float:
        return y["current_assets"] - y["cash"] - y["current_liabilities"] + y["short_debt"]

    return 2 * (tied(now) - tied(last) - now["depreciation"]) / (now["total_assets"] + last["total_assets"])


def reckon_cycle(years: list[Year]) -> float:
    now, last = years[0], years[1]
    flows = {"inventory": "cost_of_sales", "receivables": "revenue", "payables": "cost_of_sales"}
    days = {name: 365 * (now[name] + last[name]) / 2 / now[flow] for name, flow in flows.items()}
    return days["inventory"] + days["receivables"] - days["payables"]


BY_HAND: dict[scores.Formula, Callable[[list[Year]], float]] = {
    scores.piotroski: reckon_piotroski,
    scores.altman_z: reckon_z,
    scores.altman_z2: reckon_z2,
    scores.beneish: reckon_beneish,
    scores.accruals: reckon_accruals,
    scores.cash_cycle: reckon_cycle,
}


@pytest.mark.parametrize("formula", BY_HAND, ids=lambda formula: formula.__name__)
def test_a_score_is_what_it_comes_to_by_hand(formula: scores.Formula, cases: list[list[Year]]) -> None:
    for years in cases:
        value = by(formula, years).value
        assert value is not None
        assert isclose(value, BY_HAND[formula](years), rel_tol=1e-9, abs_tol=1e-9)


def test_the_cases_reach_from_weak_to_strong(cases: list[list[Year]]) -> None:
    assert {by(scores.piotroski, years).value for years in cases} >= {1, 2, 3, 4, 5, 6, 7, 8}
    assert any(raised(years) > 0 for years in cases)


@pytest.mark.parametrize("formula", BY_HAND, ids=lambda formula: formula.__name__)
def test_a_score_that_lacks_a_line_is_none_and_names_it(
    formula: scores.Formula, cases: list[list[Year]]
) -> None:
    years = cases[0]
    asked = dict[str, None]()
    compute(formula, lambda line, back: asked.setdefault(line) or years[back][line])
    for line in asked:
        bare = [{name: value for name, value in year.items() if name != line} for year in years]
        score = by(formula, bare)
        assert (score.value, score.parts) == (None, {})
        assert score.lacking in ((line,), ("finance_expense",))


def test_without_sales_there_is_no_score_rather_than_a_crash(cases: list[list[Year]]) -> None:
    years = [year | {"revenue": 0.0, "cost_of_sales": 0.0} for year in cases[0]]
    for formula in (scores.piotroski, scores.beneish, scores.cash_cycle):
        assert by(formula, years) == Score(None, {})


def test_new_shares_that_brought_no_money_are_no_new_equity() -> None:
    last = a_year(random.Random(3)) | {"shares": 10.0, "equity": 100.0}
    bonus = last | {"shares": 12.0, "equity": 104.0, "net_profit_parent": 5.0}
    issue = bonus | {"equity": 130.0}
    points = [by(scores.piotroski, [now, last, last, last]).value for now in (bonus, issue)]
    assert points[0] is not None
    assert points == [points[0], points[0] - 1]


# ---------------------------------------------------------------- financetoolkit


class Table:
    """The years of all cases as the toolkit takes them: a row each, the oldest first."""

    def __init__(self, cases: list[list[Year]]) -> None:
        self._cases, self._pandas = cases, pytest.importorskip("pandas")

    def __getattr__(self, line: str) -> Any:
        return self._pandas.DataFrame([[year[line] for year in reversed(years)] for years in self._cases])

    @property
    def long(self) -> Any:
        return self.long_debt + self.bonds


def agree(formula: scores.Formula, cases: list[list[Year]], told: Any) -> bool:
    ours = [by(formula, years).value for years in cases]
    theirs = told.iloc[:, -1].tolist()
    return ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)


def test_piotroski_is_that_of_financetoolkit(cases: list[list[Year]]) -> None:
    kit, t = pytest.importorskip("financetoolkit.models.piotroski_model"), Table(cases)
    opening = t.total_assets.shift(1, axis=1)
    issued = (t.total_assets * 0).add([raised(years) for years in cases], axis=0)
    score = kit.get_piotroski_score(
        kit.get_return_on_assets_criteria(t.net_profit, opening),
        kit.get_operating_cashflow_criteria(t.operating_cash),
        kit.get_change_in_return_on_asset_criteria(t.net_profit, opening),
        kit.get_accruals_criteria(t.net_profit, t.operating_cash, opening),
        kit.get_change_in_leverage_criteria(t.long, (t.total_assets + opening) / 2),
        kit.get_change_in_current_ratio_criteria(t.current_assets, t.current_liabilities),
        kit.get_number_of_shares_criteria(issued),
        kit.get_gross_margin_criteria(t.revenue, t.cost_of_sales),
        kit.get_asset_turnover_ratio_criteria(t.revenue, opening),
    )
    assert agree(scores.piotroski, cases, score)


def test_altmans_z_is_that_of_financetoolkit(cases: list[list[Year]]) -> None:
    kit, t = pytest.importorskip("financetoolkit.models.altman_model"), Table(cases)
    working, earned = t.current_assets - t.current_liabilities, t.profit_before_tax + t.interest_expense
    score = kit.get_altman_z_score(
        kit.get_working_capital_to_total_assets_ratio(working, t.total_assets),
        kit.get_retained_earnings_to_total_assets_ratio(t.retained_earnings, t.total_assets),
        kit.get_earnings_before_interest_and_taxes_to_total_assets_ratio(earned, t.total_assets),
        kit.get_market_value_of_equity_to_book_value_of_total_liabilities_ratio(
            t.market_value, t.total_liabilities
        ),
        kit.get_sales_to_total_assets_ratio(t.revenue, t.total_assets),
    )
    assert agree(scores.altman_z, cases, score)


def test_beneishs_m_is_that_of_financetoolkit(cases: list[list[Year]]) -> None:
    kit, t = pytest.importorskip("financetoolkit.models.beneish_model"), Table(cases)
    overhead = t.selling_expense + t.admin_expense
    score = kit.get_beneish_m_score(
        kit.get_days_sales_in_receivables_index(t.receivables, t.revenue),
        kit.get_gross_margin_index(t.revenue, t.cost_of_sales),
        kit.get_asset_quality_index(t.current_assets, t.fixed_assets, t.total_assets),
        kit.get_sales_growth_index(t.revenue),
        kit.get_depreciation_index(t.depreciation, t.fixed_assets),
        kit.get_selling_general_and_administrative_expenses_index(overhead, t.revenue),
        kit.get_leverage_index(t.current_liabilities, t.long, t.total_assets),
        kit.get_total_accruals_to_total_assets(t.net_profit, t.operating_cash, t.total_assets),
    )
    assert agree(scores.beneish, cases, score)


def test_accruals_are_those_of_financetoolkit(cases: list[list[Year]]) -> None:
    kit, t = pytest.importorskip("financetoolkit.models.quality_model"), Table(cases)
    no_taxes, no_investing = t.total_assets * 0, t.total_assets * 0
    told = kit.get_accruals_ratios(
        *(t.current_assets, t.cash, t.current_liabilities, t.short_debt, no_taxes, t.depreciation),
        *(t.net_profit, t.operating_cash, no_investing, t.total_assets),
    )
    assert agree(scores.accruals, cases, told["Balance Sheet Accruals Ratio"])


def test_the_cash_cycle_is_that_of_financetoolkit(cases: list[list[Year]]) -> None:
    kit, t = pytest.importorskip("financetoolkit.ratios.efficiency_model"), Table(cases)
    goods, bills, owed = (
        (held + held.shift(1, axis=1)) / 2 for held in (t.inventory, t.receivables, t.payables)
    )
    cycle = kit.get_cash_conversion_cycle(
        kit.get_days_of_inventory_outstanding(goods, t.cost_of_sales),
        kit.get_days_of_sales_outstanding(bills, t.revenue),
        kit.get_days_of_accounts_payable_outstanding(t.cost_of_sales, owed),
    )
    assert agree(scores.cash_cycle, cases, cycle)
