"""The user's own CSV and Parquet files as a source, described by a small YAML file beside them or by their headers.

The YAML is checked word by word, errors are named by file and line. Of a table nobody described, units are guessed by
what the figures can only be. Every bad row is refused by name, and no good one lost with it.
"""

import asyncio
import gzip
import re
import tomllib
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl
import yaml
from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS, REPORTS, VALUATIONS, Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered, screen
from moot.modules.market_data.domain.seams import ex_step
from moot.modules.market_data.domain.spelling import infer, market_of, read_code
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import rows
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Symbol

SOURCE = "files"
MAPPING_NAME = "moot-data.yaml"
TYPES = (".csv", ".csv.gz", ".parquet")
DECIMALS = 4
"""Of a reference price."""
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
    known = sorted({*dataset.model.model_fields, *([TRADING] if dataset is BARS else [])} - WORKED_OUT)
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


Row = dict[str, Any]


def read_frame(path: Path) -> pl.DataFrame:
    """The file as it is: text for CSV (so that 000001 keeps its zeros), UTF-8 or GB 18030, plain or gzipped."""
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path).fill_nan(None)
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
        frame = pl.read_csv(BytesIO(_text(raw).encode()), infer_schema=False)
    except OSError as e:
        raise _refuse_file(path, e.strerror or str(e)) from e
    except pl.exceptions.PolarsError as e:
        raise _refuse_file(path, str(e).splitlines()[0]) from e
    return frame.rename({name: name.strip() for name in frame.columns})


def read_facts(dataset: Dataset[Any], table: TableMapping, frame: pl.DataFrame, name: str) -> Batch[Any]:
    """The rows of `frame` as facts of `dataset`, by symbol and day; `name` is the file's, for messages."""
    told = [
        rows.Source(SOURCE, market).tell(dataset, row) if (market := market_of(row["symbol"])) else row
        for row in _rows(dataset, table, frame, name)
    ]
    batch: Batch[Any] = screen(dataset, told, ("symbol", *(k for k in dataset.key if k != "symbol")))
    if dataset is BARS and "adj_factor" not in table.columns and table.adjusted is None:
        return Batch(_add_factors(batch, told), batch.refused)
    return batch


def _rows(dataset: Dataset[Any], table: TableMapping, frame: pl.DataFrame, name: str) -> Iterator[Row]:
    only = table.symbol if table.symbol not in frame.columns and market_of(table.symbol) else None
    columns = table.columns if only else {**table.columns, "symbol": table.symbol}
    missing = [theirs for theirs in columns.values() if theirs not in frame.columns]
    if missing:
        raise InvalidInput(
            SAY("files.column_missing", file=name, columns=missing, there=frame.columns), field="file"
        )
    scaled = {ours: (theirs, table.scale(ours)) for ours, theirs in columns.items()}
    read = []
    for raw in frame.iter_rows(named=True):
        row = rows.read_columns(dataset, scaled, raw, table.date_format)
        told = row.get("symbol", "")
        read.append(row | {"source": SOURCE, "symbol": only or read_code(told) or infer(told) or told})
    yield from (_bars(table, read) if dataset is BARS else read)


def _bars(table: TableMapping, days: list[Row]) -> Iterator[Row]:
    """In order, with what a table may leave out: the reference price, the amount, a suspended day's zeros."""
    before: Row = {}
    for row in sorted(days, key=lambda r: (str(r["symbol"]), str(r.get("trade_date")))):
        last = before if before.get("symbol") == row["symbol"] else {}
        before = row
        yield _complete(table, row, last)


def _complete(table: TableMapping, row: Row, last: Row) -> Row:
    full = {"adj_factor": 1.0, **row}
    if TRADING in full:
        full["suspended"] = not full.pop(TRADING)
    if full.get("suspended"):
        full = {"volume": 0, "amount": 0.0, **full}
    if "pre_close" not in table.columns and "close" in last:
        full["pre_close"] = rows.reference_price({"adj_factor": 1.0, **last}, full["adj_factor"], DECIMALS)
    if table.amount == "estimated":
        full["amount"] = rows.estimate_amount(full)
    return full


def _add_factors(bars: Iterable[DailyBar], told: Iterable[Row]) -> Iterator[DailyBar]:
    """Factors from reference prices: where `pre_close` is not the close before it, rights went ex.

    The factor starts at 1 and moves only between neighbouring rows: a refused row between two days is a gap,
    and what went ex in a gap is not known.
    """
    good = {(bar.symbol, bar.trade_date): bar for bar in bars}
    places = {(row["symbol"], day) for row in told if isinstance(day := row.get("trade_date"), date)}
    symbol, factor, before = "", 1.0, None
    for place in sorted(places):
        if place[0] != symbol:
            symbol, factor, before = place[0], 1.0, None
        bar = good.get(place)
        if bar is not None and before is not None:
            factor *= ex_step(before, bar)
        before = bar
        if bar is not None:
            yield bar.model_copy(update={"adj_factor": factor})


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("gb18030", errors="replace")


def _refuse_file(path: Path, why: str) -> InvalidInput:
    return InvalidInput(SAY("files.file_unreadable", file=path.name, why=why), field="file")


M = TypeVar("M", bound=BaseModel)
State = tuple[tuple[Path, int], ...]
"""Which files, and when each was written."""


class FilesProvider:
    """`place` is a mapping file, or the folder that has one named `moot-data.yaml`; paths in it go from there.

    A path may be a pattern (`bars/*.csv`). Files are read again when they have changed.
    """

    name = SOURCE

    def __init__(self, place: Path) -> None:
        mapping = place / MAPPING_NAME if place.is_dir() else place
        self._folder = mapping.parent
        self._tables = read_mapping(mapping)
        self._read: dict[Dataset[Any], tuple[State, Batch[Any]]] = {}

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        table = self._tables.get(dataset)
        if table is None:
            raise NotOffered(SAY("files.not_offered", dataset=dataset.label))
        found = await asyncio.to_thread(self._load, dataset, table)
        if not dataset.by_symbol:
            return Batch(found, found.refused)
        days = (start, end, Symbol.parse(subject).market)
        return Batch(
            (f for f in found if f.symbol == subject and dataset.covers(getattr(f, dataset.day), *days)),
            (refusal for refusal in found.refused if refusal.row.startswith(f"symbol={subject},")),
        )

    def _load(self, dataset: Dataset[Any], table: TableMapping) -> Batch[Any]:
        paths = sorted(self._folder.glob(table.path)) if table.path else []
        if not paths:
            raise InvalidInput(
                SAY("files.no_file", path=table.path, folder=self._folder.name), field="mapping"
            )
        state = tuple((path, path.stat().st_mtime_ns) for path in paths)
        kept = self._read.get(dataset)
        if kept is None or kept[0] != state:
            frame = pl.concat([read_frame(path) for path in paths], how="diagonal_relaxed")
            kept = self._read[dataset] = (state, read_facts(dataset, table, frame, table.path))
        return kept[1]


Imported = tuple[dict[Dataset[Any], Batch[Any]], list[Message]]
"""The facts of a file by kind, and what was assumed about its columns in order to read them."""


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
    return {d: read_facts(d, table, frame, path.name) for d, table in tables.items()}, []


def _by_headers(path: Path, frame: pl.DataFrame) -> Imported:
    guesses = guess(frame)
    if not guesses:
        known = [dataset.label for dataset in REQUIRED]
        why = SAY("files.headers_unknown", file=path.name, there=frame.columns, known=known)
        raise InvalidInput(why, field="file")
    for dataset, (table, _) in guesses.items():
        for _, complaint in complaints(dataset, table):
            raise InvalidInput(SAY("files.guess_incomplete", file=path.name, why=complaint), field="file")
    facts = {dataset: read_facts(dataset, table, frame, path.name) for dataset, (table, _) in guesses.items()}
    return facts, [note for _, notes in guesses.values() for note in notes]
