"""Packs what a session has said once it has ended: its nodes repeat each other and the prompts they came from.

All long texts of its rows are squeezed as one, and the rows say where theirs is; what is the same in many sessions is
kept once for all. A row reads as before, and so does its digest. Whatever is packed can be packed again, when texts
were added or have gone.
"""

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from hashlib import blake2b
from itertools import groupby
from operator import add
from typing import Any, NamedTuple, cast
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    Table,
    Text,
    bindparam,
    delete,
    func,
    select,
    type_coerce,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.types import NullType

from moot.shared.infrastructure.kept_texts import LEAST_TEXT, KeptText, Place, as_bytes, squeeze
from moot.shared.infrastructure.tables import AuditHeadRow, Base, TextRow
from moot.shared.infrastructure.transactions import upsert, write_rows

Tables = Collection[type[Base]]
LEAST_SESSION = 20_000
"""Of all texts of a session that is worth the work."""
# SQLite counts through a text to know its length.
SIZES: dict[str, Callable[[Column[Any]], ColumnElement[int]]] = {
    "sqlite": lambda cell: func.length(sql_cast(cell, LargeBinary)),
    "postgresql": lambda cell: func.octet_length(sql_cast(cell, Text)),
}


class Cell(NamedTuple):
    """A long value: whose it is, its text, and where this is kept by now."""

    table: type[Base]
    row_id: UUID
    column: str
    once: bool
    place: Place | None
    beside: Mapping[str, Any]
    text: bytes


def find_heavy(db: Connection, tables: Tables, sessions: Collection[UUID]) -> list[UUID]:
    """Those of the sessions that are worth packing."""
    weights: Counter[UUID] = Counter()
    for table in tables:
        weighed = _weigh(table, db.dialect.name)
        if weighed is not None:
            weights.update(dict(db.execute(weighed, {"of": list(sessions)}).all()))
    return [session_id for session_id, weight in weights.items() if weight >= LEAST_SESSION]


@cache
def _weigh(table: type[Base], dialect: str) -> Select[UUID, int] | None:
    """The bytes of each session's long values, of those that are kept with it."""
    measure, owner = SIZES[dialect], _owner(table)
    sizes = [func.coalesce(measure(column), 0) for column, kept in _kept(table) if not kept.once]
    if not sizes:
        return None
    mine = owner.in_(bindparam("of", expanding=True))
    return select(owner, func.sum(reduce(add, sizes))).where(mine).group_by(owner)


def pack(db: Connection, tables: Tables, session_id: UUID, *, anew: bool = False) -> None:
    """What is not packed yet, if it is worth the work; nobody adds to the session's record meanwhile.

    `anew`: all of it, out of every table there is, so that nothing is left of texts that have gone.
    """
    head = update(AuditHeadRow).where(AuditHeadRow.session_id == session_id)
    db.execute(head.values(closed=AuditHeadRow.closed))
    cells = [cell for table in tables for cell in _read_cells(db, table, session_id)]
    together = [cell for cell in cells if not cell.once and (anew or not cell.place)]
    packed = {cell.place.id for cell in together if cell.place}
    bundle = b"".join(cell.text for cell in together)
    if not packed and len(bundle) < LEAST_SESSION:
        return
    alone = [cell for cell in cells if cell.once and not cell.place]
    name = _name(bundle, session_id.bytes)
    _store(db, {name: bundle} | {_name(cell.text): cell.text for cell in alone})
    _point(db, [*_lay_out(name, together), *(_lay_out(_name(cell.text), [cell])[0] for cell in alone)])
    db.execute(delete(TextRow).where(TextRow.id.in_(packed - {name})))


def _lay_out(name: str, cells: Iterable[Cell]) -> list[Cell]:
    """One after the other in the text of that name."""
    placed, start = [], 0
    for cell in cells:
        placed.append(cell._replace(place=Place(name, start, len(cell.text), cell.beside)))
        start += len(cell.text)
    return placed


def _read_cells(db: Connection, table: type[Base], session_id: UUID) -> Iterator[Cell]:
    for row_id, *found in db.execute(_cells_of(table), {"of": session_id}):
        for (column, kept), value in zip(_kept(table), found, strict=True):
            place, text = kept.find(as_bytes(value or b""))
            beside, long = (place.beside, text) if place else kept.divide(text)
            if len(long) >= LEAST_TEXT:
                yield Cell(table, row_id, column.name, kept.once, place, beside, long)


@cache
def _cells_of(table: type[Base]) -> Select[Any]:
    """As they are written, with what is found for them."""
    cells = (type_coerce(kept.column_expression(column), NullType()) for column, kept in _kept(table))
    return select(table.__table__.columns.id, *cells).where(_owner(table) == bindparam("of"))


def _store(db: Connection, texts: dict[str, bytes]) -> None:
    """One that is there already is the same. In one order, so that no two wait for each other."""
    there = set(db.scalars(select(TextRow.id).where(TextRow.id.in_(texts))))
    rows = [{"id": name, "data": squeeze(text)} for name, text in sorted(texts.items()) if name not in there]
    if rows:
        upsert(db, TextRow, rows, fixed=["data"])


def _point(db: Connection, cells: Iterable[Cell]) -> None:
    """Have each row say where its values are; those of the same columns in one statement."""

    def shape(row: Sequence[Cell]) -> tuple[str, ...]:
        return row[0].table.__tablename__, *(cell.column for cell in row)

    by_row = sorted(cells, key=lambda cell: (cell.table.__tablename__, cell.row_id))
    rows = [list(row) for _, row in groupby(by_row, key=lambda cell: (cell.table, cell.row_id))]
    for _, alike in groupby(sorted(rows, key=shape), key=shape):
        written = list(alike)
        places = [{"id": row[0].row_id} | {cell.column: cell.place for cell in row} for row in written]
        write_rows(db, "update", written[0][0].table, places)


def _name(text: bytes, whose: bytes = b"") -> str:
    return urlsafe_b64encode(blake2b(text, digest_size=12, person=whose).digest()).decode()


@cache
def _kept(table: type[Base]) -> list[tuple[Column[Any], KeptText]]:
    columns = cast(Table, table.__table__).columns
    return [(column, column.type) for column in columns if isinstance(column.type, KeptText)]


def _owner(table: type[Base]) -> ColumnElement[UUID]:
    columns = table.__table__.columns
    return columns.session_id if "session_id" in columns else columns.id
