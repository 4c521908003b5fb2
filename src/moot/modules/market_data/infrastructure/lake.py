"""The lake: one Parquet file per dataset and symbol, replaced whole, read through the port of every provider.

`bars/600519.SH.parquet`, `companies/CN.parquet`. What a file covers is written in its own metadata, so that facts and
coverage change in the same moment.
"""

import asyncio
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from polars.exceptions import PanicException, PolarsError
from pydantic import BaseModel, TypeAdapter

from moot.modules.market_data.application.columns import frame_of, schema_of
from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS, Dataset, local_day
from moot.modules.market_data.domain.provider import A_DAY, Batch, Coverage, Range, home_of
from moot.modules.market_data.domain.series import CountGap, Point, date_spell, find_scales
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.domain.trading_rules import TradingCalendar, trading_calendar
from moot.modules.market_data.infrastructure.lake_rows import HeldRows
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import Company, SpecialTreatment
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Symbol

SUFFIX = ".parquet"
NOTE = "moot.coverage"
COVERAGE = TypeAdapter(Coverage)
UNREADABLE = (PolarsError, PanicException, OSError, ValueError, OverflowError)
"""What reading a file that is damaged or not Parquet ends in: polars panics on some damaged pages."""

M = TypeVar("M", bound=BaseModel)
FileState = tuple[int, int, int]
FILES_HELD = 32
"""Files whose rows stay in memory: the experts of a session read the same dozen, each several times."""
FEW = 1000
"""So many rows become facts at once: to hand them to a thread would take longer."""


class Lake:
    name = "lake"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[Path, tuple[FileState, HeldRows]] = {}

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        """Every version of every report."""
        path = self._path(dataset, subject)
        state = _find_state(path)
        if state is None:
            return Batch()
        held, covered = self._hold(dataset, path, state), _read_coverage(path, state).ranges
        with guard_reading(path):
            few = held.loaded and held.count_unmade(start, end) <= FEW
            found = held.read(start, end) if few else await asyncio.to_thread(held.read, start, end)
        return Batch(found, covered=[(first, min(last, end)) for first, last in covered if first <= end])

    def _hold(self, dataset: Dataset[M], path: Path, state: FileState) -> HeldRows:
        """The file as it is now, shared by all who read it; those read longest ago make room."""
        known, held = self._held.pop(path, (None, None))
        if held is None or known != state:
            held = HeldRows(dataset, lambda: frame_in(path, dataset), home_of(path.stem))
        self._held[path] = state, held
        for oldest in list(self._held)[:-FILES_HELD]:
            self._held.pop(oldest)
        return held

    def store(
        self,
        dataset: Dataset[BaseModel],
        subject: str,
        facts: Sequence[BaseModel],
        *,
        covered: Range | None,
        at: datetime,
    ) -> None:
        """Merge `facts` into the file of `subject`, a symbol or a market. Of rows with one key, the one known first
        holds, or else the one stored last.

        News without a symbol stays with the one it came with. Bars are brought to one base of factors, or refused.
        One writer at a time per file, over all processes; the lock file stays: removing it would let two in.
        """
        path, market, frame = self._path(dataset, subject), home_of(subject), frame_of(dataset.model, facts)
        if dataset.by_symbol and (others := set(frame["symbol"]) - {path.stem, None}):
            raise InvalidInput(SAY("lake.other_symbol", subject=subject, symbol=others.pop()), field="symbol")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{path.name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ranges, kept = [covered] if covered else [], frame.clear()
            if path.exists():
                kept, ranges = frame_in(path, dataset), [*ranges, *coverage_of(path).ranges]
            if dataset is BARS:
                calendar = trading_calendar(market)
                frame = _join_bars(path.stem, kept, frame, partial(_count_gap, calendar, ranges))
            elif dataset is COMPANIES:
                frame = _date_spells(kept, facts, local_day(at, market))
            frame = _settle(pl.concat([kept, frame]), dataset)
            frame = frame.sort(dataset.day, *dataset.key)
            last = frame[dataset.day].max()
            coverage = Coverage(
                dataset=dataset.name,
                subject=path.stem,
                ranges=join_ranges(ranges),
                rows=frame.height,
                sources=tuple(frame["source"].unique().sort()),
                stored_at=at,
                newest=local_day(last, market) if isinstance(last, date) else None,
            )
            replace(path, frame, coverage)

    def coverage(self, dataset: Dataset[BaseModel], subject: str) -> Coverage | None:
        path = self._path(dataset, subject)
        state = _find_state(path)
        return _read_coverage(path, state) if state else None

    def inventory(self) -> list[Coverage]:
        """What is kept, by dataset and symbol, from metadata alone; a damaged file is a row that says so."""
        kept = ((dataset, files_of(self._folder, dataset)) for dataset in DATASETS.values())
        return [row_of(dataset, path) for dataset, paths in kept for path in paths]

    def _path(self, dataset: Dataset[BaseModel], subject: str) -> Path:
        """Only a symbol Moot can spell, or a market, names a file: nothing else gets into a path."""
        name = Symbol.parse(subject).text if dataset.by_symbol else home_of(subject).value
        return self._folder / dataset.name / f"{name}{SUFFIX}"


def _settle(frame: pl.DataFrame, dataset: Dataset[BaseModel]) -> pl.DataFrame:
    """One row for each key: the one stored last of those known first, or the past would lose what it knew."""
    if "available_at" in frame.columns:
        frame = frame.filter(pl.col("available_at") == pl.col("available_at").min().over(dataset.key))
    return frame.unique(dataset.key, keep="last")


def _state_of(path: Path) -> FileState:
    """What is never the same for two files that stood under one name: a copy keeps the time of the last writing,
    and nothing keeps that of the last change."""
    found = path.stat()
    return found.st_ino, found.st_ctime_ns, found.st_size


def _find_state(path: Path) -> FileState | None:
    """None: there is no such file."""
    try:
        return _state_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _join_bars(symbol: str, kept: pl.DataFrame, told: pl.DataFrame, count_gap: CountGap) -> pl.DataFrame:
    """What is told over what is kept, with factors on one base."""
    frame = pl.concat([kept, told]).unique(BARS.key, keep="last").sort(BARS.day)
    ours, theirs = (
        {day: Point(*row) for day, *row in each.select(BARS.day, *Point._fields).iter_rows()}
        for each in (kept, told)
    )
    scales = find_scales(symbol, ours, theirs, count_gap)
    return frame.with_columns(pl.col("adj_factor") * pl.Series(scales, dtype=pl.Float64))


def _date_spells(kept: pl.DataFrame, companies: Sequence[Any], on: date) -> pl.DataFrame:
    rows = kept.select("symbol", "st_history").iter_rows()
    before = {symbol: tuple(map(SpecialTreatment.model_validate, spells or ())) for symbol, spells in rows}
    return frame_of(Company, (date_spell(each, before.get(each.symbol, ()), on) for each in companies))


def _count_gap(calendar: TradingCalendar, ranges: Sequence[Range], before: date, day: date) -> int:
    """The sessions between two days of which nothing is known; one without a bar that is known was a suspension."""
    between = calendar.within(before + A_DAY, day - A_DAY)
    return sum(not any(first <= session <= last for first, last in ranges) for session in between)


def join_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same days in as few ranges as there can be, oldest first; days between two ranges stay uncovered."""
    whole: list[Range] = []
    for start, end in sorted(ranges):
        if whole and start <= whole[-1][1] + A_DAY:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return tuple(whole)


def files_of(folder: Path, dataset: Dataset[BaseModel]) -> list[Path]:
    return sorted((folder / dataset.name).glob(f"*{SUFFIX}"))


def frame_in(path: Path, dataset: Dataset[BaseModel]) -> pl.DataFrame:
    coverage_of(path)
    with guard_reading(path):
        return scan([path], dataset).collect()


def scan(files: list[Path], dataset: Dataset[BaseModel]) -> pl.LazyFrame:
    """A column that the model got after a file was written is empty there; one that it lost is left out."""
    schema = schema_of(dataset.model)
    return pl.scan_parquet(files, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False)


def coverage_of(path: Path) -> Coverage:
    with guard_reading(path):
        state = _state_of(path)
    return _read_coverage(path, state)


@lru_cache(maxsize=4096)
def _read_coverage(path: Path, state: FileState) -> Coverage:
    with guard_reading(path):
        note = pl.read_parquet_metadata(path).get(NOTE)
    if note is None:
        raise damage(path, SAY("lake.foreign"))
    with guard_reading(path):
        return COVERAGE.validate_json(note)


def row_of(dataset: Dataset[BaseModel], path: Path) -> Coverage:
    try:
        return coverage_of(path)
    except Unavailable:
        found = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return Coverage(dataset.name, path.stem, (), rows=0, sources=(), stored_at=found, damaged=True)


@contextmanager
def guard_reading(path: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as e:
        raise damage(path, str(e)) from e


def damage(path: Path, why: str | Message) -> Unavailable:
    reason = why.splitlines()[0] if isinstance(why, str) and why else why
    return Unavailable(SAY("lake.damaged", file=path, why=reason), code="LAKE_DAMAGED", file=str(path))


def replace(path: Path, frame: pl.DataFrame, coverage: Coverage) -> None:
    """At every moment the old file or the new one is there. The next writer overwrites what a killed one left."""
    unfinished = path.with_name(f".{path.name}.tmp")
    with unfinished.open("wb") as file:
        frame.write_parquet(file, metadata={NOTE: COVERAGE.dump_json(coverage).decode()})
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
