"""The user's own CSV and Parquet files as a source, described by a small YAML file beside them."""

import asyncio
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers.file_mapping import (
    REQUIRED,
    TableMapping,
    complaints,
    guess,
    read_mapping,
)
from moot.modules.market_data.infrastructure.providers.file_tables import (
    SOURCE,
    by_symbol,
    read_facts,
    read_frame,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Symbol

MAPPING_NAME = "moot-data.yaml"
TYPES = (".csv", ".csv.gz", ".parquet")

M = TypeVar("M", bound=BaseModel)
State = tuple[tuple[Path, int], ...]
"""Which files, and when each was written."""


class FilesProvider:
    """`place` is a mapping file, or the folder that has one named `moot-data.yaml`; paths in it go from there.

    A path may be a pattern (`bars/*.csv`). Files are read again when they have changed.
    """

    def __init__(self, place: Path) -> None:
        mapping = place / MAPPING_NAME if place.is_dir() else place
        self._folder = mapping.parent
        self._tables = read_mapping(mapping)
        self._read: dict[Dataset[Any], tuple[State, dict[str, Batch[Any]]]] = {}

    @property
    def name(self) -> str:
        return SOURCE

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        table = self._tables.get(dataset)
        if table is None:
            raise NotOffered(SAY("files.not_offered", dataset=dataset.label))
        facts = await asyncio.to_thread(self._load, dataset, table)
        if not dataset.by_symbol:
            there = facts.values()
            return Batch((f for batch in there for f in batch), (r for batch in there for r in batch.refused))
        found, days = facts.get(subject, Batch()), (start, end, Symbol.parse(subject).market)
        return Batch(dataset.between(found, *days), found.refused)

    def _load(self, dataset: Dataset[Any], table: TableMapping) -> dict[str, Batch[Any]]:
        paths = sorted(self._folder.glob(table.path)) if table.path else []
        if not paths:
            raise InvalidInput(
                SAY("files.no_file", path=table.path, folder=self._folder.name), field="mapping"
            )
        state = tuple((path, path.stat().st_mtime_ns) for path in paths)
        kept = self._read.get(dataset)
        if kept is None or kept[0] != state:
            frame = pl.concat([read_frame(path) for path in paths], how="diagonal_relaxed")
            kept = self._read[dataset] = (state, by_symbol(read_facts(dataset, table, frame, table.path)))
        return kept[1]


class Imported(dict[Dataset[Any], Batch[Any]]):
    """The facts of a file by kind, and what was assumed about its columns in order to read them."""

    def __init__(self, facts: dict[Dataset[Any], Batch[Any]], guessed: Iterable[Message] = ()) -> None:
        super().__init__(facts)
        self.guessed = tuple(guessed)


def read_import(path: Path, mapping: Path | None = None) -> Imported:
    """Everything in one file; without a mapping, its columns are told by their headers."""
    if not path.name.endswith(TYPES):
        raise InvalidInput(SAY("files.type_unknown", file=path.name, known=list(TYPES)), field="file")
    frame = read_frame(path)
    if mapping is None:
        return _by_headers(path, frame)
    tables = {d: t for d, t in read_mapping(mapping).items() if Path(t.path).name in ("", path.name)}
    if not tables:
        raise InvalidInput(SAY("files.not_in_mapping", file=path.name, mapping=mapping.name), field="mapping")
    return Imported({d: read_facts(d, table, frame, path.name) for d, table in tables.items()})


def _by_headers(path: Path, frame: pl.DataFrame) -> Imported:
    guesses = guess(frame)
    if not guesses:
        known = [dataset.label for dataset in REQUIRED]
        why = SAY("files.headers_unknown", file=path.name, there=frame.columns, known=known)
        raise InvalidInput(why, field="file")
    for dataset, made in guesses.items():
        for _, complaint in complaints(dataset, made.table):
            raise InvalidInput(SAY("files.guess_incomplete", file=path.name, why=complaint), field="file")
    facts = {d: read_facts(d, made.table, frame, path.name) for d, made in guesses.items()}
    return Imported(facts, (note for made in guesses.values() for note in made.notes))
