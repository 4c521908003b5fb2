"""Watch-lists in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, String, delete, func, select
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.jobs.domain.watch import Listed, WatchStore
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import upsert


class WatchedSymbolRow(Base):
    __tablename__ = "watched_symbols"

    workspace_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    list_name: Mapped[str] = mapped_column(String(64), primary_key=True)
    symbol: Mapped[str] = mapped_column(String(20), primary_key=True)
    added_at: Mapped[datetime]


ROW = WatchedSymbolRow


class _TooMany(Exception):
    """Takes back what was added."""


class SqlWatchStore(WatchStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, workspace: str, list_name: str | None) -> Sequence[Listed]:
        wanted = select(ROW).where(ROW.workspace_id == workspace).order_by(ROW.list_name, ROW.symbol)
        if list_name is not None:
            wanted = wanted.where(ROW.list_name == list_name)
        found = await self._database.scalars(wanted)
        return [Listed.model_validate(row, from_attributes=True) for row in found]

    async def add(self, workspace: str, listed: Sequence[Listed], at_most: int) -> bool:
        rows = [{"workspace_id": workspace, **dict(one)} for one in listed]
        counted = select(func.count()).select_from(ROW).where(ROW.workspace_id == workspace)

        def work(db: Connection) -> None:
            upsert(db, ROW, rows, fixed={"added_at"})
            if (db.scalar(counted) or 0) > at_most:
                raise _TooMany

        try:
            await self._database.write(work)
        except _TooMany:
            return False
        return True

    async def remove(self, workspace: str, list_name: str, symbols: Sequence[str]) -> None:
        mine = ROW.workspace_id == workspace, ROW.list_name == list_name
        gone = delete(ROW).where(*mine, ROW.symbol.in_(symbols))
        await self._database.write(lambda db: db.execute(gone))
