"""A table nobody described: what its columns mean, by the headers in use and by what the figures can only be."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from moot.modules.market_data.domain.datasets import Dataset
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers.file_mapping import REQUIRED, TableMapping
from moot.shared.domain.messages import Message

UNIT_RATIOS: dict[float, tuple[str, str]] = {
    1.0: ("shares", "yuan"),
    100.0: ("lots", "yuan"),
    0.1: ("lots", "thousand"),
    0.01: ("lots", "ten_thousand"),
    1e-3: ("shares", "thousand"),
    1e-4: ("shares", "ten_thousand"),
}
"""How many closes amount / volume is, by the units of volume and amount."""
RATIO_SLACK = 1.6
DATES = {"period_end", "announced_on"}
"""A table with no more than these says nothing."""


@dataclass(frozen=True)
class Guess:
    table: TableMapping
    notes: tuple[Message, ...]


def guess(frame: pl.DataFrame) -> dict[Dataset, Guess]:
    """The datasets the table could be, each with a mapping and what was assumed for it; empty if it is none."""
    headers = {name.strip().lower().replace("（", "(").replace("）", ")"): name for name in frame.columns}
    found = {dataset: _guess(dataset, headers, frame) for dataset in REQUIRED}
    return {dataset: made for dataset, made in found.items() if made is not None}


def _guess(dataset: Dataset, headers: dict[str, str], frame: pl.DataFrame) -> Guess | None:
    known = _headers()
    symbol = _first(headers, known["symbol"])
    columns = {field: _first(headers, names) for field, names in known[dataset.value].items()}
    there = {field: theirs for field, theirs in columns.items() if theirs is not None}
    if symbol is None or not set(REQUIRED[dataset]) <= there.keys() or there.keys() <= DATES:
        return None
    units = {field: unit for field, theirs in there.items() if (unit := known["units"].get(theirs.lower()))}
    notes = [
        SAY("files.guessed_columns", dataset=SAY(f"dataset.{dataset.value}"), columns=_pairs(there, symbol))
    ]
    if dataset is Dataset.BARS and "amount" in there:
        units |= (measured := _measured_units(frame, there))
        notes += (
            [SAY("files.guessed_units", units=[f"{f}: {u}" for f, u in measured.items()])] if measured else []
        )
    if dataset is Dataset.BARS and "amount" not in there:
        notes.append(SAY("files.guessed_amount"))
    if dataset is Dataset.VALUATIONS and units:
        notes.append(SAY("files.guessed_units", units=[f"{f}: {u}" for f, u in units.items()]))
    estimated = "estimated" if dataset is Dataset.BARS and "amount" not in there else None
    return Guess(TableMapping(columns=there, symbol=symbol, units=units, amount=estimated), tuple(notes))


def _measured_units(frame: pl.DataFrame, columns: dict[str, str]) -> dict[str, str]:
    """The units of volume and amount that make their ratio a price of the day; empty if none does."""
    volume, amount, close = (
        pl.col(columns[name]).cast(pl.String).str.replace_all(",", "").cast(pl.Float64, strict=False)
        for name in ("volume", "amount", "close")
    )
    ratio = frame.select((amount / volume / close).alias("ratio")).filter(pl.col("ratio").is_finite())
    middle = ratio["ratio"].median()
    if not isinstance(middle, float):
        return {}
    for factor, (of_volume, of_amount) in UNIT_RATIOS.items():
        if factor / RATIO_SLACK <= middle <= factor * RATIO_SLACK:
            return {"volume": of_volume, "amount": of_amount}
    return {}


def _first(headers: dict[str, str], names: list[str]) -> str | None:
    return next((headers[name] for name in names if name in headers), None)


def _pairs(columns: dict[str, str], symbol: str) -> list[str]:
    return [f"{ours} = {theirs}" for ours, theirs in {"symbol": symbol, **columns}.items()]


@cache
def _headers() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
