"""Inserts that may meet a row already there. Both databases know them, each by an insert of its own."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.infrastructure.tables import Base

Insert = sqlite.Insert | postgresql.Insert


def insert_into(db: AsyncSession, table: type[Base]) -> Insert:
    """An insert that knows `on_conflict_…`."""
    target = cast(Table, table.__table__)
    if db.get_bind().dialect.name == "postgresql":
        return postgresql.insert(target)
    return sqlite.insert(target)


async def upsert(
    db: AsyncSession, table: type[Base], rows: Sequence[Mapping[str, Any]], *, fixed: Collection[str] = ()
) -> None:
    """Write `rows`, all of the same columns; of a row already there, all but its key and `fixed` is replaced."""
    statement = insert_into(db, table)
    keys = [column.name for column in table.__table__.primary_key]
    new = {name: statement.excluded[name] for name in rows[0] if name not in {*keys, *fixed}}
    await db.execute(statement.on_conflict_do_update(index_elements=keys, set_=new), rows)
