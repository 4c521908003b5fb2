"""Inserts that may meet a row already there. Both databases know them, each by an insert of its own."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from moot.shared.infrastructure.tables import Base

Insert = sqlite.Insert | postgresql.Insert


def insert_into(db: Connection, table: type[Base]) -> Insert:
    """An insert that knows `on_conflict_…`."""
    return _insert(db.dialect.name, table)


def upsert(
    db: Connection, table: type[Base], rows: Sequence[Mapping[str, Any]], *, fixed: Collection[str] = ()
) -> None:
    """Write `rows`, all of the same columns; of a row already there, all but its key and `fixed` is replaced."""
    db.execute(_replacing(db.dialect.name, table, tuple(rows[0]), frozenset(fixed)), rows)


def _insert(dialect: str, table: type[Base]) -> Insert:
    target = cast(Table, table.__table__)
    return postgresql.insert(target) if dialect == "postgresql" else sqlite.insert(target)


@cache
def _replacing(dialect: str, table: type[Base], columns: tuple[str, ...], fixed: frozenset[str]) -> Insert:
    statement = _insert(dialect, table)
    keys = [column.name for column in table.__table__.primary_key]
    new = {name: statement.excluded[name] for name in columns if name not in {*keys, *fixed}}
    return statement.on_conflict_do_update(index_elements=keys, set_=new)
