"""What the columns of a user's file are: told by a YAML file, checked word by word, or guessed by their headers.

The spellings of headers, and what each kind of file must tell, are a table: `file_headers.toml`.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.facts import BARS, DATASETS, INDEX_BARS, MACRO, Dataset
from moot.modules.market_data.domain.spelling import find_unsupported, read_code
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import rows
from moot.modules.market_data.infrastructure.providers.file_tables import Table
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message

WORKED_OUT = {"symbol", "index", "event_time", "available_at", "source"}
LISTS = {"synthetic", "aliases", "st_history", "names"}
"""What no column tells."""
RATIO_SLACK = 1.6
DATES = {"period_end", "announced_on"}
"""A table with no more than these says nothing."""
INDEX = re.compile(r"\d{6}\.(SI|CSI|CI|CNI)", re.IGNORECASE)
"""A code of those who compute indexes, rather than of an exchange."""
MOST_NAMED = 20
Names = str | tuple[str, ...]


class TableMapping(BaseModel, frozen=True, extra="forbid"):
    """One table. `columns` is ours by theirs: `{close: 收盘}`; `symbol` is a column, or the only symbol there is.

    Of several columns, the first that is not blank counts. `given` is what every row is, `where` which rows count.
    """

    columns: dict[str, Names]
    symbol: str = ""
    path: str = ""
    units: dict[str, str] = {}
    date_format: str | None = None
    adjusted: Literal["none"] | None = None
    amount: Literal["estimated"] | None = None
    given: dict[str, str] = {}
    where: dict[str, tuple[str, ...]] = {}

    def scale(self, field: str) -> float:
        return float(headers()["scale"][self.units[field]]) if field in self.units else 1.0

    def theirs(self) -> set[str]:
        """Every column that is read."""
        named = (each if isinstance(each, tuple) else (each,) for each in self.columns.values())
        return {name for names in named for name in names} | set(self.where)


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
        raise _wrong(path, 1, SAY("files.no_tables", known=list(DATASETS)))
    tables = {}
    for name, body in tree.items():
        for word, complaint in _table_complaints(name, body):
            raise _wrong(path, _line_of(word, str(name), text), complaint)
        tables[DATASETS[name]] = TableMapping.model_validate(body)
    return tables


def _table_complaints(name: Any, body: Any) -> Iterator[tuple[str, Message]]:
    if name not in DATASETS:
        yield str(name), SAY("files.dataset_unknown", dataset=name, known=list(DATASETS))
    try:
        table = TableMapping.model_validate(body)
    except ValidationError as e:
        place = [name, *map(str, e.errors()[0]["loc"])]
        yield place[-1], SAY("files.bad_table", where=".".join(place), why=e.errors()[0]["msg"])
    else:
        yield from complaints(DATASETS[name], table)


def complaints(dataset: Dataset[Any], table: TableMapping) -> Iterator[tuple[str, Message]]:
    """What keeps the mapping from being used, each with the word in the file that it is about."""
    spelled = {field for shape in _shapes(dataset) for field in headers()[shape]}
    known = sorted({*dataset.model.model_fields, *spelled} - WORKED_OUT - LISTS)
    for field in (*table.columns, *table.given):
        if field not in known:
            yield field, SAY("files.field_unknown", field=field, dataset=dataset.name, known=known)
    for field, unit in table.units.items():
        if unit not in headers()["scale"]:
            yield unit, SAY("files.unit_unknown", unit=unit, field=field, known=list(headers()["scale"]))
    missing = [field for field in headers()["needs"][dataset.name] if field not in table.columns]
    if missing:
        yield "columns", SAY("files.fields_missing", dataset=dataset.name, fields=missing)
    if not table.symbol and dataset is not MACRO:
        yield dataset.name, SAY("files.fields_missing", dataset=dataset.name, fields=["symbol"])
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


def guess(table: Table) -> dict[Dataset[Any], tuple[TableMapping, list[Message]]]:
    """The datasets the table could be, each with a mapping and what was assumed for it; empty if it is none."""
    shapes = [(dataset, shape) for dataset in DATASETS.values() for shape in reversed(_shapes(dataset))]
    return {dataset: made for dataset, shape in shapes if (made := _guess(dataset, shape, table))}


def tell_ignored(table: Table, mappings: list[TableMapping]) -> list[Message]:
    """The columns that nothing is read from."""
    read = {name for mapping in mappings for name in (mapping.symbol, *mapping.theirs())}
    ignored = [name for name in table.columns if name not in read]
    more, named = len(ignored[MOST_NAMED:]), ignored[:MOST_NAMED]
    key = "files.ignored_many" if more else "files.ignored"
    return [SAY(key, columns=named, more=more)] if ignored else []


def _shapes(dataset: Dataset[Any]) -> list[str]:
    kinds = {name: shape.get("dataset", name) for name, shape in headers()["shapes"].items()}
    own = {dataset.name: dataset.name} if dataset.name in headers() else {}
    return [name for name, kind in (own | kinds).items() if kind == dataset.name]


def _guess(dataset: Dataset[Any], shape: str, table: Table) -> tuple[TableMapping, list[Message]] | None:
    known, special = headers(), headers()["shapes"].get(shape, {})
    columns = _find_columns(dataset, shape, table)
    pairs = [f"{ours} = {names if isinstance(names, str) else names[0]}" for ours, names in columns.items()]
    symbol = str(columns.pop("symbol", ""))
    needed = {*known["needs"][dataset.name], *special.get("needs", ())}
    told = needed <= columns.keys() and not columns.keys() <= DATES
    if not told or not _is_about(dataset, symbol, columns, table):
        return None
    stated = known["units"] | known["units"].get(shape, {})
    units = {ours: unit for ours, name in columns.items() if (unit := stated.get(str(name).lower()))}
    notes = [SAY("files.guessed_columns", dataset=dataset.label, columns=pairs)]
    amount: Literal["estimated"] | None = None
    if dataset is BARS and "amount" in columns:
        units |= _measure_units(table, columns)
    elif dataset is BARS:
        amount = "estimated"
        notes.append(SAY("files.guessed_amount"))
    if units:
        notes.append(SAY("files.guessed_units", units=[f"{field}: {unit}" for field, unit in units.items()]))
    where = {name: tuple(values) for name, values in known["where"].items() if name in table.columns}
    notes += [SAY("files.guessed_where", column=name, values=values) for name, values in where.items()]
    given = special.get("given", {})
    return TableMapping(
        columns=columns, symbol=symbol, units=units, amount=amount, given=given, where=where
    ), notes


def _find_columns(dataset: Dataset[Any], shape: str, table: Table) -> dict[str, Names]:
    """Ours by theirs. Of days, every column that may tell one: blanks in the first are filled from the next."""
    there = {name.strip().lower().replace("（", "(").replace("）", ")"): name for name in table.columns}
    spelled = headers()[shape]
    symbol = [] if dataset is MACRO else [*spelled.get("symbol", ()), *headers()["symbol"]]
    columns = dict[str, Names]()
    for ours, names in {"symbol": symbol, **{k: v for k, v in spelled.items() if k != "symbol"}}.items():
        found = tuple(there[name] for name in names if name in there)
        if found:
            columns[ours] = found if len(found) > 1 and ours in DATES else found[0]
    return columns


def _is_about(dataset: Dataset[Any], symbol: str, columns: dict[str, Names], table: Table) -> bool:
    """Whether the rows are about what the dataset is about: shares, indexes, or the economy."""
    if dataset is MACRO:
        return {"series", "value"} <= columns.keys() or not rows.MACRO_RELEASES.keys().isdisjoint(columns)
    if not symbol or dataset not in (BARS, INDEX_BARS):
        return bool(symbol)
    codes = {str(row.get(symbol)).strip() for row in table.rows}
    indexes = [c for c in codes if INDEX.fullmatch(c) or (read_code(c) and find_unsupported(c) == "index")]
    is_index = symbol.lower() in headers()["index_bars"]["symbol"] or len(indexes) * 2 > len(codes)
    return is_index == (dataset is INDEX_BARS)


def _measure_units(table: Table, columns: dict[str, Names]) -> dict[str, str]:
    """The units of volume and amount that make their ratio a price of the day; empty if none does."""
    ratios = []
    for row in table.rows:
        told = [rows.read_number(row.get(str(columns[name]))) for name in ("amount", "volume", "close")]
        if all(isinstance(number, float) and number > 0 for number in told):
            ratios.append(told[0] / told[1] / told[2])
    middle = median(ratios) if ratios else 0
    scale = headers()["scale"]
    for volume, amount in headers()["volume_and_amount"]:
        if 1 / RATIO_SLACK <= middle / (scale[volume] / scale[amount]) <= RATIO_SLACK:
            return {"volume": volume, "amount": amount}
    return {}


@cache
def headers() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("file_headers.toml").read_text(encoding="utf-8"))
