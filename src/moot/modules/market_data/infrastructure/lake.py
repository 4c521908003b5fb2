"""The lake: one Parquet file per dataset and symbol, replaced whole, read through the port of every provider.

`bars/600519.SH.parquet`, `companies/CN.parquet`. What a file covers is written in its own metadata, so that facts and
coverage change in the same moment. The columns follow from the model's annotations, so a shape is declared once.
"""

import asyncio
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import polars as pl
from polars.exceptions import PanicException, PolarsError
from pydantic import AwareDatetime, BaseModel, TypeAdapter

from moot.modules.market_data.domain.facts import DATASETS, Dataset
from moot.modules.market_data.domain.provider import A_DAY, Batch, Coverage, Range
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
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


class Lake:
    name = "lake"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        """Every version of every report."""
        path, where = self._path(dataset, subject), _filter_of(dataset, _market_of(subject), start, end)
        return await asyncio.to_thread(_facts, dataset, path, where)

    def store(
        self,
        dataset: Dataset[BaseModel],
        subject: str,
        facts: Sequence[BaseModel],
        *,
        covered: Range | None,
        at: datetime,
    ) -> None:
        """Merge `facts` into the file of `subject`, a symbol or a market; what is stored later holds.

        News without a symbol stays with the one it came with. One writer at a time per file, over all processes; the
        lock file stays: removing it would let two in.
        """
        path, frame = self._path(dataset, subject), frame_of(dataset.model, facts)
        if dataset.by_symbol and (others := set(frame["symbol"]) - {path.stem, None}):
            raise InvalidInput(SAY("lake.other_symbol", subject=subject, symbol=others.pop()), field="symbol")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{path.name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ranges = [covered] if covered else []
            if path.exists():
                frame = pl.concat([frame_in(path, dataset), frame])
                ranges += coverage_of(path).ranges
            frame = frame.unique(dataset.key, keep="last").sort(dataset.day, *dataset.key)
            coverage = Coverage(
                dataset=dataset.name,
                subject=path.stem,
                ranges=join_ranges(ranges),
                rows=frame.height,
                sources=tuple(frame["source"].unique().sort()),
                stored_at=at,
                newest=_find_newest(frame[dataset.day], _market_of(subject)),
            )
            replace(path, frame, coverage)

    def coverage(self, dataset: Dataset[BaseModel], subject: str) -> Coverage | None:
        path = self._path(dataset, subject)
        return coverage_of(path) if path.exists() else None

    def inventory(self) -> list[Coverage]:
        """What is kept, by dataset and symbol, from metadata alone; a damaged file is a row that says so."""
        kept = ((dataset, files_of(self._folder, dataset)) for dataset in DATASETS.values())
        return [row_of(dataset, path) for dataset, paths in kept for path in paths]

    def _path(self, dataset: Dataset[BaseModel], subject: str) -> Path:
        """Only a symbol Moot can spell, or a market, names a file: nothing else gets into a path."""
        name = Symbol.parse(subject).text if dataset.by_symbol else _market_of(subject).value
        return self._folder / dataset.name / f"{name}{SUFFIX}"


def _facts(dataset: Dataset[M], path: Path, where: pl.Expr | None) -> Batch[M]:
    if not path.exists():
        return Batch()
    frame = frame_in(path, dataset, where)
    with guard_reading(path):
        return Batch(facts_of(dataset.model, frame))


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


def _market_of(subject: str) -> Market:
    return Market(subject) if subject in list(Market) else Symbol.parse(subject).market


def files_of(folder: Path, dataset: Dataset[BaseModel]) -> list[Path]:
    return sorted((folder / dataset.name).glob(f"*{SUFFIX}"))


def frame_in(path: Path, dataset: Dataset[BaseModel], where: pl.Expr | None = None) -> pl.DataFrame:
    """A column that the model got after the file was written is empty there; one that it lost is left out."""
    coverage_of(path)
    schema = schema_of(dataset.model)
    with guard_reading(path):
        rows = pl.scan_parquet(
            path, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False
        )
        return (rows if where is None else rows.filter(where)).collect()


def coverage_of(path: Path) -> Coverage:
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
    if any(dtype.is_nested() for dtype in frame.dtypes):
        return [model.model_validate(row) for row in frame.to_dicts()]
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
