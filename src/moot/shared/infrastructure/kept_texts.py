"""Columns for what may be long: a cell holds its value, or says where in `texts` it is kept once it is packed.

Whoever selects such a column gets the value, wherever it is: the database looks it up in the same statement. The
columns are TEXT and JSON as ever, and what is short or not packed yet stands in them as it is.
"""

import json
import lzma
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import to_json
from sqlalchemy import JSON, ColumnElement, Dialect, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

JSON_DATA = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""For small structures somebody may query."""

SIGN = "\x1a"
"""Begins a text that is kept elsewhere (one that begins with it by itself has it twice), and parts a cell from what
was looked up for it: JSON never has it as it is."""
KEY = ""
"""Under it an object says where the rest of it is kept. One that has this key by itself stands under it itself."""
LEAST_TEXT = 100
"""Bytes of a text that is worth a place elsewhere."""
# Deflate looks 32 kB back, and what the rows of a session have in common lies further apart. With these settings half
# a megabyte takes about 15 ms, and a fourteenth of its room.
FILTERS = [
    {
        "id": lzma.FILTER_LZMA2,
        "mode": lzma.MODE_FAST,
        "mf": lzma.MF_HC4,
        "nice_len": 128,
        "lc": 4,
        "pb": 0,
        "dict_size": 1 << 20,
    }
]


class Place(NamedTuple):
    """Where a value is kept: in which of `texts`, and in which bytes of it; and the members that stay in the cell."""

    id: str
    start: int
    length: int
    beside: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return f"{self.id}:{self.start}:{self.length}"


def squeeze(text: bytes) -> bytes:
    return lzma.compress(text, lzma.FORMAT_RAW, filters=FILTERS)


@lru_cache(4)
def _unsqueeze(data: bytes) -> bytes:
    """All texts of a session lie together, and are read one after the other."""
    return lzma.decompress(data, lzma.FORMAT_RAW, filters=FILTERS)


def _look(written: str, data: bytes, beside: Mapping[str, Any]) -> tuple[Place, bytes]:
    text_id, start, length = written.split(":")
    place = Place(text_id, int(start), int(length), beside)
    return place, _unsqueeze(data)[place.start : place.start + place.length]


class KeptText(TypeDecorator[Any]):
    """`once`: kept by itself, and once however many rows have it; else with the others of its session."""

    impl: Any = Text
    cache_ok = True
    begins: Mapping[str, str] = dict.fromkeys(("sqlite", "postgresql"), SIGN)
    """What stands before the place in a cell whose value is kept elsewhere."""

    def __init__(self, *, once: bool = False) -> None:
        super().__init__()
        self.once = once

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return whole(column, self)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return lambda found: None if found is None else self.read(as_bytes(found))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return f"{SIGN}{value}" if isinstance(value, Place) or (value and value[0] == SIGN) else value

    def read(self, found: bytes) -> Any:
        return self.find(found)[1].decode()

    def find(self, found: bytes) -> tuple[Place | None, bytes]:
        """The text of a cell together with what was looked up for it; and where it is kept, if it is elsewhere."""
        sign, rest = found[:1] == SIGN.encode(), found[1:]
        if not sign or rest[:1] == SIGN.encode():
            return None, rest if sign else found
        written, data = rest.split(SIGN.encode(), 1)
        return _look(written.decode(), data, {})

    def divide(self, text: bytes) -> tuple[Mapping[str, Any], bytes]:
        """What of it stays in the cell, and what need not."""
        return {}, text


class KeptJson(KeptText):
    """Objects and lists. With a `member`, only this one of an object is kept elsewhere, the others in the cell."""

    impl = JSON_DATA
    cache_ok = True
    begins: Mapping[str, str] = {"sqlite": '{"":"', "postgresql": '{"": "'}
    """PostgreSQL has the shortest key first, wherever it was."""

    def __init__(self, *, once: bool = False, member: str = "") -> None:
        super().__init__(once=once)
        self.member = member

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        if isinstance(value, Place):
            return {KEY: str(value), **value.beside}
        return {KEY: value} if isinstance(value, dict) and KEY in value else value

    def read(self, found: bytes) -> Any:
        place, text = self.find(found)
        value = json.loads(text)
        if isinstance(value, dict) and KEY in value:
            value = _unwrap(value)
        return {**value, **place.beside} if place and place.beside else value

    def find(self, found: bytes) -> tuple[Place | None, bytes]:
        text, sign, data = found.partition(SIGN.encode())
        if not sign:
            return None, text
        beside = json.loads(text)
        return _look(beside.pop(KEY), data, beside)

    def divide(self, text: bytes) -> tuple[Mapping[str, Any], bytes]:
        if not self.member:
            return {}, text
        members = json.loads(text)
        return members, to_json({self.member: members.pop(self.member, None)})


def _unwrap(value: dict[str, Any]) -> Any:
    if isinstance(value[KEY], str):
        raise ValueError(f"{value[KEY]} is kept nowhere")
    return value[KEY]


def as_bytes(found: str | bytes) -> bytes:
    return found.encode() if isinstance(found, str) else found


class whole(FunctionElement[Any]):  # noqa: N801 (as SQLAlchemy names functions)
    """A cell; if it says that it is kept elsewhere, followed by `SIGN` and what it is kept in.

    Where somebody took that away nothing follows, and the value cannot be read.
    """

    inherit_cache = True
    type: KeptText

    def __init__(self, column: ColumnElement[Any], kept: KeptText) -> None:
        super().__init__(column)
        self.type = kept


FOUND = "coalesce((SELECT {sign} || data FROM texts WHERE texts.id = substr({text}, {place}, 16)), '')"
SIGNS = {"sqlite": "char(26)", "postgresql": "'\\x1a'::bytea"}
WHOLE = {
    "sqlite": "CAST({text} || {found} AS BLOB) ELSE {text}",
    "postgresql": "convert_to({text}, 'UTF8') || {found} ELSE convert_to({text}, 'UTF8')",
}


@compiles(whole)
def _write_whole(element: whole, compiler: SQLCompiler, **_: Any) -> str:
    dialect, text = compiler.dialect.name, compiler.process(element.clauses)
    begins = element.type.begins[dialect]
    if dialect == "postgresql":
        text = f"CAST({text} AS TEXT)"
    found = FOUND.format(sign=SIGNS[dialect], text=text, place=len(begins) + 1)
    is_elsewhere = f"substr({text}, 1, {len(begins)}) = '{begins}'"
    return f"CASE WHEN {is_elsewhere} THEN {WHOLE[dialect].format(text=text, found=found)} END"
