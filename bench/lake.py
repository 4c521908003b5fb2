"""What the lake costs on top of bare polars reading the same files. Rounds alternate, medians are compared."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from bench.line import Line
from moot.modules.market_data.application.columns import frame_of
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.facts import BARS, COMPANIES, REPORTS, VALUATIONS, Dataset
from moot.modules.market_data.domain.provider import Coverage
from moot.modules.market_data.infrastructure.cross_section import MeasuringLake
from moot.modules.market_data.infrastructure.lake import Lake, replace
from moot.shared.domain.facts import Company, DailyBar, DailyValuation, FinancialReport
from moot.shared.domain.symbol import Market, Symbol

SYMBOL, DAYS = "600000.SH", 500
FIRST = date(2024, 1, 1)
LAST = FIRST + timedelta(days=DAYS - 1)
A_YEAR = (FIRST + timedelta(days=120), FIRST + timedelta(days=369))
AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = 2.0


async def lines() -> list[Line]:
    with filled_lake() as folder:
        bars = await year_of_bars(folder)
    with tempfile.TemporaryDirectory() as name:
        return [bars, await cross_section(Path(name))]


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


COMPANIES_OF_AN_INDUSTRY, SECTION_BUDGET = 5_000, 3.0
MEASURED = {VALUATIONS: pl.col("trade_date"), REPORTS: pl.col("period_end"), BARS: pl.col("trade_date")}


async def cross_section(folder: Path) -> Line:
    """A company among 4,999 others, through the door, against the same files read and grouped by hand."""
    fill_industry(folder)
    door, symbol = MarketData({Market.CN: MeasuringLake(folder)}), Symbol.parse(SYMBOL)
    moment = datetime.combine(LAST, datetime.max.time(), UTC)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(3):
        started = time.perf_counter()
        found = await door.peers(symbol, as_of=moment)
        ours.append(time.perf_counter() - started)
        assert found.places["return_12m"].count == COMPANIES_OF_AN_INDUSTRY - 1
        assert found.places["profit_yoy"].count == COMPANIES_OF_AN_INDUSTRY - 1
        theirs.append(wall(lambda: group_by_hand(folder, moment)))
    moot, polars = statistics.median(ours[1:]), statistics.median(theirs[1:])
    detail = f"{moot:.2f} s against {polars:.2f} s, {COMPANIES_OF_AN_INDUSTRY:,} symbols"
    return Line("cross-section of an industry / bare polars", moot / polars, SECTION_BUDGET, detail)


def group_by_hand(folder: Path, moment: datetime) -> None:
    """The newest multiples, the growth over four quarters, the returns over four spans: three scans, no more."""
    scans = [
        pl.scan_parquet(folder / str(dataset) / "*.parquet")
        .filter(pl.col("available_at") <= moment)
        .sort(day)
        for dataset, day in MEASURED.items()
    ]
    valuations, reports, prices = (scan.group_by("symbol", maintain_order=True) for scan in scans)
    price = pl.col("close") * pl.col("adj_factor")
    spans = [pl.col("trade_date") <= moment.date() - timedelta(days=days) for days in (30, 91, 182, 365)]
    figures = pl.col("total_revenue", "net_profit")
    pl.collect_all(
        [
            valuations.agg(pl.col("pe_ttm", "pb", "ps_ttm", "dv_ratio", "total_mv").last()),
            reports.agg(figures.last() / figures.get(-5) - 1),
            prices.agg(
                *(((price.last() / price.filter(s).last() - 1).alias(f"{n}")) for n, s in enumerate(spans))
            ),
        ]
    )


def fill_industry(folder: Path) -> None:
    """The files as the lake writes them, without waiting for the disk fifteen thousand times."""
    days = [FIRST + timedelta(days=n) for n in range(DAYS)]
    quarters = [date(year, month, 28) for year in (2023, 2024) for month in (3, 6, 9, 12)]
    numbers = {"pe_ttm": 12.0, "pb": 1.5, "ps_ttm": 2.0, "dv_ratio": 3.0}
    kept: dict[Dataset[Any], list[Any]] = {
        BARS: bars(),
        VALUATIONS: [
            DailyValuation(**known(d), trade_date=d, close=10, total_mv=1e9, **numbers) for d in days
        ],
        REPORTS: [
            FinancialReport(
                **known(d), period_end=d, announced_on=d, total_revenue=n + 1e9, net_profit=n + 1e8
            )
            for n, d in enumerate(quarters)
        ],
    }
    symbols = [f"{600_000 + n}.SH" for n in range(COMPANIES_OF_AN_INDUSTRY)]
    for dataset, facts in kept.items():
        frame = frame_of(dataset.model, facts)
        (folder / str(dataset)).mkdir()
        for symbol in symbols:
            one = frame.with_columns(symbol=pl.lit(symbol))
            one.write_parquet(folder / str(dataset) / f"{symbol}.parquet")
    companies = [
        Company(symbol=s, name=s, name_en=s, industry="银行", industry_en="Banks", list_date=FIRST)
        for s in symbols
    ]
    Lake(folder).store(COMPANIES, "CN", companies, covered=None, at=AS_OF)
    own = Coverage("", SYMBOL, (), rows=0, sources=(), stored_at=AS_OF)
    for dataset, facts in kept.items():
        replace(folder / str(dataset) / f"{SYMBOL}.parquet", frame_of(dataset.model, facts), own)


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
    return DailyBar(
        **known(day),
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


def known(day: date) -> dict[str, Any]:
    close = datetime(day.year, day.month, day.day, 7, tzinfo=UTC)
    times = {"event_time": close, "available_at": close + timedelta(hours=1)}
    return {**times, "source": "bench", "symbol": SYMBOL}


def wall(run: Callable[[], None]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
