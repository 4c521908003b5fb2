"""What a screen costs on top of bare TA-Lib over the same arrays: indicators, rules, weights, ranks of 5,000 shares.

Bars are random walks; making them is not measured, and neither is reading, which is told beside it.
"""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.line import Line
from moot.modules.debate.application.leaning import Leaning
from moot.modules.market_data.application.columns import schema_of
from moot.modules.market_data.application.many import Wanted
from moot.modules.market_data.application.universe import OF_BARS
from moot.modules.market_data.domain.facts import BARS
from moot.modules.market_data.infrastructure.cross_section import MeasuringLake
from moot.modules.research.application.marking import Asked, find_leans
from moot.modules.research.application.technical_analyst import SERVICE
from moot.modules.research.application.technical_analyst.screening import SERIES, chart_many
from moot.modules.research.infrastructure.panel import Prices, measure
from moot.modules.research.infrastructure.ta_lib import talib
from moot.shared.domain.facts import DailyBar

SHARES, DAYS, ROUNDS = 5_000, 500, 5
BUDGET = 3.0
LAST = date(2026, 6, 30)
MOMENT = datetime(2026, 6, 30, 12, tzinfo=UTC)
Numbers = NDArray[np.float64]


async def lines() -> list[Line]:
    frame = walk_randomly()
    arrays = [frame[name].to_numpy().reshape(SHARES, DAYS) for name in SERIES]
    ours: list[float] = []
    theirs: list[float] = []
    gc.freeze()  # what other parts have loaded is not looked through on the screen's account
    for _ in range(ROUNDS):
        ours.append(cpu(lambda: screen(frame)))
        theirs.append(cpu(lambda: ask_talib(arrays)))
    gc.unfreeze()
    moot, bare = statistics.median(ours), statistics.median(theirs)
    with tempfile.TemporaryDirectory() as folder:
        read = await read_lake(Path(folder), frame)
    detail = f"{moot:.2f} s against {bare:.2f} s of CPU, {SHARES:,} x {DAYS} bars; read from the lake in {read:.2f} s"
    return [Line("screen / bare TA-Lib, same indicators", moot / bare, BUDGET, detail)]


def screen(frame: pl.DataFrame) -> list[tuple[float, str]]:
    """From bars to ranks, by the experts' own rules and the debate's weights."""
    charts = chart_many(frame, lambda *series: measure(Prices(*series)))
    asked = Asked(SERVICE, SERVICE.rules(), list(charts.values()))
    scores = [asked.score(dimension) for dimension in asked.dimensions]
    assert len(asked.list_missing()) == len(scores[0]) == SHARES
    return sorted(zip(find_leans([asked], Leaning(20)), charts, strict=True), reverse=True)


def ask_talib(arrays: Sequence[Numbers]) -> None:
    """The indicators that the rules go by, as TA-Lib has them, and nothing else."""
    for open_, high, low, close, volume, amount in zip(*arrays, strict=True):
        for days in (5, 20, 60, 200):
            talib.SMA(close, days)
        talib.MACD(close, 12, 26, 9)
        talib.RSI(close, 14)
        for function in (talib.ADX, talib.PLUS_DI, talib.MINUS_DI, talib.ATR):
            function(high, low, close, 14)
        talib.OBV(close, volume)
        talib.SMA(amount, 20)
        talib.STDDEV(close, 20)
        for days in (7, 20):
            talib.MIN(low, days)
            talib.MAX(high, days)
        talib.CDLENGULFING(open_, high, low, close)


def walk_randomly() -> pl.DataFrame:
    chance = np.random.default_rng(1)

    def noise(spread: float) -> Numbers:
        return chance.normal(0, spread, (SHARES, DAYS))

    close = 20 * np.exp(np.cumsum(noise(0.02), axis=1))
    opened = close * np.exp(noise(0.005))
    high = np.maximum(opened, close) * np.exp(np.abs(noise(0.005)))
    low = np.minimum(opened, close) * np.exp(-np.abs(noise(0.005)))
    volume = np.floor(np.exp(14 + noise(0.5)))
    series = dict(zip(SERIES, (opened, high, low, close, volume, volume * close), strict=True))
    days = [LAST - timedelta(days=n) for n in range(DAYS)][::-1]
    return pl.DataFrame(
        {
            "symbol": np.repeat([f"{600_000 + n}.SH" for n in range(SHARES)], DAYS),
            "trade_date": days * SHARES,
            **{name: values.ravel() for name, values in series.items()},
        }
    )


async def read_lake(folder: Path, frame: pl.DataFrame) -> float:
    """The same bars from the files of a lake, in one read."""
    (folder / BARS.name).mkdir()
    closed = pl.col("trade_date").cast(pl.Datetime("us", "UTC"))
    whole: Any = frame.with_columns(
        pl.col("close").alias("pre_close"),
        event_time=closed,
        available_at=closed,
        source=pl.lit("bench"),
        adj_factor=pl.lit(1.0),
        suspended=pl.lit(False),
        is_st=pl.lit(False),
    )
    whole = whole.select(pl.col(name).cast(kind) for name, kind in schema_of(DailyBar).items())
    for n in range(SHARES):
        share = whole[n * DAYS : (n + 1) * DAYS]
        share.write_parquet(folder / BARS.name / f"{share['symbol'][0]}.parquet")
    lake, symbols = MeasuringLake(folder), frame["symbol"].unique().to_list()
    wanted = Wanted(date.min, LAST, MOMENT, OF_BARS)
    started = time.perf_counter()
    assert (await lake.read_many(BARS, symbols, wanted)).frame.height == frame.height
    return time.perf_counter() - started


def cpu(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started
