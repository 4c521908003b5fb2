"""The event study: held against a plain reference, silent where events are few, fooled no oftener than it says."""

from random import Random
from statistics import fmean, stdev

import pytest

from moot.modules.research.domain.event_study import T_95, Study, add_up_abnormal, measure_after, study

DICE = Random(7)
STEPS = [(DICE.gauss(0, 0.02), DICE.gauss(0, 0.01)) for _ in range(400)]
STARTS = [5, 40, 61, 90, 130, 210, 260, 330]
HORIZON = 20


def walk(steps: list[float]) -> list[float]:
    prices = [100.0]
    for step in steps:
        prices.append(prices[-1] * (1 + step))
    return prices


SHARE, INDEX = walk([share for share, _ in STEPS]), walk([index for _, index in STEPS])


def test_it_is_the_sum_of_daily_returns_beyond_the_market() -> None:
    found = measure_after(add_up_abnormal(SHARE, INDEX), STARTS, HORIZON)
    plain = [100 * sum(share - index for share, index in STEPS[start : start + HORIZON]) for start in STARTS]
    assert found == pytest.approx(plain, abs=1e-9)
    told = study("deal", HORIZON, found)
    half = T_95[len(plain) - 2] * stdev(plain) / len(plain) ** 0.5
    assert (told.n, told.mean) == (8, pytest.approx(fmean(plain), abs=0.005))
    assert (told.low, told.high) == pytest.approx((fmean(plain) - half, fmean(plain) + half), abs=0.005)


def test_a_share_that_moves_as_the_market_does_has_done_nothing() -> None:
    assert add_up_abnormal(SHARE, SHARE) == pytest.approx([0.0] * len(SHARE))


def test_without_a_market_it_is_all_that_the_share_returned() -> None:
    assert add_up_abnormal([100, 110, 99], []) == pytest.approx([0, 10, 0])


def test_what_is_not_over_yet_and_what_began_during_another_is_left_out() -> None:
    sums = [float(n) for n in range(101)]
    assert measure_after(sums, [-1, 10, 15, 29, 30, 79, 81], 20) == [20.0, 20.0, 20.0]
    assert measure_after(sums, [80], 20) == [20.0]
    assert measure_after(sums, [81], 20) == []


@pytest.mark.parametrize(
    ("returns", "mean", "side"),
    [
        ([], None, 0),
        ([5.0, 5.1], None, 0),
        ([5.0, 5.1, 4.9, 5.0], 5.0, 0),
        ([5.0, 5.1, 4.9, 5.0, 5.2], 5.04, 1),
        ([-5.0, -5.1, -4.9, -5.0, -5.2], -5.04, -1),
        ([9.0, -5.1, 4.9, -8.0, 5.2], 1.2, 0),
    ],
)
def test_a_few_are_not_judged_and_fewer_are_not_told(
    returns: list[float], mean: float | None, side: int
) -> None:
    told = study("deal", 20, returns)
    assert (told.n, told.mean, told.side) == (len(returns), mean, side)


def test_where_there_is_nothing_it_finds_something_one_time_in_twenty() -> None:
    dice = Random(11)
    found = [study("deal", 20, [dice.gauss(0, 8) for _ in range(8)]).side for _ in range(2000)]
    assert 0.035 < sum(map(abs, found)) / len(found) < 0.065


def test_the_interval_is_about_as_wide_as_a_bootstrap_of_the_same_returns() -> None:
    dice = Random(3)
    returns = [dice.gauss(2, 8) for _ in range(20)]
    means = sorted(fmean(dice.choices(returns, k=len(returns))) for _ in range(4000))
    told = study("deal", 20, returns)
    assert told.low is not None
    assert told.high is not None
    assert (told.high - told.low) / (means[3899] - means[99]) == pytest.approx(1.0, abs=0.15)


def test_the_quantiles_are_those_of_students_t() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert list(T_95) == pytest.approx([stats.t.ppf(0.975, n) for n in range(1, 21)], abs=5e-4)


def test_the_interval_is_about_as_wide_as_that_of_arch() -> None:
    bootstrap = pytest.importorskip("arch.bootstrap")
    numpy = pytest.importorskip("numpy")
    dice = Random(5)
    returns = [dice.gauss(2, 8) for _ in range(20)]
    low, high = bootstrap.IIDBootstrap(numpy.array(returns), seed=1).conf_int(numpy.mean, 4000)[:, 0]
    told: Study = study("deal", 20, returns)
    assert told.low is not None
    assert told.high is not None
    assert (told.high - told.low) / (high - low) == pytest.approx(1.0, abs=0.2)
