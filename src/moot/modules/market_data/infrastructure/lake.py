"""The lake: one Parquet file per dataset and symbol, replaced whole, read through the port of every provider.

`bars/600519.SH.parquet`, `companies/CN.parquet`. What a file covers is written in its own metadata, so that facts and
coverage change in the same moment. The columns follow from the model's annotations, so a shape is declared once.
"""

import asyncio
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import polars as pl
from polars.exceptions import PanicException, PolarsError
from pydantic import AwareDatetime, BaseModel, TypeAdapter

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS, Dataset
from moot.modules.market_data.domain.provider import A_DAY, Batch, Coverage, Range, home_of
from moot.modules.market_data.domain.seams import CountGap, Point, find_scales
from moot.modules.market_data.domain.series import date_spell
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.modules.market_data.infrastructure.calendars import trading_calendar
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import Company, SpecialTreatment
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

SUFFIX = ".parquet"
NOTE = "moot.coverage"
COVERAGE = TypeAdapter(Coverage)
UNREADABLE = (PolarsError, PanicException, OSError, ValueError, OverflowError)
"""What reading a file that is damaged or not Parquet ends in: polars panics on some damaged pages."""

SCALARS: dict[Any, pl.DataType] = {
    AwareDatetime: pl.Datetime("us", "UTC"),
    date: pl.Date(),
    float: pl.Float64(),
    int: pl.Int64(),
    bool: pl.Boolean(),
    str: pl.String(),
}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
        self._held: dict[Path, tuple[FileState, pl.DataFrame]] = {}
        self._lists: dict[Path, tuple[FileState | None, Batch[Any]]] = {}
        self._reading = threading.Lock()

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        """Every version of every report. The list of a market's companies is shared by all who read it."""
        path = self._path(dataset, subject)
        state = _find_state(path)
        if dataset.whole and not dataset.by_symbol:
            known = self._lists.get(path)
            same = known is not None and known[0] == state
            return known[1] if known and same else await asyncio.to_thread(self._read_list, dataset, path)
        if state is None:
            return Batch()
        rows, where = (
            await self._hold(dataset, path, state),
            _filter_of(dataset, home_of(subject), start, end),
        )
        with guard_reading(path):
            rows = rows if where is None else rows.filter(where)
            make = partial(facts_of, dataset.model, rows)
            found = make() if rows.height <= FEW else await asyncio.to_thread(make)
        ranges = _read_coverage(path, state).ranges
        return Batch(found, covered=[(first, min(last, end)) for first, last in ranges if first <= end])

    async def _hold(self, dataset: Dataset[M], path: Path, state: FileState) -> pl.DataFrame:
        """All rows of a file, read again when it has been replaced: whoever asks for another part has them."""
        known = self._held.get(path)
        if known is None or known[0] != state:
            known = self._held[path] = state, await asyncio.to_thread(frame_in, path, dataset)
        for oldest in list(self._held)[:-FILES_HELD]:
            self._held.pop(oldest, None)
        return known[1]

    def _read_list(self, dataset: Dataset[M], path: Path) -> Batch[M]:
        """Read and checked once, and again when the file has been replaced."""
        with self._reading:
            state, known = _find_state(path), self._lists.get(path)
            if known is None or known[0] != state:
                frame = frame_in(path, dataset) if state else pl.DataFrame()
                with guard_reading(path):
                    known = self._lists[path] = state, Batch(facts_of(dataset.model, frame))
            return known[1]

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
        path, frame = self._path(dataset, subject), frame_of(dataset.model, facts)
        if dataset.by_symbol and (others := set(frame["symbol"]) - {path.stem, None}):
            raise InvalidInput(SAY("lake.other_symbol", subject=subject, symbol=others.pop()), field="symbol")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{path.name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ranges, kept = [covered] if covered else [], frame.clear()
            if path.exists():
                kept, ranges = frame_in(path, dataset), [*ranges, *coverage_of(path).ranges]
            if dataset is BARS:
                calendar = trading_calendar(home_of(subject))
                frame = _join_bars(path.stem, kept, frame, partial(_count_gap, calendar, ranges))
            elif dataset is COMPANIES:
                frame = _date_spells(kept, facts, at.astimezone(TIME_ZONES[home_of(subject)]).date())
            frame = _settle(pl.concat([kept, frame]), dataset)
            frame = frame.sort(dataset.day, *dataset.key)
            coverage = Coverage(
                dataset=dataset.name,
                subject=path.stem,
                ranges=join_ranges(ranges),
                rows=frame.height,
                sources=tuple(frame["source"].unique().sort()),
                stored_at=at,
                newest=_find_newest(frame[dataset.day], home_of(subject)),
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


def _find_newest(days: pl.Series, market: Market) -> date | None:
    last = days.max()
    if isinstance(last, datetime):
        return last.astimezone(TIME_ZONES[market]).date()
    return last if isinstance(last, date) else None


def join_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same days in as few ranges as there can be, oldest first; days between two ranges stay uncovered."""
    whole: list[Range] = []
    for start, end in sorted(ranges):
        if whole and start <= whole[-1][1] + A_DAY:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return tuple(whole)


def _filter_of(dataset: Dataset[BaseModel], market: Market, start: date, end: date) -> pl.Expr | None:
    """What `Dataset.covers` says, for a whole file."""
    if dataset.whole:
        return None
    day = pl.col(dataset.day)
    if schema_of(dataset.model)[dataset.day] != pl.Date:
        day = day.dt.convert_time_zone(TIME_ZONES[market].key).dt.date()
    return day.is_between(start, end)


def files_of(folder: Path, dataset: Dataset[BaseModel]) -> list[Path]:
    return sorted((folder / dataset.name).glob(f"*{SUFFIX}"))


def frame_in(path: Path, dataset: Dataset[BaseModel]) -> pl.DataFrame:
    """A column that the model got after the file was written is empty there; one that it lost is left out."""
    coverage_of(path)
    schema = schema_of(dataset.model)
    with guard_reading(path):
        rows = pl.scan_parquet(
            path, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False
        )
        return rows.collect()


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


@cache
def schema_of(model: type[BaseModel]) -> pl.Schema:
    return pl.Schema({name: _type_of(field.annotation) for name, field in model.model_fields.items()})


def frame_of(model: type[BaseModel], facts: Iterable[BaseModel]) -> pl.DataFrame:
    """Times of any zone become UTC."""
    rows = []
    for fact in facts:
        if not isinstance(fact, model):
            raise TypeError(f"{type(fact).__name__} is not a {model.__name__}")
        rows.append(fact.model_dump())
    return pl.DataFrame(rows, schema=schema_of(model))


def facts_of(model: type[M], frame: pl.DataFrame) -> list[M]:
    """The facts that `frame_of` was given. They were checked when they were stored; flat ones are not again."""
    if any(dtype.is_nested() for dtype in frame.dtypes):  # by way of JSON: it makes the fewest objects
        whole = frame.with_columns(pl.col(pl.List).fill_null([]))
        return TypeAdapter(list[model]).validate_json(whole.write_json())  # type: ignore[valid-type]
    names, columns = frame.columns, [_values(column) for column in frame.get_columns()]
    fields = set(names)
    return [_restore(model, dict(zip(names, row, strict=True)), fields) for row in zip(*columns, strict=True)]


def _values(column: pl.Series) -> list[Any]:
    if column.dtype != SCALARS[AwareDatetime]:
        return column.to_list()
    return list(map(_moment, column.to_physical().to_list()))


@lru_cache(maxsize=50_000)
def _moment(microseconds: int | None) -> datetime | None:
    """Trading days begin and end at the same moments for every symbol, so most have been worked out before."""
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def _restore(model: type[M], row: dict[str, Any], fields: set[str]) -> M:
    """What `model_construct` does, without its look at every field: a year of bars takes a third of the time."""
    fact = object.__new__(model)
    keep = object.__setattr__  # the model is frozen
    keep(fact, "__dict__", row)
    keep(fact, "__pydantic_fields_set__", fields)
    keep(fact, "__pydantic_extra__", None)
    keep(fact, "__pydantic_private__", None)
    return fact


def _type_of(annotation: Any) -> pl.DataType:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _type_of(next(arg for arg in args if arg is not NoneType))
    if origin is Annotated:
        return _type_of(args[0])
    if origin is Literal:
        return _type_of(type(args[0]))
    if origin is tuple:
        return pl.List(_type_of(args[0]))
    if annotation in SCALARS:
        return SCALARS[annotation]
    return pl.Struct(schema_of(annotation))
