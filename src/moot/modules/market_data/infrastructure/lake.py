"""The lake: one Parquet file per dataset and symbol, replaced whole, read through the port of every provider.

`bars/600519.SH.parquet`, `companies/CN.parquet`, `news/_CN.parquet` (what concerns a market and no symbol). What a
file covers is written in its own metadata, so that facts and coverage change in the same moment.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import DATASETS, Dataset
from moot.modules.market_data.domain.provider import A_DAY, Batch, Coverage, Range
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.lake_files import (
    SUFFIX,
    coverage_of,
    facts_in,
    files_of,
    frame_in,
    frame_of,
    hold_lock,
    replace,
    row_of,
    schema_of,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

M = TypeVar("M", bound=BaseModel)


class Lake:
    name = "lake"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        """Every version of every report; news together with those that concern the market and no symbol."""
        market = _market_of(subject)
        names = dict.fromkeys([_file_name(dataset, subject), _file_name(dataset, market)])
        paths = [path for name in names if (path := self._path(dataset, name)).exists()]
        where = _filter_of(dataset, market, start, end)
        return await asyncio.to_thread(_facts, dataset, paths, where)

    def store(
        self,
        dataset: Dataset[BaseModel],
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

    def coverage(self, dataset: Dataset[BaseModel], subject: str) -> Coverage | None:
        path = self._path(dataset, _file_name(dataset, subject))
        return coverage_of(path) if path.exists() else None

    def inventory(self) -> list[Coverage]:
        """What is kept, by dataset and symbol, from metadata alone; a damaged file is a row that says so."""
        kept = ((dataset, files_of(self._folder, dataset)) for dataset in DATASETS.values())
        return [row_of(dataset, path) for dataset, paths in kept for path in paths]

    def _merge(
        self,
        dataset: Dataset[BaseModel],
        name: str,
        facts: Sequence[BaseModel],
        covered: Range | None,
        at: datetime,
    ) -> None:
        path = self._path(dataset, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(path):
            frame, ranges = frame_of(dataset.model, facts), [covered] if covered else []
            if path.exists():
                frame = pl.concat([frame_in(path, dataset), frame])
                ranges += coverage_of(path).ranges
            frame = frame.unique(dataset.key, keep="last").sort(dataset.day, *dataset.key)
            coverage = Coverage(
                dataset=dataset.name,
                subject=name.removeprefix("_"),
                ranges=join_ranges(ranges),
                rows=frame.height,
                sources=tuple(frame["source"].unique().sort()),
                stored_at=at,
                newest=_last(frame, "event_time"),
            )
            replace(path, frame, coverage)

    def _path(self, dataset: Dataset[BaseModel], name: str) -> Path:
        return self._folder / dataset.name / f"{name}{SUFFIX}"


def _facts(dataset: Dataset[M], paths: Sequence[Path], where: pl.Expr | None) -> Batch[M]:
    facts = [fact for path in paths for fact in facts_in(path, dataset, where)]
    if len(paths) > 1:
        facts.sort(key=lambda fact: [getattr(fact, name) for name in (dataset.day, *dataset.key)])
    return Batch(facts)


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


def _last(frame: pl.DataFrame, times: str) -> datetime | None:
    last = frame[times].max() if times in frame.columns else None
    return last if isinstance(last, datetime) else None


def _market_of(subject: str) -> Market:
    return Market(subject) if subject in list(Market) else Symbol.parse(subject).market


def _file_name(dataset: Dataset[BaseModel], subject: str) -> str:
    """Only a symbol Moot can spell, or a market, names a file: nothing else gets into a path."""
    if not dataset.by_symbol:
        return _market_of(subject).value
    return f"_{subject.value}" if isinstance(subject, Market) else Symbol.parse(subject).text


def _file_name_of(dataset: Dataset[BaseModel], subject: str, fact: Any) -> str:
    """Where `fact` belongs when it comes with the facts of `subject`."""
    home = _file_name(dataset, subject)
    if not dataset.by_symbol or fact.symbol == home:
        return home
    if fact.symbol is None:
        return _file_name(dataset, _market_of(subject))
    raise InvalidInput(SAY("lake.other_symbol", subject=subject, symbol=fact.symbol), field="symbol")
