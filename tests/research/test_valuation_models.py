"""Valuation formulas, to the digit, and where they do not apply."""

import pytest

from moot.modules.research.application.valuation_modeler.appraisal import growth_average, margin_trend
from moot.modules.research.application.valuation_modeler.models import (
    find_usual,
    graham_value,
    implied_value,
    on_todays_shares,
    peg,
    percentile,
    safety_margin,
)
from moot.shared.domain.messages import Locale
from tests.fakes.research import a_report

HUNDRED = [float(n) for n in range(1, 101)]


class TestPercentile:
    @pytest.mark.parametrize(("current", "rank"), [(25.0, 25), (0.5, 0), (100.0, 100), (33.3, 33)])
    def test_is_the_share_of_days_that_were_no_dearer(self, current: float, rank: int) -> None:
        assert percentile(current, HUNDRED) == rank

    @pytest.mark.parametrize("current", [None, 0.0, -8.0])
    def test_a_loss_has_none(self, current: float | None) -> None:
        assert percentile(current, HUNDRED) is None

    def test_sixty_valid_days_are_needed(self) -> None:
        losses = [None, -5.0, 0.0] * 50
        assert percentile(30.0, [*HUNDRED[:59], *losses]) is None
        assert percentile(30.0, [*HUNDRED[:60], *losses]) == 50


class TestPeg:
    def test_is_pe_over_growth(self) -> None:
        assert peg(18.0, 14.5) == 1.24

    @pytest.mark.parametrize(
        ("pe", "growth"), [(18.0, 0.0), (18.0, -3.0), (-5.0, 10.0), (None, 10.0), (18.0, None)]
    )
    def test_needs_a_profit_that_grows(self, pe: float | None, growth: float | None) -> None:
        assert peg(pe, growth) is None

    def test_growth_is_the_mean_of_the_periods_that_have_one(self) -> None:
        reports = [
            a_report(2026, 1, profit_dedt=120.0),
            a_report(2025, 4, profit_dedt=440.0),
            a_report(2025, 3, profit_dedt=10.0),
            a_report(2025, 1, profit_dedt=100.0),
            a_report(2024, 4, profit_dedt=400.0),
            a_report(2024, 3, profit_dedt=-10.0),
        ]
        assert growth_average(reports) == (15.0, 2)

    def test_without_a_comparable_year_there_is_no_growth(self) -> None:
        assert growth_average([a_report(2026, 1, profit_dedt=120.0)]) == (None, 0)


class TestGraham:
    def test_is_the_root_of_22_5_times_earnings_times_book(self) -> None:
        assert graham_value(1.8, 12.0) == 22.05

    @pytest.mark.parametrize(
        ("eps", "bps"), [(0.0, 12.0), (-1.0, 12.0), (1.8, -2.0), (None, 12.0), (1.8, None)]
    )
    def test_needs_earnings_and_book_above_zero(self, eps: float | None, bps: float | None) -> None:
        assert graham_value(eps, bps) is None

    def test_margin_is_positive_when_the_price_is_below_value(self) -> None:
        assert safety_margin(22.05, 21.0) == 5.0
        assert safety_margin(22.05, 30.0) == -26.5
        assert safety_margin(None, 30.0) is None


class TestShareBasis:
    def test_reported_earnings_that_fit_the_markets_pe_are_taken_as_they_are(self) -> None:
        assert on_todays_shares(1.02, price=20.0, multiple=20.0) == 1.02

    def test_after_a_bonus_issue_they_are_brought_onto_todays_shares(self) -> None:
        assert on_todays_shares(1.3, price=20.0, multiple=20.0) == 1.0

    def test_without_a_multiple_there_is_nothing_to_compare_with(self) -> None:
        assert on_todays_shares(1.3, price=20.0, multiple=None) == 1.3


def test_a_share_at_its_usual_multiple() -> None:
    assert find_usual(HUNDRED) == 50.5
    assert find_usual(HUNDRED[:59]) is None
    assert implied_value(20.0, 40.0, 50.0) == 25.0
    assert implied_value(20.0, -40.0, 50.0) is None


@pytest.mark.parametrize(
    ("change", "locale", "text"),
    [
        (1.24, "zh-CN", "同比上升 1.2%"),
        (-0.86, "zh-CN", "同比下降 0.9%"),
        (0.04, "zh-CN", "持平"),
        (None, "zh-CN", "N/A"),
        (-0.86, "en-US", "down 0.9% on the year"),
    ],
)
def test_margin_trend_in_words(change: float | None, locale: Locale, text: str) -> None:
    assert margin_trend(change, locale) == text
