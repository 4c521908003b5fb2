"""Where today's multiples stand in their own past, worked out a second time from the raw table."""

from datetime import date, timedelta

import polars as pl
import pytest

from moot.modules.research.application.valuation_modeler import HISTORY_DAYS
from moot.modules.research.application.valuation_modeler.models import (
    MIN_VALID_HISTORY,
    find_usual,
    percentile,
)
from moot.shared.domain.symbol import Symbol
from tests.measured.real_market import RealMarket, at

DAYS = [date(2020, 2, 28), date(2020, 9, 1), date(2021, 5, 31), date(2022, 3, 15), date(2022, 12, 30)]
MULTIPLES = {"pe_ttm": "peTTM", "pb": "pbMRQ", "ps_ttm": "psTTM"}


def recomputed(past: pl.DataFrame, column: str) -> tuple[int | None, float | None]:
    """Rank of the last value among the positive ones, and their median, as a table query."""
    now = pl.col(column).last()
    valid = pl.col(column).filter(pl.col(column) > 0)
    found = past.select(
        rank=pl.when(now > 0).then((100 * (valid <= now).mean()).round()),
        median=valid.median(),
        days=valid.len(),
    ).row(0, named=True)
    enough = found["days"] >= MIN_VALID_HISTORY
    return (found["rank"], found["median"]) if enough else (None, None)


@pytest.mark.parametrize("day", DAYS, ids=str)
async def test_percentiles_and_medians_equal_those_of_the_raw_table(market: RealMarket, day: date) -> None:
    for text in market.sources:
        symbol, start = Symbol.parse(text), day - timedelta(days=HISTORY_DAYS)
        facts = market.reading(text)
        history = await facts.daily_valuations(symbol, start, day, as_of=at(day, 20))
        past = market.rows(text).filter(pl.col("date").is_between(start, day))
        assert len(history) == past.height
        for field, column in MULTIPLES.items():
            values = [getattr(entry, field) for entry in history]
            rank, median = recomputed(past, column)
            assert percentile(next(reversed(values), None), values) == rank
            assert find_usual(values) == (None if median is None else pytest.approx(median, abs=0.00501))


async def test_a_loss_has_no_rank_and_loss_days_count_in_no_history(market: RealMarket) -> None:
    """China Southern lost money from the pandemic on: its PE has a past of 78 days and no present."""
    facts, airline = market.reading("600029.SH"), Symbol.parse("600029.SH")
    history = await facts.daily_valuations(
        airline, date(2020, 1, 1), date(2022, 12, 30), as_of=at(date(2022, 12, 30), 20)
    )
    pe, pb = [day.pe_ttm for day in history], [day.pb for day in history]
    assert sum(value is not None and value > 0 for value in pe) == 78
    assert (percentile(pe[-1], pe), percentile(10.0, pe)) == (None, 0)
    assert percentile(pb[-1], pb) is not None
