"""One Parquet file of the lake: facts and, in its metadata, what they cover. Replaced whole or not at all.

The columns follow from the model's annotations, so a shape is declared once.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import polars as pl
from polars.exceptions import PanicException, PolarsError
from pydantic import AwareDatetime, BaseModel, TypeAdapter

from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Coverage
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import Message

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


def scan(dataset: Dataset[BaseModel], files: Path | list[Path]) -> pl.LazyFrame:
    """A column that the model got after a file was written is empty there; one that it lost is left out."""
    schema = schema_of(dataset.model)
    return pl.scan_parquet(files, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False)


def files_of(folder: Path, dataset: Dataset[BaseModel]) -> list[Path]:
    return sorted((folder / dataset.name).glob(f"*{SUFFIX}"))


def frame_in(path: Path, dataset: Dataset[BaseModel], where: pl.Expr | None = None) -> pl.DataFrame:
    coverage_of(path)
    rows = scan(dataset, path)
    with reading(path):
        return (rows if where is None else rows.filter(where)).collect()


def facts_in(path: Path, dataset: Dataset[M], where: pl.Expr | None) -> list[M]:
    frame = frame_in(path, dataset, where)
    with reading(path):
        return facts_of(dataset.model, frame)


def coverage_of(path: Path) -> Coverage:
    with reading(path):
        note = pl.read_parquet_metadata(path).get(NOTE)
    if note is None:
        raise damage(path, SAY("lake.foreign"))
    with reading(path):
        return COVERAGE.validate_json(note)


def refuse_foreign(files: Iterable[Path]) -> None:
    """For reads of many files at once, in which one without the right columns would go unnoticed."""
    for path in files:
        coverage_of(path)


def row_of(dataset: Dataset[BaseModel], path: Path) -> Coverage:
    try:
        return coverage_of(path)
    except Unavailable:
        found = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return Coverage(dataset.name, path.stem, (), rows=0, sources=(), stored_at=found, damaged=True)


def refuse_unreadable(dataset: Dataset[BaseModel], files: Iterable[Path]) -> None:
    """After a read of many files failed: name the one that is to blame, if one is."""
    for path in files:
        frame_in(path, dataset)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as e:
        raise damage(path, str(e)) from e


def damage(path: Path, why: str | Message) -> Unavailable:
    reason = why.splitlines()[0] if isinstance(why, str) and why else why
    return Unavailable(SAY("lake.damaged", file=path, why=reason), code="LAKE_DAMAGED", file=str(path))


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """One writer at a time per file, over all processes. The lock file stays: removing it would let two in."""
    with path.with_name(f".{path.name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
