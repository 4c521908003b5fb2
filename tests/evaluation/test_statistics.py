"""Intervals, ranks and probabilities against plain references and figures worked out by hand."""

import random
from datetime import date, timedelta
from statistics import fmean

import pytest

from moot.modules.evaluation.domain.statistics import (
    Dated,
    bin_by_tenths,
    contrast,
    correlate_ranks,
    estimate,
    find_brier,
    student,
)

T = {4: 2.776, 9: 2.262, 11: 2.201, 17: 2.110, 29: 2.045, 100: 1.984}
"""From a printed table."""


def days(count: int) -> list[date]:
    return [date(2020, 1, 1) + timedelta(days=30 * n) for n in range(count)]


def draw(chance: random.Random, dates: int, companies: int, together: float = 1.0) -> list[Dated]:
    """Companies of one date share a shock."""
    return [
        (day, shock + chance.gauss(0, 1))
        for day in days(dates)
        for shock in [chance.gauss(0, together)]
        for _ in range(chance.randint(1, companies))
    ]


def reference(values: list[Dated], moments: list[date], overlap: int) -> tuple[float, float]:
    """The mean and its deviation, as the double sum over all pairs that is in the books."""
    mean, place = fmean(value for _, value in values), {day: n for n, day in enumerate(moments)}
    total = 0.0
    for day, one in values:
        for other_day, other in values:
            apart = abs(place[day] - place[other_day])
            total += max(0.0, 1 - apart / (overlap + 1)) * (one - mean) * (other - mean)
    dates = len({day for day, _ in values})
    return mean, (total * dates / (dates - 1)) ** 0.5 / len(values)


@pytest.mark.parametrize("freedom", T)
def test_students_t_is_that_of_the_table(freedom: int) -> None:
    assert student(freedom) == pytest.approx(T[freedom], rel=3e-3 if freedom < 9 else 3e-4)


@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_the_interval_is_that_of_the_double_sum_over_pairs(overlap: int) -> None:
    values, moments = draw(random.Random(overlap), 12, 8), days(14)  # two dates nobody spoke on
    found = estimate(values, moments, overlap)
    mean, deviation = reference(values, moments, overlap)
    assert found and found.low is not None and found.high is not None
    assert (found.n, found.dates) == (len(values), 12)
    assert found.mean == pytest.approx(mean)
    assert (found.high - found.low) / 2 == pytest.approx(student(11) * deviation)


def test_the_interval_agrees_with_a_bootstrap_of_dates() -> None:
    values, chance = draw(random.Random(5), 60, 6), random.Random(6)
    by_date = [[value for day, value in values if day == one] for one in days(60)]
    means = sorted(fmean(v for date_ in chance.choices(by_date, k=60) for v in date_) for _ in range(2000))
    found = estimate(values, days(60))
    assert found and found.low is not None and found.high is not None
    width = found.high - found.low
    assert (found.low, found.high) == pytest.approx((means[50], means[1949]), abs=0.1 * width)


def test_the_interval_agrees_with_arch() -> None:
    bootstrap = pytest.importorskip("arch.bootstrap")
    np = pytest.importorskip("numpy")
    values = draw(random.Random(5), 60, 6)
    sums, counts = (
        [f(v for d, v in values if d == day) for day in days(60)] for f in (sum, lambda v: len(list(v)))
    )
    resampled = bootstrap.IIDBootstrap(np.array(sums), np.array(counts), seed=1)
    low, high = resampled.conf_int(lambda s, c: s.sum() / c.sum(), reps=2000, method="percentile").ravel()
    found = estimate(values, days(60))
    assert found and found.low is not None and found.high is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (found.high - found.low))


def test_nineteen_of_twenty_intervals_hold_what_is_there() -> None:
    chance, held = random.Random(7), 0
    for _ in range(400):
        found = estimate(draw(chance, 12, 20), days(12))
        assert found
        held += found.side == 0
    assert 0.92 <= held / 400 <= 0.98


def test_few_dates_have_no_interval_and_none_no_mean() -> None:
    assert estimate([], days(3)) is None
    found = estimate([(day, 1.0) for day in days(4)], days(4))
    assert found and (found.mean, found.low, found.side) == (1.0, None, 0)


def test_what_is_nothing_but_for_rounding_is_nothing() -> None:
    noise = [(day, sign * 1e-18) for day in days(6) for sign in (1, 1, 1)]
    found = estimate(noise, days(6))
    assert found and (found.mean, found.side) == (0.0, 0)


def test_a_contrast_is_the_difference_with_its_own_interval() -> None:
    """Shocks that both share cancel out of the difference, and so out of its interval."""
    one = [(day, n % 3 + 2.0) for n, day in enumerate(days(9))]
    other = [(day, n % 3 + 0.5) for n, day in enumerate(days(9))]
    found = contrast(one, other, days(9))
    assert found and (found.mean, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))


def test_rank_correlation_by_hand() -> None:
    assert correlate_ranks([(1, 10), (2, 20), (3, 30), (4, 40), (5, 1000)]) == pytest.approx(1)
    # ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 * 4 / (5 * 24)
    assert correlate_ranks([(1, 2), (2, 1), (3, 4), (4, 3), (5, 5)]) == pytest.approx(0.8)
    # ties share their place: 1.5 1.5 3 4 5 against 1 2 3 4 5
    assert correlate_ranks([(1, 1), (1, 2), (3, 3), (4, 4), (5, 5)]) == pytest.approx(9.5 / (9.5 * 10) ** 0.5)
    assert correlate_ranks([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]) is None
    assert correlate_ranks([(1, 1), (2, 2)]) is None


def test_brier_and_bins_by_hand() -> None:
    told = [(0.5, True), (0.5, False), (0.8, True), (0.85, False), (1.0, True)]
    assert find_brier(told) == pytest.approx((0.25 + 0.25 + 0.04 + 0.7225 + 0) / 5)
    bins = [(one.low, one.n, one.told, one.right) for one in bin_by_tenths(told)]
    assert bins == [(0.5, 2, 0.5, 0.5), (0.8, 2, pytest.approx(0.825), 0.5), (0.9, 1, 1.0, 1.0)]
    assert find_brier([(0.5, True), (0.5, False)]) == 0.25
    assert (find_brier([]), bin_by_tenths([])) == (None, [])
    assert [one.low for one in bin_by_tenths([(0.3, True), (0.7, True)])] == [0.3, 0.7], "edges belong above"
