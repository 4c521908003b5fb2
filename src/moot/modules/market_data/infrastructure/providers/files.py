"""The user's own CSV and Parquet files as a source, described by a small YAML file beside them.

Every bad row is refused by name, and no good one lost with it.
"""

import asyncio
import gzip
from collections.abc import Iterable, Iterator
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import BARS, DailyBar, Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered, Refusal, screen
from moot.modules.market_data.domain.spelling import infer, market_of, read_code
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import file_mapping
from moot.modules.market_data.infrastructure.providers.file_mapping import TableMapping
from moot.modules.market_data.infrastructure.providers.rows import (
    add_times,
    estimate_amount,
    read_columns,
    reference_price,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Symbol

SOURCE = "files"
DECIMALS = 4
"""Of a reference price."""
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
    rows = [
        add_times(dataset, row, market) if (market := market_of(row["symbol"])) else row
        for row in _rows(dataset, table, frame, name)
    ]
    batch: Batch[Any] = screen(dataset, rows, ("symbol", *(k for k in dataset.key if k != "symbol")))
    if dataset is BARS and "adj_factor" not in table.columns and table.adjusted is None:
        return Batch(_add_factors(batch, rows), batch.refused)
    return batch


def by_symbol(batch: Batch[Any]) -> dict[str, Batch[Any]]:
    """Facts and refusals under the symbol they are about."""
    facts: dict[str, list[Any]] = {}
    refused: dict[str, list[Refusal]] = {}
    for fact in batch:
        facts.setdefault(fact.symbol, []).append(fact)
    for refusal in batch.refused:
        symbol = refusal.row.split(",")[0].removeprefix("symbol=")
        refused.setdefault(symbol, []).append(refusal)
    return {
        symbol: Batch(facts.get(symbol, ()), refused.get(symbol, ()))
        for symbol in sorted(facts.keys() | refused.keys())
    }


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
        row = read_columns(dataset, scaled, raw, table.date_format)
        read.append(row | {"source": SOURCE, "symbol": only or _symbol(row.get("symbol", ""))})
    yield from (_bars(table, read) if dataset is BARS else read)


def _symbol(text: str) -> str:
    return read_code(text) or infer(text) or text


def _bars(table: TableMapping, rows: list[Row]) -> Iterator[Row]:
    """In order, with what a table may leave out: the reference price, the amount, a suspended day's zeros."""
    before: Row = {}
    for row in sorted(rows, key=lambda r: (str(r["symbol"]), str(r.get("trade_date")))):
        last = before if before.get("symbol") == row["symbol"] else {}
        before = row
        yield _complete(table, row, last)


def _complete(table: TableMapping, row: Row, last: Row) -> Row:
    full = {"adj_factor": 1.0, **row}
    if file_mapping.TRADING in full:
        full["suspended"] = not full.pop(file_mapping.TRADING)
    if full.get("suspended"):
        full = {"volume": 0, "amount": 0.0, **full}
    if "pre_close" not in table.columns and "close" in last:
        full["pre_close"] = reference_price({"adj_factor": 1.0, **last}, full["adj_factor"], DECIMALS)
    if table.amount == "estimated":
        full["amount"] = estimate_amount(full)
    return full


def _add_factors(bars: Iterable[DailyBar], rows: Iterable[Row]) -> Iterator[DailyBar]:
    """Factors from reference prices: where `pre_close` is not the close before it, rights went ex.

    The factor starts at 1 and moves only between neighbouring rows: a refused row between two days is a gap,
    and what went ex in a gap is not known.
    """
    good = {(bar.symbol, bar.trade_date): bar for bar in bars}
    places = {(row["symbol"], day) for row in rows if isinstance(day := row.get("trade_date"), date)}
    symbol, factor, before = "", 1.0, None
    for place in sorted(places):
        if place[0] != symbol:
            symbol, factor, before = place[0], 1.0, None
        bar = good.get(place)
        if bar is not None and before is not None:
            factor *= before.close / bar.pre_close
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
        self._tables = file_mapping.read_mapping(mapping)
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
        wanted = (fact for fact in found if dataset.covers(getattr(fact, dataset.day), *days))
        return Batch(wanted, found.refused)

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


Imported = tuple[dict[Dataset[Any], Batch[Any]], list[Message]]
"""The facts of a file by kind, and what was assumed about its columns in order to read them."""


def read_import(path: Path, mapping: Path | None = None) -> Imported:
    """Everything in one file; without a mapping, its columns are told by their headers."""
    if not path.name.endswith(TYPES):
        raise InvalidInput(SAY("files.type_unknown", file=path.name, known=list(TYPES)), field="file")
    frame = read_frame(path)
    if mapping is None:
        return _by_headers(path, frame)
    tables = {
        d: t for d, t in file_mapping.read_mapping(mapping).items() if Path(t.path).name in ("", path.name)
    }
    if not tables:
        raise InvalidInput(SAY("files.not_in_mapping", file=path.name, mapping=mapping.name), field="mapping")
    return {d: read_facts(d, table, frame, path.name) for d, table in tables.items()}, []


def _by_headers(path: Path, frame: pl.DataFrame) -> Imported:
    guesses = file_mapping.guess(frame)
    if not guesses:
        known = [dataset.label for dataset in file_mapping.REQUIRED]
        why = SAY("files.headers_unknown", file=path.name, there=frame.columns, known=known)
        raise InvalidInput(why, field="file")
    for dataset, (table, _) in guesses.items():
        for _, complaint in file_mapping.complaints(dataset, table):
            raise InvalidInput(SAY("files.guess_incomplete", file=path.name, why=complaint), field="file")
    facts = {dataset: read_facts(dataset, table, frame, path.name) for dataset, (table, _) in guesses.items()}
    return facts, [note for _, notes in guesses.values() for note in notes]
