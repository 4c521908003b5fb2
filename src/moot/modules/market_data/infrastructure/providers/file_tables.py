"""A user's file as rows of cells, each with its line: CSV in UTF-8 or GB 18030, plain or gzipped, or Parquet."""

import csv
import gzip
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from moot.modules.market_data.domain.provider import Refusal
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message

TYPES = (".csv", ".csv.gz", ".parquet")
DELIMITERS = ",\t;"
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """`lines` has file and line of each row; `odd` are lines with more cells than there are headers."""

    file: str
    columns: list[str]
    rows: list[Row]
    lines: list[tuple[str, int]]
    odd: list[Refusal] = field(default_factory=list)

    def locate(self, number: int) -> Message:
        return _locate(*self.lines[number])


def read_table(path: Path) -> Table:
    """CSV stays text, so that 000001 keeps its zeros."""
    try:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path).fill_nan(None)
            lines = [(path.name, number + 1) for number in range(frame.height)]
            return Table(path.name, frame.columns, list(frame.iter_rows(named=True)), lines)
        raw = path.read_bytes()
        return _read_csv(path.name, _text(gzip.decompress(raw) if path.suffix == ".gz" else raw))
    except (OSError, EOFError) as e:
        raise _refuse_file(path, getattr(e, "strerror", None) or str(e)) from e
    except (pl.exceptions.PolarsError, csv.Error) as e:
        raise _refuse_file(path, str(e).splitlines()[0]) from e


def join_tables(name: str, tables: Iterable[Table]) -> Table:
    """One under the other, whatever columns each has."""
    joined = Table(name, [], [], [])
    for table in tables:
        joined.columns.extend(name for name in table.columns if name not in joined.columns)
        joined.rows.extend(table.rows)
        joined.lines.extend(table.lines)
        joined.odd.extend(table.odd)
    return joined


def _read_csv(name: str, text: str) -> Table:
    first = text.partition("\n")[0]
    cells = csv.reader(StringIO(text, newline=""), delimiter=max(DELIMITERS, key=first.count))
    headers = [header.strip() for header in next(cells, [])]
    table = Table(name, list(dict.fromkeys(headers)), [], [])
    line = cells.line_num + 1
    for row in cells:
        here, line = line, cells.line_num + 1
        if any(map(str.strip, row[len(headers) :])):
            said = SAY("refused.cells", where=_locate(name, here), cells=len(row), headers=len(headers))
            table.odd.append(Refusal(f"line={here}", "more cells than headers", said))
        elif any(map(str.strip, row)):
            told = zip(reversed(headers[: len(row)]), reversed(row[: len(headers)]), strict=True)
            table.rows.append(dict(told))  # of two columns with one header, the first
            table.lines.append((name, here))
    return table


def _locate(file: str, line: int) -> Message:
    return SAY("files.at_line", file=file, line=line)


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("gb18030", errors="replace")


def _refuse_file(path: Path, why: str) -> InvalidInput:
    return InvalidInput(SAY("files.file_unreadable", file=path.name, why=why), field="file")
