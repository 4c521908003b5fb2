"""Books by quarter: flows of one quarter and of four, one source for all quarters, blank lines that mean nothing."""

import pytest

from moot.modules.research.domain.books import Books, last_full_year, name_quarter
from moot.shared.domain.facts import FinancialReport, Statement
from tests.fakes.research import SYMBOL, a_report, told

Q4, Q1, Q2 = 4 * 2025 + 3, 4 * 2026, 4 * 2026 + 1


def a_statement(year: int, quarter: int, **lines: float) -> Statement:
    report = a_report(year, quarter)
    filed = {"period_end": report.period_end, "announced_on": report.announced_on}
    return Statement(symbol=SYMBOL, **filed, **told(report.announced_on), **lines)


CASH = [
    a_statement(2025, 1, operating_cash=1.0),
    a_statement(2025, 2, operating_cash=3.0),
    a_statement(2025, 4, operating_cash=10.0),
    a_statement(2026, 1, operating_cash=2.0),
    a_statement(2026, 2, operating_cash=6.0),
]


def test_a_quarter_is_what_the_year_so_far_grew_by() -> None:
    books = Books([], CASH)
    assert (books.single("operating_cash", Q1), books.single("operating_cash", Q2)) == (2.0, 4.0)
    assert books.single("operating_cash", Q4) is None


def test_four_quarters_are_this_year_so_far_and_the_rest_of_last_year() -> None:
    books = Books([], CASH)
    assert books.trailing("operating_cash", Q2) == 6 + 10 - 3
    assert books.trailing("operating_cash", Q4) == 10
    assert books.trailing("operating_cash", Q4 - 1) is None


def test_quarters_are_named_and_the_last_full_year_is_found() -> None:
    assert [name_quarter(q) for q in (Q4, Q1)] == ["2025Q4", "2026Q1"]
    assert [last_full_year(q) for q in (Q4, Q1, Q2)] == [Q4, Q4, Q4]


def test_debt_that_a_balance_sheet_does_not_name_is_none_but_without_one_it_is_unknown() -> None:
    books = Books([], [a_statement(2025, 4, total_liabilities=5.0), a_statement(2026, 1, cash=1.0)])
    assert (books.at("bonds", Q4), books.at("bonds", Q1)) == (0.0, None)


@pytest.mark.parametrize(
    ("reports", "sales"),
    [
        ([a_report(2026, 1, net_profit=10.0, netprofit_margin=20.0)], 50.0),
        ([a_report(2026, 1, total_revenue=60.0, net_profit=10.0, netprofit_margin=20.0)], 60.0),
        ([a_report(2026, 1, total_revenue_ps=3.0, fcff=20.0, fcff_ps=1.0)], 60.0),
    ],
)
def test_sales_are_as_reported_or_follow_from_what_is(reports: list[FinancialReport], sales: float) -> None:
    assert Books(reports, []).at("sales", Q1) == pytest.approx(sales)


def test_profit_is_the_shareholders_own_where_anything_tells_it() -> None:
    all_of_it, own = [a_statement(2026, 1, net_profit=12.0)], [a_report(2026, 1, net_profit=10.0)]
    told_both, told_all = Books(own, all_of_it), Books([a_report(2026, 1, netprofit_margin=24.0)], all_of_it)
    assert (told_both.at("profit", Q1), told_both.minorities) == (10.0, False)
    assert (told_all.at("profit", Q1), told_all.minorities) == (12.0, True)
    assert told_all.at("sales", Q1) == pytest.approx(50.0), "a margin is of all the profit"


def test_sales_that_are_told_every_other_quarter_are_not_mixed_with_others() -> None:
    quarters = [(2026, 1), (2025, 4), (2025, 3), (2025, 2)]
    told_twice = {(2025, 4): 99.0, (2025, 2): 49.0}
    reports = [
        a_report(y, q, net_profit=10.0, netprofit_margin=20.0, total_revenue=told_twice.get((y, q)))
        for y, q in quarters
    ]
    assert [Books(reports, []).at("sales", q) for q in range(Q1, Q1 - 4, -1)] == [50.0] * 4
