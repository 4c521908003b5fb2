"""Residual income against plain references, its table, and the price read the other way round."""

import random
from dataclasses import replace

import pytest

from moot.modules.research.application.valuation_modeler.models import (
    FADES,
    Outlook,
    find_implied_roe,
    rank_among,
    times_book,
    vary,
)

OUTLOOKS = [
    Outlook(roe, cost, payout, fade)
    for roe in (-0.05, 0.03, 0.09, 0.15, 0.35)
    for cost in (0.06, 0.09, 0.12)
    for payout in (0.0, 0.3, 1.0)
    for fade in FADES
]


def dividends_and_what_is_left(outlook: Outlook) -> float:
    """The same worth by another way: all that is paid out, and the book in the end, at the cost of equity."""
    book, worth = 1.0, 0.0
    for year in range(1, outlook.fade + 1):
        roe = outlook.roe - (outlook.roe - outlook.cost) * (year - 1) / outlook.fade
        worth += outlook.payout * roe * book / (1 + outlook.cost) ** year
        book += (1 - outlook.payout) * roe * book
    return worth + book / (1 + outlook.cost) ** outlook.fade


@pytest.mark.parametrize("outlook", OUTLOOKS, ids=str)
def test_it_is_what_shareholders_are_paid_and_what_is_left_to_them(outlook: Outlook) -> None:
    assert times_book(outlook) == pytest.approx(dividends_and_what_is_left(outlook), abs=1e-12)


@pytest.mark.parametrize("outlook", [o for o in OUTLOOKS if o.payout == 1.0], ids=str)
def test_where_all_is_paid_out_it_is_an_annuity_that_shrinks(outlook: Outlook) -> None:
    cost, years = outlook.cost, outlook.fade
    annuity = (1 - (1 + cost) ** -years) / cost
    shrinking = (years - annuity) / cost / years
    assert times_book(outlook) == pytest.approx(1 + (outlook.roe - cost) * shrinking, abs=1e-12)


def test_a_book_that_earns_its_cost_is_worth_itself() -> None:
    for payout in (0.0, 0.4, 1.0):
        assert times_book(Outlook(0.09, 0.09, payout)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("outlook", OUTLOOKS, ids=str)
def test_the_price_read_the_other_way_round_is_the_model_inverted(outlook: Outlook) -> None:
    found = find_implied_roe(times_book(outlook), replace(outlook, roe=0.0))
    assert found == pytest.approx(outlook.roe, abs=1e-6)


def test_a_price_beyond_all_returns_assumes_none() -> None:
    outlook = Outlook(0.0, 0.09, 0.3)
    assert find_implied_roe(-5.0, outlook) is None
    assert find_implied_roe(1e9, outlook) is None


@pytest.mark.parametrize(("roe", "later_is"), [(0.2, "more"), (0.03, "less")])
def test_the_table_falls_with_the_cost_and_moves_one_way_with_the_years(roe: float, later_is: str) -> None:
    outlook = Outlook(roe, 0.085, 0.3)
    cases = vary(outlook)
    assert [(round(case.cost, 3), case.fade) for case in cases] == [
        (cost, fade) for cost in (0.075, 0.085, 0.095) for fade in FADES
    ]
    worth = [times_book(case) for case in cases]
    rows, columns = [worth[n : n + 3] for n in (0, 3, 6)], [worth[n::3] for n in range(3)]
    assert all(column == sorted(column, reverse=True) for column in columns)
    assert all(row == sorted(row, reverse=later_is == "less") for row in rows)
    assert worth[4] == times_book(outlook)


def test_a_rank_among_peers_is_as_a_naive_count_has_it() -> None:
    draw = random.Random(7)
    for _ in range(200):
        others = [float(draw.randint(1, 9)) for _ in range(draw.randint(1, 12))]
        own = float(draw.randint(0, 10))
        below, equal = sum(v < own for v in others), sum(v == own for v in others)
        assert rank_among(own, others) == round(100 * (below + equal / 2) / len(others))
