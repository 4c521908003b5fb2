"""What the columns of a user's table are: as a small YAML file says, or by the headers in use.

The YAML is checked word by word, errors are named by file and line. Of a table nobody described, units are guessed
by what the figures can only be.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import polars as pl
import yaml
from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS, REPORTS, VALUATIONS, Dataset
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message

UNITS: dict[str, float] = {
    "shares": 1.0,
    "lots": 100.0,
    "yuan": 1.0,
    "dollars": 1.0,
    "thousand": 1e3,
    "ten_thousand": 1e4,
    "million": 1e6,
    "hundred_million": 1e8,
    "percent": 1.0,
    "fraction": 100.0,
}
REQUIRED: dict[Dataset[Any], tuple[str, ...]] = {
    BARS: ("trade_date", "open", "high", "low", "close", "volume"),
    VALUATIONS: ("trade_date", "close", "total_mv"),
    REPORTS: ("period_end",),
    COMPANIES: ("name", "list_date"),
}
WORKED_OUT = {"symbol", "event_time", "available_at", "source", "synthetic", "aliases", "st_history"}
TRADING = "trading"
"""A column that says the opposite of `suspended`, as Baostock's `tradestatus` does."""
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


class TableMapping(BaseModel, frozen=True, extra="forbid"):
    """One table. `columns` is ours by theirs: `{close: 收盘}`; `symbol` is a column, or the only symbol there is."""

    columns: dict[str, str]
    symbol: str
    path: str = ""
    units: dict[str, str] = {}
    date_format: str | None = None
    adjusted: Literal["none"] | None = None
    amount: Literal["estimated"] | None = None

    def scale(self, field: str) -> float:
        return UNITS[self.units[field]] if field in self.units else 1.0


def read_mapping(path: Path) -> dict[Dataset[Any], TableMapping]:
    """The tables a mapping file describes; `InvalidInput` says what is wrong with it, and where."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.safe_load(text)
    except OSError as e:
        raise _wrong(path, None, SAY("files.unreadable", why=e.strerror)) from e
    except UnicodeDecodeError as e:
        raise _wrong(path, None, SAY("files.not_utf8")) from e
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        why = SAY("files.bad_yaml", why=getattr(e, "problem", None) or str(e))
        raise _wrong(path, mark.line + 1 if mark else None, why) from e
    if not isinstance(tree, dict) or not tree:
        raise _wrong(path, 1, SAY("files.no_tables", known=[dataset.name for dataset in REQUIRED]))
    tables = {}
    for name, body in tree.items():
        for word, complaint in _table_complaints(name, body):
            raise _wrong(path, _line_of(word, str(name), text), complaint)
        tables[DATASETS[name]] = TableMapping.model_validate(body)
    return tables


def _table_complaints(name: Any, body: Any) -> Iterator[tuple[str, Message]]:
    known = [dataset.name for dataset in REQUIRED]
    if name not in known:
        yield str(name), SAY("files.dataset_unknown", dataset=name, known=known)
    try:
        table = TableMapping.model_validate(body)
    except ValidationError as e:
        place = [name, *map(str, e.errors()[0]["loc"])]
        yield place[-1], SAY("files.bad_table", where=".".join(place), why=e.errors()[0]["msg"])
    else:
        yield from complaints(DATASETS[name], table)


def complaints(dataset: Dataset[Any], table: TableMapping) -> Iterator[tuple[str, Message]]:
    """What keeps the mapping from being used, each with the word in the file that it is about."""
    known = sorted(fields_of(dataset))
    for field in table.columns:
        if field not in known:
            yield field, SAY("files.field_unknown", field=field, dataset=dataset.name, known=known)
    for field, unit in table.units.items():
        if unit not in UNITS:
            yield unit, SAY("files.unit_unknown", unit=unit, field=field, known=list(UNITS))
    missing = [field for field in REQUIRED[dataset] if field not in table.columns]
    if missing:
        yield "columns", SAY("files.fields_missing", dataset=dataset.name, fields=missing)
    if dataset is BARS and "amount" not in table.columns and table.amount is None:
        yield "columns", SAY("files.no_amount")
    if dataset is BARS and table.adjusted is None and not {"adj_factor", "pre_close"} & set(table.columns):
        yield "columns", SAY("files.no_factor")


def fields_of(dataset: Dataset[Any]) -> set[str]:
    """What a column of the dataset may be."""
    fields = set(dataset.model.model_fields) - WORKED_OUT
    return fields | {TRADING} if dataset is BARS else fields


def _line_of(word: str, table: str, text: str) -> int | None:
    """The first line of a table that has the word."""
    found = re.compile(rf"\b{re.escape(word)}\b").search(text, max(text.find(table), 0))
    return text.count("\n", 0, found.start()) + 1 if found else None


def _wrong(path: Path, line: int | None, why: Message) -> InvalidInput:
    where = SAY("files.at_line", file=path.name, line=line) if line else path.name
    return InvalidInput(SAY("files.mapping_wrong", where=where, why=why), field="mapping")


def guess(frame: pl.DataFrame) -> dict[Dataset[Any], tuple[TableMapping, list[Message]]]:
    """The datasets the table could be, each with a mapping and what was assumed for it; empty if it is none."""
    headers = {name.strip().lower().replace("（", "(").replace("）", ")"): name for name in frame.columns}
    found = {dataset: _guess(dataset, headers, frame) for dataset in REQUIRED}
    return {dataset: made for dataset, made in found.items() if made is not None}


def _guess(
    dataset: Dataset[Any], headers: dict[str, str], frame: pl.DataFrame
) -> tuple[TableMapping, list[Message]] | None:
    known = _headers()
    columns = {
        field: next(headers[name] for name in names if name in headers)
        for field, names in {"symbol": known["symbol"], **known[dataset.name]}.items()
        if not headers.keys().isdisjoint(names)
    }
    pairs = [f"{ours} = {theirs}" for ours, theirs in columns.items()]
    symbol = columns.pop("symbol", None)
    if symbol is None or not set(REQUIRED[dataset]) <= columns.keys() or columns.keys() <= DATES:
        return None
    units = {field: unit for field, theirs in columns.items() if (unit := known["units"].get(theirs.lower()))}
    notes = [SAY("files.guessed_columns", dataset=dataset.label, columns=pairs)]
    told = units if dataset is VALUATIONS else {}
    estimated: Literal["estimated"] | None = None
    if dataset is BARS and "amount" in columns:
        units |= (told := _measure_units(frame, columns))
    elif dataset is BARS:
        estimated = "estimated"
        notes.append(SAY("files.guessed_amount"))
    if told:
        notes.append(SAY("files.guessed_units", units=[f"{field}: {unit}" for field, unit in told.items()]))
    return TableMapping(columns=columns, symbol=symbol, units=units, amount=estimated), notes


def _measure_units(frame: pl.DataFrame, columns: dict[str, str]) -> dict[str, str]:
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


@cache
def _headers() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("file_headers.toml").read_text(encoding="utf-8"))
