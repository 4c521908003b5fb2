"""The demo market looks like a market: its statistics lie where those of forty real A-shares lay."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import fmean, median, pstdev

import pytest

from tests.market_data.demo import Listing, Snapshot

Figure = Callable[[Listing], float]


def moves(listing: Listing) -> list[float]:
    return [bar.close / bar.pre_close - 1 for bar in listing.traded]


def volatility(listing: Listing) -> float:
    return 100 * pstdev(moves(listing))


def excess_kurtosis(listing: Listing) -> float:
    found = moves(listing)
    mean, deviation = fmean(found), pstdev(found)
    return fmean(((move - mean) / deviation) ** 4 for move in found) - 3


def autocorrelation(listing: Listing) -> float:
    found = moves(listing)
    mean, deviation = fmean(found), pstdev(found)
    return fmean((a - mean) * (b - mean) for a, b in pairwise(found)) / deviation**2


def median_ratio(name: str) -> Figure:
    def of(listing: Listing) -> float:
        found = (getattr(v, name) for v in listing.valuations)
        return median(value for value in found if value is not None and value > 0)

    return of


def full_years(listing: Listing, name: str) -> list[float]:
    return [getattr(r, name) for r in listing.reports if r.period_end.month == 12]


def median_full_year(name: str) -> Figure:
    return lambda listing: median(full_years(listing, name))


def profit_growth(listing: Listing) -> float:
    earned = full_years(listing, "profit_dedt")
    return median(now / before - 1 for before, now in pairwise(earned))


def cash_to_profit(listing: Listing) -> float:
    cash, earned = full_years(listing, "ocfps"), full_years(listing, "eps")
    return median(c / e for c, e in zip(cash, earned, strict=True))


@pytest.mark.parametrize(
    ("figure", "low", "high"),
    [
        pytest.param(volatility, 1.71, 3.19, id="daily volatility, %"),
        pytest.param(excess_kurtosis, 1.6, 7.4, id="excess kurtosis"),
        pytest.param(autocorrelation, -0.07, 0.07, id="lag-1 autocorrelation"),
        pytest.param(median_ratio("turnover_rate"), 0.13, 3.14, id="turnover, %"),
        pytest.param(median_ratio("pe_ttm"), 5.8, 101, id="positive PE"),
        pytest.param(median_ratio("pb"), 0.63, 14.2, id="PB"),
        pytest.param(median_ratio("ps_ttm"), 0.24, 18.6, id="PS"),
        pytest.param(median_full_year("roe_waa"), 0.7, 32.1, id="full-year ROE, %"),
        pytest.param(median_full_year("netprofit_margin"), 0.4, 38.7, id="net margin, %"),
        pytest.param(median_full_year("debt_to_assets"), 22, 91, id="liabilities to assets, %"),
        pytest.param(profit_growth, -0.72, 1.9, id="profit growth"),
        pytest.param(cash_to_profit, -0.5, 6.9, id="operating cash to profit"),
        pytest.param(median_full_year("assets_turn"), 0.08, 1.77, id="asset turnover"),
    ],
)
def test_the_median_company_lies_within_the_real_range(
    demo: Snapshot, figure: Figure, low: float, high: float
) -> None:
    assert low <= median(map(figure, demo.listings.values())) <= high


@pytest.mark.parametrize(
    ("month", "low", "middle", "high"),
    [(3, 21, 28, 30), (6, 41, 59, 62), (9, 22, 29, 31), (12, 70, 90, 120)],
)
def test_reports_come_out_with_the_real_lags(
    demo: Snapshot, month: int, low: int, middle: int, high: int
) -> None:
    lags = sorted(
        (report.announced_on - report.period_end).days
        for listing in demo.listings.values()
        for report in listing.reports
        if report.period_end.month == month and report.announced_on > listing.company.list_date
    )
    assert lags[len(lags) // 20] >= 0.85 * low
    assert median(lags) == pytest.approx(middle, rel=0.1)
    assert lags[-1] <= high + (month == 12)  # a leap year has one day more before the deadline


def test_rare_days_are_as_rare_as_they_are(demo: Snapshot) -> None:
    bars = [bar for listing in demo.listings.values() for bar in listing.bars]
    traded = [bar for bar in bars if not bar.suspended]
    ratios = [v.pe_ttm for listing in demo.listings.values() for v in listing.valuations if v.pe_ttm]
    assert 0.01 <= share(pe < 0 for pe in ratios) <= 0.15
    assert 0.001 <= share(bar.suspended for bar in bars) <= 0.02
    assert 0.001 <= share(abs(bar.close / bar.pre_close - 1) >= 0.0985 for bar in traded) <= 0.025


def test_a_share_goes_ex_right_about_once_a_year(demo: Snapshot) -> None:
    pairs = [pair for listing in demo.listings.values() for pair in pairwise(listing.bars)]
    assert 0.5 <= 243 * share(today.pre_close != before.close for before, today in pairs) <= 1.5


def test_the_companies_differ(demo: Snapshot) -> None:
    def spread(figure: Figure) -> float:
        found = [figure(listing) for listing in demo.listings.values()]
        return max(found) / min(found)

    assert spread(volatility) > 1.5
    assert spread(median_ratio("pe_ttm")) > 5
    assert spread(median_ratio("pb")) > 5
    assert spread(median_ratio("turnover_rate")) > 5
    assert spread(median_full_year("debt_to_assets")) > 2
    assert spread(median_full_year("assets_turn")) > 10


def share(flags: Iterable[bool]) -> float:
    return fmean(flags)
