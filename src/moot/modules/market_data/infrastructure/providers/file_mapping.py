"""What a user says about his tables: a small YAML file, checked word by word, errors named by file and line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from moot.modules.market_data.domain.datasets import SHAPES, Dataset
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
REQUIRED: dict[Dataset, tuple[str, ...]] = {
    Dataset.BARS: ("trade_date", "open", "high", "low", "close", "volume"),
    Dataset.VALUATIONS: ("trade_date", "close", "total_mv"),
    Dataset.REPORTS: ("period_end",),
    Dataset.COMPANIES: ("name", "list_date"),
}
WORKED_OUT = {"symbol", "event_time", "available_at", "source", "synthetic", "aliases", "st_history"}
TRADING = "trading"
"""A column that says the opposite of `suspended`, as Baostock's `tradestatus` does."""


class TableMapping(BaseModel):
    """One table. `columns` is ours by theirs: `{close: 收盘}`; `symbol` is a column, or the only symbol there is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: dict[str, str]
    symbol: str
    path: str = ""
    units: dict[str, str] = {}
    date_format: str | None = None
    adjusted: Literal["none"] | None = None
    amount: Literal["estimated"] | None = None

    def scale(self, field: str) -> float:
        return UNITS[self.units[field]] if field in self.units else 1.0


def read_mapping(path: Path) -> dict[Dataset, TableMapping]:
    """The tables a mapping file describes; `InvalidInput` says what is wrong with it, and where."""
    try:
        text = path.read_text(encoding="utf-8")
        tree, root = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except OSError as e:
        raise _wrong(path, None, SAY("files.unreadable", why=e.strerror)) from e
    except UnicodeDecodeError as e:
        raise _wrong(path, None, SAY("files.not_utf8")) from e
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        why = SAY("files.bad_yaml", why=getattr(e, "problem", None) or str(e))
        raise _wrong(path, mark.line + 1 if mark else None, why) from e
    if not isinstance(tree, dict) or not tree:
        raise _wrong(path, 1, SAY("files.no_tables", known=_names(REQUIRED)))
    lines = dict(_lines(root))
    return {_dataset(path, name, lines): _table(path, name, body, lines) for name, body in tree.items()}


def _dataset(path: Path, name: Any, lines: Mapping[tuple[str, ...], int]) -> Dataset:
    if name not in [dataset.value for dataset in REQUIRED]:
        why = SAY("files.dataset_unknown", dataset=name, known=_names(REQUIRED))
        raise _wrong(path, lines.get((str(name),)), why)
    return Dataset(name)


def _table(path: Path, name: str, body: Any, lines: Mapping[tuple[str, ...], int]) -> TableMapping:
    try:
        table = TableMapping.model_validate(body)
    except ValidationError as e:
        first = e.errors()[0]
        place = (name, *(str(part) for part in first["loc"]))
        line = lines.get(place) or lines.get(place[:2]) or lines.get((name,))
        why = SAY("files.bad_table", where=".".join(place), why=first["msg"])
        raise _wrong(path, line, why) from e
    for place, complaint in complaints(Dataset(name), table):
        raise _wrong(path, lines.get((name, *place)) or lines.get((name,)), complaint)
    return table


def complaints(dataset: Dataset, table: TableMapping) -> Iterator[tuple[tuple[str, ...], Message]]:
    """What keeps the mapping from being used, each with the place in the file."""
    known = sorted(fields_of(dataset))
    for field in table.columns:
        if field not in known:
            yield (
                ("columns", field),
                SAY("files.field_unknown", field=field, dataset=dataset.value, known=known),
            )
    for field, unit in table.units.items():
        if unit not in UNITS:
            yield ("units", field), SAY("files.unit_unknown", unit=unit, field=field, known=list(UNITS))
    missing = [field for field in REQUIRED[dataset] if field not in table.columns]
    if missing:
        yield ("columns",), SAY("files.fields_missing", dataset=dataset.value, fields=missing)
    if dataset is Dataset.BARS:
        yield from _bar_complaints(table)


def _bar_complaints(table: TableMapping) -> Iterator[tuple[tuple[str, ...], Message]]:
    if "amount" not in table.columns and table.amount is None:
        yield ("columns",), SAY("files.no_amount")
    if table.adjusted is None and not {"adj_factor", "pre_close"} & set(table.columns):
        yield ("columns",), SAY("files.no_factor")


def fields_of(dataset: Dataset) -> set[str]:
    """What a column of the dataset may be."""
    fields = set(SHAPES[dataset].model.model_fields) - WORKED_OUT
    return fields | {TRADING} if dataset is Dataset.BARS else fields


def _lines(node: yaml.Node | None, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """The line of every key, by its path from the top."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*place, str(key.value))
            yield here, key.start_mark.line + 1
            yield from _lines(value, here)


def _wrong(path: Path, line: int | None, why: Message) -> InvalidInput:
    where = SAY("files.at_line", file=path.name, line=line) if line else path.name
    return InvalidInput(SAY("files.mapping_wrong", where=where, why=why), field="mapping")


def _names(datasets: Mapping[Dataset, Any]) -> list[str]:
    return [dataset.value for dataset in datasets]
