"""The lake: one Parquet file per dataset and symbol, replaced whole, read through the port of every provider.

`bars/600519.SH.parquet`, `companies/CN.parquet`, `news/_CN.parquet` (what concerns a market and no symbol). What a
file covers is written in its own metadata, so that facts and coverage change in the same moment.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import BaseModel

from moot.modules.market_data.domain.datasets import SHAPES, Dataset
from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.domain.store import Coverage, Range
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.lake_files import (
    SUFFIX,
    UNREADABLE,
    coverage_of,
    damaged,
    facts_in,
    files_of,
    frame_in,
    locked,
    refuse_foreign,
    refuse_unreadable,
    replace,
    row_of,
    scan,
)
from moot.modules.market_data.infrastructure.lake_frames import frame_of, schema_of
from moot.modules.market_data.infrastructure.lake_sql import answered
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

M = TypeVar("M", bound=BaseModel)

OLDEST_FIRST: dict[Dataset, str] = {
    Dataset.COMPANIES: "symbol",
    Dataset.BARS: "trade_date",
    Dataset.VALUATIONS: "trade_date",
    Dataset.REPORTS: "period_end",
    Dataset.DIVIDENDS: "period_end",
    Dataset.MACRO: "period",
    Dataset.NEWS: "available_at",
}
PRICES = ("open", "high", "low", "close", "pre_close")


class Lake:
    """`market` narrows what is not asked by symbol: companies, macro figures and scans."""

    name = "lake"

    def __init__(self, folder: Path, market: Market | None = None) -> None:
        self._folder = folder
        self._markets = [market] if market else list(Market)

    async def companies(self) -> Batch[Company]:
        return await self._of_markets(Company, Dataset.COMPANIES)

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        days = pl.col("trade_date").is_between(start, end)
        return await self._of_symbol(DailyBar, Dataset.BARS, symbol, days)

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        days = pl.col("trade_date").is_between(start, end)
        return await self._of_symbol(DailyValuation, Dataset.VALUATIONS, symbol, days)

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        """Every version of every report."""
        return await self._of_symbol(FinancialReport, Dataset.REPORTS, symbol)

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        return await self._of_symbol(Dividend, Dataset.DIVIDENDS, symbol)

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        periods = pl.col("period").is_between(start, end)
        return await self._of_markets(MacroObservation, Dataset.MACRO, periods)

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        market = Symbol.parse(symbol).market
        public = pl.col("available_at").dt.convert_time_zone(TIME_ZONES[market].key).dt.date()
        days = public.is_between(start, end)
        own = await self._of_symbol(NewsItem, Dataset.NEWS, symbol, days)
        shared = await self._of_symbol(NewsItem, Dataset.NEWS, market, days)
        return Batch(sorted([*own, *shared], key=lambda item: (item.available_at, item.url)))

    def store(
        self,
        dataset: Dataset,
        subject: str,
        facts: Sequence[BaseModel],
        *,
        covered: Range | None,
        at: datetime,
    ) -> None:
        """Merge `facts` into the file of `subject`, a symbol or a `Market`; what is stored later holds.

        News without a symbol that came with a symbol's goes to its market's file, and first: `covered` is written
        with the symbol's own, and must not say more than is kept.
        """
        home = _file_name(dataset, subject)
        parts: dict[str, list[BaseModel]] = {}
        for fact in facts:
            parts.setdefault(_file_name_of(dataset, subject, fact), []).append(fact)
        own = parts.pop(home, [])
        for name, shared in parts.items():
            self._merge(dataset, name, shared, None, at)
        self._merge(dataset, home, own, covered, at)

    def coverage(self, dataset: Dataset, subject: str) -> Coverage | None:
        path = self._path(dataset, _file_name(dataset, subject))
        return coverage_of(path) if path.exists() else None

    def inventory(self) -> list[Coverage]:
        """What is kept, by dataset and symbol, from metadata alone; a damaged file is a row that says so."""
        return [row_of(dataset, path) for dataset in Dataset for path in files_of(self._folder, dataset)]

    def scan_bars(
        self,
        start: date,
        end: date,
        *,
        as_of: datetime,
        adjusted: bool = True,
        symbols: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """The bars of all symbols, or of `symbols`, known at `as_of`, by symbol and day, in one pass.

        Prices are scaled, symbol by symbol, to the last factor of the range that was known.
        """
        files = self._bar_files(symbols)
        refuse_foreign(files)
        if not files:
            return pl.DataFrame(schema=schema_of(DailyBar))
        known = (pl.col("trade_date").is_between(start, end), pl.col("available_at") <= as_of.astimezone(UTC))
        try:
            bars = scan(Dataset.BARS, files).filter(*known).collect()
        except UNREADABLE:
            refuse_unreadable(Dataset.BARS, files)
            raise
        factor = pl.col("adj_factor")
        return (
            bars.with_columns(pl.col(PRICES) * (factor / factor.last().over("symbol"))) if adjusted else bars
        )

    def _bar_files(self, symbols: Sequence[str] | None) -> list[Path]:
        if symbols is None:
            kept = files_of(self._folder, Dataset.BARS)
            return [path for path in kept if _market_of(path) in self._markets]
        named = (
            self._path(Dataset.BARS, _file_name(Dataset.BARS, symbol)) for symbol in sorted(set(symbols))
        )
        return [path for path in named if path.exists()]

    def sql(self, query: str, *, as_of: datetime) -> list[dict[str, Any]]:
        """The answer to one SELECT over tables named after the datasets, as they were known at `as_of`."""
        return answered(self._folder, query, as_of)

    async def _of_symbol(
        self, model: type[M], dataset: Dataset, subject: str, where: pl.Expr | None = None
    ) -> Batch[M]:
        return await asyncio.to_thread(self._read, model, dataset, [_file_name(dataset, subject)], where)

    async def _of_markets(self, model: type[M], dataset: Dataset, where: pl.Expr | None = None) -> Batch[M]:
        names = [_file_name(dataset, market) for market in self._markets]
        return await asyncio.to_thread(self._read, model, dataset, names, where)

    def _read(
        self, model: type[M], dataset: Dataset, names: Iterable[str], where: pl.Expr | None
    ) -> Batch[M]:
        paths = [path for name in names if (path := self._path(dataset, name)).exists()]
        return Batch(fact for path in paths for fact in facts_in(path, dataset, model, where))

    def _merge(
        self, dataset: Dataset, name: str, facts: Sequence[BaseModel], covered: Range | None, at: datetime
    ) -> None:
        path, shape = self._path(dataset, name), SHAPES[dataset]
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            frame, ranges = frame_of(shape.model, facts), [covered] if covered else []
            if path.exists():
                frame = pl.concat([frame_in(path, dataset), frame])
                ranges += coverage_of(path).ranges
            frame = frame.unique(shape.key, keep="last").sort(OLDEST_FIRST[dataset], *shape.key)
            coverage = Coverage(
                dataset=dataset,
                subject=name.removeprefix("_"),
                ranges=joined(ranges),
                rows=frame.height,
                sources=tuple(frame["source"].unique().sort()),
                stored_at=at,
                newest=_last(frame, "event_time"),
            )
            replace(path, frame, coverage)

    def _path(self, dataset: Dataset, name: str) -> Path:
        return self._folder / dataset / f"{name}{SUFFIX}"


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same days in as few ranges as there can be, oldest first; days between two ranges stay uncovered."""
    whole: list[Range] = []
    for start, end in sorted(ranges):
        if whole and start <= whole[-1][1] + timedelta(days=1):
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return tuple(whole)


def _last(frame: pl.DataFrame, times: str) -> datetime | None:
    last = frame[times].max() if times in frame.columns else None
    return last if isinstance(last, datetime) else None


def _market_of(path: Path) -> Market:
    try:
        return Symbol.parse(path.stem).market
    except InvalidInput as e:
        raise damaged(path, SAY("lake.foreign")) from e


def _file_name(dataset: Dataset, subject: str) -> str:
    """Only a symbol Moot can spell, or a market, names a file: nothing else gets into a path."""
    if not SHAPES[dataset].by_symbol:
        return (Market(subject) if subject in list(Market) else Symbol.parse(subject).market).value
    return f"_{subject.value}" if isinstance(subject, Market) else Symbol.parse(subject).text


def _file_name_of(dataset: Dataset, subject: str, fact: Any) -> str:
    """Where `fact` belongs when it comes with the facts of `subject`."""
    home = _file_name(dataset, subject)
    if not SHAPES[dataset].by_symbol or fact.symbol == home:
        return home
    if fact.symbol is None:
        return home if isinstance(subject, Market) else _file_name(dataset, Symbol.parse(subject).market)
    raise InvalidInput(SAY("lake.other_symbol", subject=subject, symbol=fact.symbol), field="symbol")
