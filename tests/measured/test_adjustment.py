"""Factors found from reference prices, and what adjusting by them does to real ex-right days."""

from datetime import UTC, datetime
from itertools import pairwise
from math import isclose

import polars as pl
import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.facts import BARS
from moot.modules.market_data.infrastructure.providers.files import FilesProvider
from moot.shared.domain.symbol import Market, Symbol
from tests.measured.real_market import EVER, RealMarket

LATER = datetime(2025, 1, 1, tzinfo=UTC)
EX_RIGHT_DAYS = 134


async def test_factors_from_reference_prices_equal_tushares(
    golden: pl.DataFrame, golden_bars: FilesProvider
) -> None:
    for (symbol,), share in golden.group_by("ts_code", maintain_order=True):
        bars = await golden_bars.read(BARS, str(symbol), *EVER)
        theirs = (share["adj_factor"] / share["adj_factor"][0]).to_list()
        assert bars.refused == ()
        assert [bar.adj_factor for bar in bars] == pytest.approx(theirs, rel=3e-4)


async def test_adjusted_closes_are_tushares_but_for_the_day_they_are_adjusted_to(
    golden: pl.DataFrame, golden_bars: FilesProvider
) -> None:
    data = MarketData({Market.CN: golden_bars})
    for (symbol,), share in golden.group_by("ts_code", maintain_order=True):
        bars = await data.daily_bars(Symbol.parse(str(symbol)), *EVER, as_of=LATER)
        theirs = share["close_qfq"] / share["close_qfq"][-1] * share["close"][-1]
        assert [bar.close for bar in bars] == pytest.approx(theirs.to_list(), rel=3e-4)


async def test_an_adjusted_series_moves_only_as_much_as_the_day_did(market: RealMarket) -> None:
    """The move against the reference price is the true one; on an ex-right day the raw closes tell another."""
    ex_right = 0
    for symbol, source in market.sources.items():
        bars = await market.reading(symbol).daily_bars(Symbol.parse(symbol), *EVER, as_of=LATER)
        for (before, day), (raw_before, raw) in zip(pairwise(bars), pairwise(source.bars), strict=True):
            assert isclose(day.close / before.close, raw.close / raw.pre_close, rel_tol=1e-9)
            ex_right += raw.pre_close != raw_before.close
        assert bars[-1] == source.bars[-1]
    assert ex_right == EX_RIGHT_DAYS
