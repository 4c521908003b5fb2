"""What the lake costs on top of bare polars reading the same files. Rounds alternate, medians are compared."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from bench.line import Line
from moot.modules.market_data.domain.datasets import Dataset
from moot.modules.market_data.domain.facts import DailyBar
from moot.modules.market_data.infrastructure.lake import Lake

SYMBOLS, BARS = 5000, 500
FIRST = date(2024, 1, 1)
LAST = FIRST + timedelta(days=BARS - 1)
A_YEAR = (FIRST + timedelta(days=120), FIRST + timedelta(days=369))
AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = 2.0


def lines() -> list[Line]:
    with filled_lake() as folder:
        return [year_as_a_frame(folder), year_of_bars(folder), universe_scan(folder)]


def year_as_a_frame(folder: Path) -> Line:
    """250 bars of one symbol, point in time and adjusted, against a frame of the raw rows."""
    lake, file = Lake(folder), folder / Dataset.BARS / "600000.SH.parquet"
    days = pl.col("trade_date").is_between(*A_YEAR)

    def year() -> None:
        assert lake.scan_bars(*A_YEAR, as_of=AS_OF, symbols=["600000.SH"]).height == 250

    def bare() -> None:
        assert pl.read_parquet(file).filter(days).height == 250

    rounds = [(wall(year), wall(bare)) for _ in range(200)][20:]
    ours, theirs = zip(*rounds, strict=True)
    return compared("a year of bars / bare polars, as a frame", ours, theirs, "250 bars of one symbol")


def year_of_bars(folder: Path) -> Line:
    """250 bars of one symbol as facts, through the port, against the same rows as plain dictionaries."""
    lake, file = Lake(folder), folder / Dataset.BARS / "600000.SH.parquet"
    days = pl.col("trade_date").is_between(*A_YEAR)

    async def year() -> list[float]:
        times = []
        for _ in range(20):
            started = time.perf_counter()
            assert len(await lake.daily_bars("600000.SH", *A_YEAR)) == 250
            times.append(time.perf_counter() - started)
        return times

    def bare() -> None:
        assert len(pl.read_parquet(file).filter(days).to_dicts()) == 250

    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(10):
        ours += asyncio.run(year())
        theirs += [wall(bare) for _ in range(20)]
    return compared("a year of bars / bare polars, as rows", ours, theirs, "250 facts of one symbol")


def universe_scan(folder: Path) -> Line:
    """Point in time and adjusted, against a frame of the raw rows."""
    lake, files = Lake(folder), folder / Dataset.BARS / "*.parquet"
    days = pl.col("trade_date").is_between(FIRST, LAST)

    def scan() -> None:
        assert lake.scan_bars(FIRST, LAST, as_of=AS_OF).height == SYMBOLS * BARS

    def bare() -> None:
        assert pl.scan_parquet(files).filter(days).collect().height == SYMBOLS * BARS

    rounds = [(wall(scan), wall(bare)) for _ in range(4)][1:]
    ours, theirs = zip(*rounds, strict=True)
    return compared("scan of all bars / bare polars", ours, theirs, f"{SYMBOLS} symbols of {BARS} bars")


@contextmanager
def filled_lake() -> Iterator[Path]:
    """One symbol stored by the lake; the others copies of its file under their own names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Lake(folder).store(Dataset.BARS, "600000.SH", bars("600000.SH"), covered=(FIRST, LAST), at=AS_OF)
        first = folder / Dataset.BARS / "600000.SH.parquet"
        frame, note = pl.read_parquet(first), pl.read_parquet_metadata(first)
        note.pop("ARROW:schema", None)
        for number in range(1, SYMBOLS):
            symbol = f"{600000 + number}.SH"
            renamed = frame.with_columns(symbol=pl.lit(symbol))
            renamed.write_parquet(first.with_name(f"{symbol}.parquet"), metadata=note)
        yield folder


def bars(symbol: str) -> list[DailyBar]:
    days = [FIRST + timedelta(days=n) for n in range(BARS)]
    return [bar(symbol, day, 10.0 + n % 97 / 7) for n, day in enumerate(days)]


def bar(symbol: str, day: date, price: float) -> DailyBar:
    close = datetime(day.year, day.month, day.day, 7, tzinfo=UTC)
    return DailyBar(
        event_time=close,
        available_at=close + timedelta(hours=1),
        source="bench",
        symbol=symbol,
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


def compared(name: str, ours: Sequence[float], theirs: Sequence[float], of: str) -> Line:
    moot, polars = statistics.median(ours), statistics.median(theirs)
    return Line(name, moot / polars, BUDGET, f"{moot * 1e3:.2f} ms against {polars * 1e3:.2f} ms, {of}")
