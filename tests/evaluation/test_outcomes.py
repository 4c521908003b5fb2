"""What a share came to, against figures worked out by hand."""

from datetime import date, timedelta

import pytest

from moot.modules.evaluation.domain.observation import compare, find_month_ends, trade
from moot.shared.domain.facts import DailyBar
from tests.fakes.market_data import a_bar

MONDAY = date(2024, 1, 1)
SESSIONS = [day for n in range(140) if (day := MONDAY + timedelta(days=n)).weekday() < 5]


def bars(until: int = 100, **changed: dict[int, dict[str, object]]) -> list[DailyBar]:
    """A share at 10 that closes a tenth higher every session; what is `changed` is by session."""
    plain = [
        a_bar(day, open=10 + n / 10, high=99.0, low=1.0, close=10.1 + n / 10)
        for n, day in enumerate(SESSIONS[:until])
    ]
    at: dict[int, dict[str, object]] = changed.get("at", {})
    return [bar.model_copy(update=at.get(n, {})) for n, bar in enumerate(plain)]


def test_bought_at_the_next_open_and_sold_at_the_close_so_many_sessions_later() -> None:
    done = trade(bars(), SESSIONS, SESSIONS[3])
    assert {horizon: (one.bought, one.sold) for horizon, one in done.items()} == {
        5: (SESSIONS[4], SESSIONS[9]),
        20: (SESSIONS[4], SESSIONS[24]),
        60: (SESSIONS[4], SESSIONS[64]),
    }
    assert done[5].gain == pytest.approx((10.1 + 0.9) / (10 + 0.4) - 1)
    assert done[60].gain == pytest.approx((10.1 + 6.4) / (10 + 0.4) - 1)


def test_a_moment_on_a_closed_day_is_followed_by_the_next_session() -> None:
    saturday = SESSIONS[4] + timedelta(days=1)
    assert trade(bars(), SESSIONS, saturday)[5].bought == SESSIONS[5]


def test_what_an_ex_right_day_takes_from_the_price_is_no_loss() -> None:
    """Two shares for one between purchase and sale: half the price, twice the factor."""
    split = {
        n: {"open": (10 + n / 10) / 2, "close": (10.1 + n / 10) / 2, "adj_factor": 2.0} for n in range(7, 100)
    }
    plain, adjusted = (trade(some, SESSIONS, SESSIONS[3]) for some in (bars(), bars(at=split)))
    assert [adjusted[h].gain for h in adjusted] == pytest.approx([plain[h].gain for h in plain])


def test_who_cannot_sell_sells_at_the_next_close_at_which_the_share_trades() -> None:
    halted = {n: {"suspended": True, "close": 1.0} for n in (9, 10, 11)}
    done = trade(bars(at=halted), SESSIONS, SESSIONS[3])
    assert done[5].sold == SESSIONS[12]
    assert done[5].gain == pytest.approx((10.1 + 1.2) / (10 + 0.4) - 1)
    assert done[20].sold == SESSIONS[24], "suspended days count as sessions of the market"


def test_who_cannot_buy_on_the_morning_after_has_no_outcome() -> None:
    assert trade(bars(at={4: {"suspended": True}}), SESSIONS, SESSIONS[3]) == {}


@pytest.mark.parametrize(
    ("until", "known"), [(9, []), (10, [5]), (24, [5]), (25, [5, 20]), (65, [5, 20, 60])]
)
def test_where_the_data_end_before_there_is_no_outcome(until: int, known: list[int]) -> None:
    assert list(trade(bars(until), SESSIONS, SESSIONS[3])) == known


def test_a_share_that_never_trades_again_is_not_sold() -> None:
    gone = {n: {"suspended": True} for n in range(8, 100)}
    assert trade(bars(at=gone), SESSIONS, SESSIONS[3]) == {}


def test_excess_is_over_the_mean_of_those_with_an_outcome() -> None:
    made = {"up": trade(bars(), SESSIONS, SESSIONS[3]), "short": trade(bars(10), SESSIONS, SESSIONS[3])}
    made["down"] = {5: made["up"][5]._replace(gain=-0.1)}
    came = compare(made)
    rise = (10.1 + 0.9) / (10 + 0.4) - 1
    mean = (2 * rise - 0.1) / 3
    assert [came[name][5].excess for name in made] == pytest.approx([rise - mean, rise - mean, -0.1 - mean])
    assert came["up"][60].excess == 0, "alone it is the mean"
    assert list(came["short"]) == [5]


def test_the_last_session_of_each_month() -> None:
    assert find_month_ends(SESSIONS[:50]) == [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 8)]
