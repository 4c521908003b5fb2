"""Growth, trailing years and shares: a quarter is compared with itself a year before, and nothing is invented."""

import pytest

from moot.modules.research.domain.books import Periods, name_quarter, quarter_number, ratio
from moot.shared.domain.facts import FinancialReport
from tests.fakes.research import a_report

Q1 = quarter_number(a_report(2026, 1))


def growth(now: float | None, before: float | None) -> float | None:
    reports = [a_report(2026, 1, profit_dedt=now), a_report(2025, 1, profit_dedt=before)]
    return Periods(reports).growth("profit_dedt", Q1)


class TestGrowth:
    @pytest.mark.parametrize(
        ("now", "before", "rate"),
        [(120.0, 100.0, 20.0), (100.0, 120.0, -16.7), (-50.0, 100.0, -150.0), (100.0, 100.0, 0.0)],
    )
    def test_is_over_the_same_quarter_in_per_cent(self, now: float, before: float, rate: float) -> None:
        assert growth(now, before) == rate

    @pytest.mark.parametrize(("now", "before"), [(50.0, -100.0), (50.0, 0.0), (None, 100.0), (50.0, None)])
    def test_from_a_loss_from_nothing_or_from_the_unknown_there_is_none(
        self, now: float | None, before: float | None
    ) -> None:
        assert growth(now, before) is None

    def test_an_adjacent_quarter_is_no_base(self) -> None:
        reports = [a_report(2026, 1, profit_dedt=120.0), a_report(2025, 4, profit_dedt=100.0)]
        assert Periods(reports).growth("profit_dedt", Q1) is None


class TestRevenue:
    @staticmethod
    def reports(shares: float) -> list[FinancialReport]:
        return [
            a_report(2026, 1, total_revenue_ps=5.5 / shares, fcff=1e8, fcff_ps=1.0 / shares),
            a_report(2025, 1, total_revenue_ps=5.0, fcff=1e8, fcff_ps=1.0),
        ]

    def test_grows_per_share(self) -> None:
        assert Periods(self.reports(shares=1.0)).revenue_growth(Q1) == 10.0

    def test_a_bonus_issue_is_not_a_loss_of_business(self) -> None:
        periods = Periods(self.reports(shares=1.25))
        assert periods.growth("total_revenue_ps", Q1) == -12.0
        assert periods.revenue_growth(Q1) == 10.0

    def test_without_a_share_count_it_stays_per_share(self) -> None:
        reports = [r.model_copy(update={"fcff": None}) for r in self.reports(shares=1.25)]
        assert Periods(reports).revenue_growth(Q1) == -12.0


class TestTrailingYear:
    def test_is_this_year_so_far_plus_last_year_less_last_year_so_far(self) -> None:
        reports = [a_report(2026, 1, eps=0.5), a_report(2025, 4, eps=1.6), a_report(2025, 1, eps=0.3)]
        assert Periods(reports).trailing("eps", Q1) == 1.8

    def test_of_an_annual_report_is_the_year_itself(self) -> None:
        assert Periods([a_report(2025, 4, eps=1.6)]).trailing("eps", Q1 - 1) == 1.6

    @pytest.mark.parametrize("missing", [(2025, 4), (2025, 1)])
    def test_needs_both_reports_of_the_year_before(self, missing: tuple[int, int]) -> None:
        reports = [a_report(y, q, eps=1.0) for y, q in [(2026, 1), (2025, 4), (2025, 1)] if (y, q) != missing]
        assert Periods(reports).trailing("eps", Q1) is None


def test_change_is_in_the_unit_of_the_figure() -> None:
    reports = [a_report(2026, 1, gross_margin=41.2), a_report(2025, 1, gross_margin=43.0)]
    assert Periods(reports).change("gross_margin", Q1) == -1.8


def test_a_quarters_return_is_scaled_to_a_year() -> None:
    periods = Periods([a_report(2026, 1, roic=3.0), a_report(2025, 4, roic=12.0)])
    assert [periods.annualise("roic", quarter) for quarter in (Q1, Q1 - 1, Q1 - 2)] == [12.0, 12.0, None]


def test_quarters_have_names() -> None:
    assert [name_quarter(quarter_number(a_report(2025, q))) for q in (1, 2, 3, 4)] == [
        "2025Q1",
        "2025Q2",
        "2025Q3",
        "2025Q4",
    ]


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(1.0, 3.0, 0.33), (1.0, 0.0, None), (None, 3.0, None), (1.0, None, None)]
)
def test_ratio_needs_both_and_a_whole(
    part: float | None, whole: float | None, expected: float | None
) -> None:
    assert ratio(part, whole) == expected
