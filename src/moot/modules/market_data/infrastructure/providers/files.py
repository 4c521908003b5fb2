"""The user's own CSV and Parquet files as a source, described by a small YAML file beside them or by their headers.

Of a table nobody described, units are guessed by what the figures can only be. Every bad row is refused by file, line
and name, and no good one is lost with it.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered, Refusal, screen
from moot.modules.market_data.domain.series import ex_step
from moot.modules.market_data.domain.spelling import infer, market_of, read_code
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import file_mapping, file_tables, rows
from moot.modules.market_data.infrastructure.providers.file_mapping import TableMapping
from moot.modules.market_data.infrastructure.providers.file_tables import Row, Table
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Market, Symbol

SOURCE = "files"
MAPPING_NAME = "moot-data.yaml"
DECIMALS = 4
"""Of a reference price."""
TRADING = "trading"
"""A column that says the opposite of `suspended`, as Baostock's `tradestatus` does."""
PUBLISHED = "published"
"""A column whose time of day matters, read as it is."""
NUMBER = "number"
"""Of the row in its table, as long as it is not a fact."""


def read_facts(dataset: Dataset[Any], mapping: TableMapping, table: Table) -> Batch[Any]:
    """The rows of `table` as facts of `dataset`, by symbol and day."""
    told, refused = [], list(table.odd)
    for row in _rows(dataset, mapping, table):
        code = row.get("symbol", "")
        market = Market.CN if dataset in (facts.MACRO, facts.INDEX_BARS) else market_of(code)
        if market is None:
            said = SAY("refused.symbol", where=table.locate(row[NUMBER]), code=code)
            refused.append(Refusal(f"symbol={code}", "not a code", said))
        else:
            told.append(_tell(dataset, rows.Source(SOURCE, market), row))
    numbers = [row.pop(NUMBER) for row in told]
    key = dataset.key if not dataset.by_symbol else ("symbol", *dataset.key)
    batch: Batch[Any] = screen(
        dataset, told, key, locate=lambda n: table.locate(numbers[n]), merge=dataset in facts.VERSIONED
    )
    good: Iterable[Any] = batch
    if dataset is facts.BARS and "adj_factor" not in mapping.columns and mapping.adjusted is None:
        good = _add_factors(batch, told)
    return Batch(good, (*refused, *batch.refused))


def _tell(dataset: Dataset[Any], source: rows.Source, row: Row) -> Row:
    """With its times; news without an address gets one that is the same whenever it is read again."""
    if dataset is not facts.NEWS:
        return row if dataset is facts.MACRO else source.tell(dataset, row)
    published = row.pop(PUBLISHED, None)
    seen = source.read_moment(published) or source.moment(rows.read_day(published), rows.END_OF_DAY)
    mark = hashlib.sha256(f"{row.get('symbol')} {published} {row.get('title')}".encode()).hexdigest()[:16]
    return {"url": f"files:{mark}", "kind": "announcement", **row, **rows.known_from(seen)}


def _rows(dataset: Dataset[Any], mapping: TableMapping, table: Table) -> Iterable[Row]:
    only = mapping.symbol if mapping.symbol not in table.columns and market_of(mapping.symbol) else None
    named = {*mapping.theirs(), *([] if only or dataset is facts.MACRO else [mapping.symbol])}
    if missing := sorted(named - set(table.columns)):
        why = SAY("files.column_missing", file=table.file, columns=missing, there=table.columns)
        raise InvalidInput(why, field="file")
    read = []
    for number, raw in sorted(enumerate(table.rows), key=_correction):
        if not all(str(raw.get(name) or any_of[0]) in any_of for name, any_of in mapping.where.items()):
            continue
        marked = {NUMBER: number, "source": SOURCE}
        if dataset is facts.MACRO:
            read += [row | marked for row in _figures(mapping, raw, table.file)]
            continue
        told = only or str(raw.get(mapping.symbol) or "").strip()
        code = read_code(told) or infer(told) or told
        who = {"index": code, "name": code} if dataset is facts.INDEX_BARS else {"symbol": code}
        read.append({**who, **_read_row(dataset, mapping, raw), **marked})
    return _bars(mapping, read, dataset) if dataset in (facts.BARS, facts.INDEX_BARS) else read


def _correction(numbered: tuple[int, Row]) -> str:
    """Tushare's mark of a corrected row, which holds where both tell the same."""
    return str(numbered[1].get("update_flag") or "")


def _read_row(dataset: Dataset[Any], mapping: TableMapping, raw: Row) -> Row:
    cells = {ours: _cell(raw, theirs) for ours, theirs in mapping.columns.items()}
    scaled = {ours: (ours, mapping.scale(ours)) for ours in cells}
    row = {**mapping.given, **rows.read_columns(dataset, scaled, cells, mapping.date_format)}
    for ours, words in file_mapping.headers()["words"].items():
        if ours in row:
            row[ours] = words.get(row[ours], row[ours])
    return row | ({PUBLISHED: cells[PUBLISHED]} if PUBLISHED in cells else {})


def _cell(raw: Row, theirs: str | tuple[str, ...]) -> Any:
    if isinstance(theirs, str):
        return raw.get(theirs)
    return next((raw[name] for name in theirs if not rows.is_blank(raw.get(name))), None)


def _figures(mapping: TableMapping, raw: Row, file: str) -> Iterator[Row]:
    """A row has one figure and the name of its series, or a column for every series; blanks there are no figures."""
    columns = {ours: str(theirs) for ours, theirs in mapping.columns.items()}
    named = str(raw.get(columns.get("series", ""), "")).strip()
    wide = {name: columns[name] for name in rows.MACRO_RELEASES if name in columns}
    for name, column in ({named: columns["value"]} if named else wide).items():
        if rows.is_blank(raw.get(column)):
            continue
        url = f"{SOURCE}:{file}"
        if name in rows.MACRO_RELEASES:
            yield from rows.Series(name, "", column, url, columns["period"]).observations([raw], SOURCE)
            continue
        released = rows.read_day(raw.get(columns.get("released", "")))
        times = rows.known_from(rows.Source(SOURCE, Market.CN).moment(released))
        told = {ours: theirs for ours, theirs in columns.items() if ours != "released"}
        yield {"url": url, "unit": "", **rows.read_columns(facts.MACRO, told, raw), **times}


def _bars(mapping: TableMapping, days: list[Row], dataset: Dataset[Any]) -> Iterator[Row]:
    """In order, with what a table may leave out: the reference price, the amount, a suspended day's zeros."""
    who = "symbol" if dataset.by_symbol else "index"
    before: Row = {}
    for row in sorted(days, key=lambda r: (str(r[who]), str(r.get("trade_date")))):
        last = before if before.get(who) == row[who] else {}
        before = row
        full = _complete(mapping, row, last)
        yield full if dataset is facts.BARS else {k: v for k, v in full.items() if k != "adj_factor"}


def _complete(mapping: TableMapping, row: Row, last: Row) -> Row:
    full = {"adj_factor": 1.0, **row}
    if TRADING in full:
        full["suspended"] = not full.pop(TRADING)
    if full.get("suspended"):
        full = {"volume": 0, "amount": 0.0, **full}
    if "pre_close" not in mapping.columns and "close" in last:
        full["pre_close"] = rows.reference_price({"adj_factor": 1.0, **last}, full["adj_factor"], DECIMALS)
    if mapping.amount == "estimated":
        full["amount"] = rows.estimate_amount(full)
    return full


def _add_factors(bars: Iterable[DailyBar], told: Iterable[Row]) -> Iterator[DailyBar]:
    """Factors from reference prices: where `pre_close` is not the close before it, rights went ex.

    The factor starts at 1, wherever a file begins: where it meets what is kept, it is rebased. It moves only between
    neighbouring rows: a refused row between two days is a gap, and what went ex in a gap is not known.
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
        self._tables = file_mapping.read_mapping(mapping)
        self._read: dict[Dataset[Any], tuple[State, Batch[Any]]] = {}

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        table = self._tables.get(dataset)
        if table is None:
            raise NotOffered(SAY("files.not_offered", dataset=dataset.label))
        found = await asyncio.to_thread(self._load, dataset, table)
        if dataset is facts.COMPANIES:
            return Batch(found, found.refused)
        market = Symbol.parse(subject).market if dataset.by_symbol else Market(subject)
        mine = [fact for fact in found if not dataset.by_symbol or fact.symbol == subject]
        return Batch(
            (fact for fact in mine if dataset.covers(getattr(fact, dataset.day), start, end, market)),
            (r for r in found.refused if not dataset.by_symbol or r.row.startswith(f"symbol={subject},")),
        )

    def _load(self, dataset: Dataset[Any], mapping: TableMapping) -> Batch[Any]:
        paths = sorted(self._folder.glob(mapping.path)) if mapping.path else []
        if not paths:
            raise InvalidInput(
                SAY("files.no_file", path=mapping.path, folder=self._folder.name), field="mapping"
            )
        state = tuple((path, path.stat().st_mtime_ns) for path in paths)
        kept = self._read.get(dataset)
        if kept is None or kept[0] != state:
            table = file_tables.join_tables(mapping.path, map(file_tables.read_table, paths))
            kept = self._read[dataset] = (state, read_facts(dataset, mapping, table))
        return kept[1]


Imported = tuple[dict[Dataset[Any], Batch[Any]], list[Message]]
"""The facts of a file by kind, and what was assumed about its columns in order to read them."""


def read_import(path: Path, mapping: Path | None = None) -> Imported:
    """Everything in one file; without a mapping, its columns are told by their headers."""
    if not path.name.endswith(file_tables.TYPES):
        raise InvalidInput(
            SAY("files.type_unknown", file=path.name, known=list(file_tables.TYPES)), field="file"
        )
    table = file_tables.read_table(path)
    if mapping is None:
        return _by_headers(table)
    tables = {
        d: t for d, t in file_mapping.read_mapping(mapping).items() if Path(t.path).name in ("", path.name)
    }
    if not tables:
        raise InvalidInput(SAY("files.not_in_mapping", file=path.name, mapping=mapping.name), field="mapping")
    return {d: read_facts(d, each, table) for d, each in tables.items()}, []


def _by_headers(table: Table) -> Imported:
    guesses = file_mapping.guess(table)
    if not guesses:
        known = [dataset.label for dataset in facts.DATASETS.values()]
        why = SAY("files.headers_unknown", file=table.file, there=table.columns, known=known)
        raise InvalidInput(why, field="file")
    for dataset, (mapping, _) in guesses.items():
        for _, complaint in file_mapping.complaints(dataset, mapping):
            raise InvalidInput(SAY("files.guess_incomplete", file=table.file, why=complaint), field="file")
    notes = {str(note): note for _, told in guesses.values() for note in told}
    ignored = file_mapping.tell_ignored(table, [mapping for mapping, _ in guesses.values()])
    read = {dataset: read_facts(dataset, mapping, table) for dataset, (mapping, _) in guesses.items()}
    return read, [*notes.values(), *ignored]
