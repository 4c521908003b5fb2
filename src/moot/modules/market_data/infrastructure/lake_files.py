"""One Parquet file of the lake: facts and, in its metadata, what they cover. Replaced whole or not at all."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import polars as pl
from polars.exceptions import PanicException, PolarsError
from pydantic import BaseModel, TypeAdapter

from moot.modules.market_data.domain.datasets import SHAPES, Dataset
from moot.modules.market_data.domain.store import Coverage
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.lake_frames import facts_of, schema_of
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import Message

SUFFIX = ".parquet"
NOTE = "moot.coverage"
COVERAGE = TypeAdapter(Coverage)
UNREADABLE = (PolarsError, PanicException, OSError, ValueError, OverflowError)
"""What reading a file that is damaged or not Parquet ends in: polars panics on some damaged pages."""

M = TypeVar("M", bound=BaseModel)


def scan(dataset: Dataset, files: Path | list[Path]) -> pl.LazyFrame:
    """A column that the model got after a file was written is empty there; one that it lost is left out."""
    schema = schema_of(SHAPES[dataset].model)
    return pl.scan_parquet(files, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False)


def files_of(folder: Path, dataset: Dataset) -> list[Path]:
    return sorted((folder / dataset).glob(f"*{SUFFIX}"))


def frame_in(path: Path, dataset: Dataset, where: pl.Expr | None = None) -> pl.DataFrame:
    coverage_of(path)
    rows = scan(dataset, path)
    with reading(path):
        return (rows if where is None else rows.filter(where)).collect()


def facts_in(path: Path, dataset: Dataset, model: type[M], where: pl.Expr | None) -> list[M]:
    frame = frame_in(path, dataset, where)
    with reading(path):
        return facts_of(model, frame)


def coverage_of(path: Path) -> Coverage:
    with reading(path):
        note = pl.read_parquet_metadata(path).get(NOTE)
    if note is None:
        raise damaged(path, SAY("lake.foreign"))
    with reading(path):
        return COVERAGE.validate_json(note)


def refuse_foreign(files: Iterable[Path]) -> None:
    """For reads of many files at once, in which one without the right columns would go unnoticed."""
    for path in files:
        coverage_of(path)


def row_of(dataset: Dataset, path: Path) -> Coverage:
    try:
        return coverage_of(path)
    except Unavailable:
        found = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return Coverage(dataset, path.stem, (), rows=0, sources=(), stored_at=found, damaged=True)


def refuse_unreadable(dataset: Dataset, files: Iterable[Path]) -> None:
    """After a read of many files failed: name the one that is to blame, if one is."""
    for path in files:
        frame_in(path, dataset)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as e:
        raise damaged(path, str(e)) from e


def damaged(path: Path, why: str | Message) -> Unavailable:
    reason = why.splitlines()[0] if isinstance(why, str) and why else why
    return Unavailable(SAY("lake.damaged", file=path, why=reason), code="LAKE_DAMAGED", file=str(path))


@contextmanager
def locked(path: Path) -> Iterator[None]:
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
