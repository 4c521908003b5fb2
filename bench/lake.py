"""What the lake costs on top of bare polars reading the same files. Rounds alternate, medians are compared."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from bench.line import Line
from moot.modules.market_data.domain.facts import BARS
from moot.modules.market_data.infrastructure.lake import Lake
from moot.shared.domain.facts import DailyBar

SYMBOL, DAYS = "600000.SH", 500
FIRST = date(2024, 1, 1)
LAST = FIRST + timedelta(days=DAYS - 1)
A_YEAR = (FIRST + timedelta(days=120), FIRST + timedelta(days=369))
AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = 2.0


async def lines() -> list[Line]:
    with filled_lake() as folder:
        return [await year_of_bars(folder)]


async def year_of_bars(folder: Path) -> Line:
    """250 bars of one symbol as facts, through the port, against the same rows as plain dictionaries."""
    lake, file = Lake(folder), folder / BARS.name / f"{SYMBOL}.parquet"
    days = pl.col("trade_date").is_between(*A_YEAR)

    async def year() -> list[float]:
        times = []
        for _ in range(20):
            started = time.perf_counter()
            assert len(await lake.read(BARS, SYMBOL, *A_YEAR)) == 250
            times.append(time.perf_counter() - started)
        return times

    def bare() -> None:
        assert len(pl.read_parquet(file).filter(days).to_dicts()) == 250

    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(10):
        ours += await year()
        theirs += [wall(bare) for _ in range(20)]
    moot, polars = statistics.median(ours), statistics.median(theirs)
    detail = f"{moot * 1e3:.2f} ms against {polars * 1e3:.2f} ms, 250 facts of one symbol"
    return Line("a year of bars / bare polars, as rows", moot / polars, BUDGET, detail)


@contextmanager
def filled_lake() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Lake(folder).store(BARS, SYMBOL, bars(), covered=(FIRST, LAST), at=AS_OF)
        yield folder


def bars() -> list[DailyBar]:
    days = [FIRST + timedelta(days=n) for n in range(DAYS)]
    return [bar(day, 10.0 + n % 97 / 7) for n, day in enumerate(days)]


def bar(day: date, price: float) -> DailyBar:
    close = datetime(day.year, day.month, day.day, 7, tzinfo=UTC)
    return DailyBar(
        event_time=close,
        available_at=close + timedelta(hours=1),
        source="bench",
        symbol=SYMBOL,
        trade_date=day,
        open=price,
        high=price * 1.02,
        low=price * 0.98,
        close=price * 1.01,
        pre_close=price,
        volume=day.toordinal() * 100,
        amount=price * day.toordinal() * 100,
        adj_factor=1.0 if day < date(2024, 7, 1) else 1.1,
    )


def wall(run: Callable[[], None]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
