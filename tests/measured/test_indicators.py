"""Our indicators against Tushare's, on prices adjusted the way Chinese platforms do it."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from moot.modules.research.infrastructure.indicators import indicator_values
from moot.modules.research.infrastructure.panel import Prices, rsi

WARM_UP = 120
"""Tushare's averages began years before the table does; by then the difference has faded."""
SLOW_WARM_UP = 200
MACD = {"macd_dif": "macd_dif", "macd_dea": "macd_dea", "macd_histogram": "macd"}
OTHERS = {
    "kdj_k": "kdj_k",
    "kdj_d": "kdj_d",
    "kdj_j": "kdj_j",
    "bb_upper": "boll_upper",
    "bb_middle": "boll_mid",
    "bb_lower": "boll_lower",
}


def histories(golden: pl.DataFrame, warm_up: int) -> Iterator[tuple[Prices, dict[str, float]]]:
    """Prices up to a day, and Tushare's row of that day: every symbol, every day after the warm-up."""
    for share in golden.partition_by("ts_code"):
        columns = (*(f"{name}_qfq" for name in ("open", "high", "low", "close")), "vol")
        series = share.select(columns).to_numpy().T
        series = np.concatenate([series, series[-1:]])  # nobody looks at the amounts
        for day in range(warm_up, share.height):
            upto = (np.ascontiguousarray(values[np.newaxis, : day + 1]) for values in series)
            yield Prices(*upto), share.row(day, named=True)


def test_macd_kdj_and_bollinger_equal_tushares_on_every_day_of_every_symbol(golden: pl.DataFrame) -> None:
    for prices, row in histories(golden, WARM_UP):
        ours = indicator_values(prices)
        assert {name: ours[name] for name in MACD} == pytest.approx(
            {name: row[theirs] for name, theirs in MACD.items()}, abs=2e-3, rel=0
        )
        assert {name: ours[name] for name in OTHERS} == pytest.approx(
            {name: row[theirs] for name, theirs in OTHERS.items()}, abs=2e-3, rel=1e-3
        )


@pytest.mark.parametrize(("period", "warm_up"), [(6, WARM_UP), (12, WARM_UP), (24, SLOW_WARM_UP)])
def test_rsi_equals_tushares(golden: pl.DataFrame, period: int, warm_up: int) -> None:
    for prices, row in histories(golden, warm_up):
        assert rsi(prices.close, period) == pytest.approx([row[f"rsi_{period}"]], abs=2e-3, rel=1e-3)
