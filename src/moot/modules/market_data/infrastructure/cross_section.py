"""The lake, reading and measuring many companies in one read: columns, not facts, of every file at once."""

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from moot.modules.market_data.application.columns import schema_of
from moot.modules.market_data.application.many import Rows, Wanted
from moot.modules.market_data.application.peers import GROWTH, LATELY, MULTIPLES, RETURNS
from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Measures, Sight
from moot.modules.market_data.infrastructure import lake
from moot.shared.domain.errors import Unavailable

BY = "symbol"


class MeasuringLake(lake.Lake):
    """Says of many companies what `peers.measure` says of one."""

    async def measure(self, symbols: Collection[str], sight: Sight) -> dict[str, Measures]:
        return await asyncio.to_thread(self._measure, set(symbols), sight)

    def _measure(self, symbols: set[str], sight: Sight) -> dict[str, Measures]:
        asked = {facts.VALUATIONS: _multiples, facts.REPORTS: _growth, facts.BARS: _returns}
        there = {d: [p for p in lake.files_of(self._folder, d) if p.stem in symbols] for d in asked}
        try:
            frames = [
                asked[d](_scan(d, files, sight.as_of), sight).collect() for d, files in there.items() if files
            ]
        except lake.UNREADABLE:
            for dataset, files in there.items():
                for path in files:  # raises for the one that is to blame
                    lake.frame_in(path, dataset)
            raise
        found: dict[str, dict[str, float | None]] = {}
        for row in (row for frame in frames for row in frame.iter_rows(named=True)):
            found.setdefault(row.pop(BY), {}).update(row)
        return dict(found)

    async def read_many(self, dataset: facts.Dataset[Any], symbols: Collection[str], wanted: Wanted) -> Rows:
        """One damaged file costs no other."""
        return await asyncio.to_thread(self._read_many, dataset, set(symbols), wanted)

    def _read_many(self, dataset: facts.Dataset[Any], symbols: set[str], wanted: Wanted) -> Rows:
        files = [path for path in lake.files_of(self._folder, dataset) if path.stem in symbols]
        try:
            return Rows(_collect(dataset, files, wanted))
        except lake.UNREADABLE:
            whole = [path for path in files if _is_whole(dataset, path)]
            damaged = sorted({path.stem for path in files} - {path.stem for path in whole})
            return Rows(_collect(dataset, whole, wanted), tuple(damaged))


def _collect(dataset: facts.Dataset[Any], files: list[Path], wanted: Wanted) -> pl.DataFrame:
    day = pl.col(dataset.day)
    model: Any = dataset.model
    rows = _scan(dataset, files, wanted.as_of) if files else pl.LazyFrame(schema=schema_of(model))
    asked = rows if dataset.whole else rows.filter(day.is_between(wanted.start, wanted.end))
    return asked.select(BY, dataset.day, *wanted.columns).sort(BY, dataset.day).collect()


def _is_whole(dataset: facts.Dataset[Any], path: Path) -> bool:
    try:
        lake.frame_in(path, dataset)
    except Unavailable:
        return False
    return True


def _scan(dataset: facts.Dataset[Any], files: list[Path], as_of: datetime) -> pl.LazyFrame:
    return lake.scan(files, dataset).filter(pl.col("available_at") <= as_of.astimezone(UTC))


def _multiples(rows: pl.LazyFrame, sight: Sight) -> pl.LazyFrame:
    day = pl.col("trade_date")
    lately = rows.filter(day.is_between(sight.today - LATELY, min(sight.today, sight.until)))
    return lately.group_by(BY).agg(pl.col(MULTIPLES).sort_by(day).last())


def _returns(rows: pl.LazyFrame, sight: Sight) -> pl.LazyFrame:
    day, price = pl.col("trade_date"), pl.col("close") * pl.col("adj_factor")
    days = {"now": sight.today} | {name: sight.look_back(months) for name, months in RETURNS.items()}
    near = {name: day.is_between(on - LATELY, on) for name, on in days.items()}
    lately = rows.filter(pl.any_horizontal(*near.values()) & (day <= sight.until))
    prices = lately.group_by(BY).agg(
        price.sort_by(day).filter(when.sort_by(day)).last().alias(name) for name, when in near.items()
    )
    return prices.select(BY, *(_change(pl.col("now"), pl.col(name)).alias(name) for name in RETURNS))


def _growth(rows: pl.LazyFrame, sight: Sight) -> pl.LazyFrame:
    """A period may have been reported in several versions: the last one known holds."""
    period = pl.col("period_end")
    quarter = (period.dt.year() * 4 + period.dt.quarter()).alias("quarter")
    versions = rows.sort("period_end", "available_at").group_by(BY, quarter, maintain_order=True)
    held = versions.agg(pl.col("period_end", *GROWTH.values()).last())
    newest = held.group_by(BY, maintain_order=True).last().filter(period >= sight.recent)
    year_before = held.with_columns(pl.col("quarter") + 4)
    both = newest.join(year_before, on=[BY, "quarter"], how="left", suffix="_before")
    changes = (_change(pl.col(f), pl.col(f"{f}_before")).alias(name) for name, f in GROWTH.items())
    return both.select(BY, *changes)


def _change(now: pl.Expr, before: pl.Expr) -> pl.Expr:
    return pl.when(before > 0).then((now / before - 1) * 100)
