"""Batches in SQL. What is long of one, its symbols and its screen, is read apart from the rest."""

import zlib
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json, to_json
from sqlalchemy import Connection, Index, LargeBinary, String, Text, false, func, select
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.jobs.domain.batches import Batch, BatchStatus, BatchStore
from moot.modules.jobs.infrastructure.causes import note_batches
from moot.shared.domain.ids import MOST_PER_PAGE
from moot.shared.domain.universe import Screening
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.leases import LeasedRow, SqlLeases
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import upsert


class BatchRow(LeasedRow, Base):
    __tablename__ = "batches"
    __table_args__ = (
        Index(None, "ended_at", "status"),
        Index(None, "workspace_id", "created_at", "id"),
        Index(None, "workspace_id", "name", "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(20))
    as_of: Mapped[datetime]
    request: Mapped[dict[str, Any]]
    requested_by: Mapped[str | None] = mapped_column(String(100))
    reason: Mapped[str | None] = mapped_column(Text)
    over_limit: Mapped[bool] = mapped_column(server_default=false())
    left_out: Mapped[list[dict[str, Any]]]
    shares: Mapped[int]
    symbols: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    screening: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    screened: Mapped[int | None]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


ROW = BatchRow
TO_DO = ROW.ended_at.is_(None) & (ROW.status != "paused")
NEWEST_FIRST = ROW.created_at.desc(), ROW.id.desc()


class SqlBatchStore(SqlLeases, BatchStore):
    def __init__(self, database: Database) -> None:
        super().__init__(database, ROW, to_do=TO_DO)

    async def add(self, batch: Batch, symbols: Sequence[str]) -> None:
        row = dict(batch) | batch.model_dump(mode="json", include={"request", "left_out"})
        row["symbols"] = zlib.compress(to_json(list(symbols)))
        await self._database.write(lambda db: upsert(db, ROW, [row], fixed=row))

    async def find(self, batch_id: UUID, workspace: str | None = None) -> Batch | None:
        wanted = select(ROW).where(ROW.id == batch_id)
        if workspace is not None:
            wanted = wanted.where(ROW.workspace_id == workspace)
        return next(iter(await self._select(wanted)), None)

    async def find_page(
        self, workspace: str, name: str | None, page: int, size: int
    ) -> tuple[list[Batch], int]:
        mine = [ROW.workspace_id == workspace, *([ROW.name == name] if name is not None else [])]
        wanted = select(ROW).where(*mine).order_by(*NEWEST_FIRST).limit(size).offset((page - 1) * size)
        total = await self._database.scalar(select(func.count()).select_from(ROW).where(*mine)) or 0
        return await self._select(wanted), total

    async def find_ids(self, workspace: str, first: UUID, last: UUID) -> list[UUID]:
        mine = select(ROW.id).where(ROW.workspace_id == workspace, ROW.id.between(first, last))
        return await self._database.scalars(mine.order_by(*NEWEST_FIRST).limit(MOST_PER_PAGE))

    async def find_previous(self, batch: Batch) -> Batch | None:
        alike = (ROW.workspace_id == batch.workspace_id, ROW.name == batch.name, ROW.status == "done")
        wanted = select(ROW).where(*alike, ROW.created_at < batch.created_at).order_by(*NEWEST_FIRST).limit(1)
        return next(iter(await self._select(wanted)), None)

    async def find_open(self, now: datetime) -> list[UUID]:
        return await self._database.scalars(select(ROW.id).where(self.free(now)).order_by(ROW.created_at))

    async def update(self, batch_id: UUID, among: Collection[BatchStatus], **changes: Any) -> bool:
        open_ones = (ROW.id == batch_id, ROW.status.in_(among), ROW.ended_at.is_(None))
        changing = self._update(*open_ones).values(**changes).returning(ROW.id, ROW.workspace_id)

        def work(db: Connection) -> bool:
            met = [(changed.id, changed.workspace_id) for changed in db.execute(changing)]
            if "ended_at" in changes:
                note_batches(db, met, changes["ended_at"])
            return bool(met)

        return await self._database.write(work)

    async def read_symbols(self, batch_id: UUID) -> list[str]:
        packed = await self._database.scalar(select(ROW.symbols).where(ROW.id == batch_id))
        return list(from_json(zlib.decompress(packed))) if packed else []

    async def read_screening(self, batch_id: UUID) -> Screening | None:
        packed = await self._database.scalar(select(ROW.screening).where(ROW.id == batch_id))
        return Screening.model_validate_json(zlib.decompress(packed)) if packed else None

    async def keep_screening(self, batch_id: UUID, screening: Screening) -> None:
        ranked = sum(share.rank is not None for share in screening.shares)
        packed = zlib.compress(screening.model_dump_json().encode())
        first = self._update(ROW.id == batch_id, ROW.screening.is_(None))
        await self._write(first.values(screening=packed, screened=ranked))

    async def _select(self, wanted: Any) -> list[Batch]:
        found = await self._database.scalars(wanted)
        return [Batch.model_validate(row, from_attributes=True) for row in found]
