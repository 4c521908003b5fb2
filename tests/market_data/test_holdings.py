"""What the lake holds and how old it is: against the limit of its kind, in sessions or in days."""

from datetime import UTC, date, datetime

import pytest

from moot.modules.market_data.application.upkeep import hold
from moot.modules.market_data.domain.facts import BARS, COMPANIES, MACRO, REPORTS, UNLOCKS, Dataset
from moot.modules.market_data.domain.provider import Coverage

MONDAY = datetime(2026, 11, 16, 4, tzinfo=UTC)  # noon in Shanghai
FRIDAY = date(2026, 11, 13)


def kept(dataset: Dataset, newest: date | None) -> Coverage:
    subject = "600519.SH" if dataset.by_symbol else "CN"
    return Coverage(dataset.name, subject, (), 3, ("tushare",), MONDAY, newest=newest)


@pytest.mark.parametrize(
    ("dataset", "newest", "age", "too_old"),
    [
        (BARS, date(2026, 11, 16), 0, False),
        (BARS, FRIDAY, 1, False),
        (BARS, date(2026, 11, 9), 5, False),
        (BARS, date(2026, 11, 6), 6, True),
        (BARS, date(2026, 9, 30), 28, True),  # the holiday in October does not count
        (REPORTS, date(2026, 3, 31), 230, False),
        (REPORTS, date(2026, 3, 30), 231, True),
        (MACRO, date(2026, 10, 1), 46, False),
        (UNLOCKS, date(2027, 1, 4), None, False),
        (COMPANIES, None, None, False),
        (BARS, None, None, False),
    ],
)
def test_an_age_is_counted_as_the_limit_of_the_kind_counts(dataset, newest, age, too_old):
    held = hold(kept(dataset, newest), MONDAY)
    assert (held.age, held.too_old) == (age, too_old)


def test_beyond_the_calendar_weekdays_are_counted():
    held = hold(kept(BARS, date(2027, 12, 31)), datetime(2028, 1, 5, 4, tzinfo=UTC))
    assert held.age == 3


def test_the_day_is_that_of_the_exchange():
    late = datetime(2026, 11, 16, 16, 30, tzinfo=UTC)  # Tuesday in Shanghai
    assert hold(kept(BARS, FRIDAY), late).age == 2
