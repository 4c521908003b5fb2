"""Sessions and nodes in SQL. Rows and models share their field names, so there is nothing to map."""

from collections.abc import Callable, Iterator
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import ColumnElement, func, select
from sqlalchemy import insert as sql_insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.persistence.tables import NodeExecutionRow, ResearchSessionRow
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import transaction

Insert = sqlite.Insert | postgresql.Insert
INSERT: dict[str, Callable[[type[ResearchSessionRow]], Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
FIXED = {"id", "workspace_id", "created_at"}
"""What a session keeps from its first day: an update never moves it to another workspace."""


class SqlResearchSessionRepository(IResearchSessionRepository):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save_session(self, session: ResearchSession) -> None:
        await self._insert(ResearchSessionRow, session)

    async def update_session(self, session: ResearchSession) -> None:
        values = session.model_dump()

        async def upsert(db: AsyncSession) -> None:
            insert = INSERT[db.get_bind().dialect.name](ResearchSessionRow).values(values)
            reached = {name: insert.excluded[name] for name in values.keys() - FIXED}
            await db.execute(insert.on_conflict_do_update(index_elements=["id"], set_=reached))

        await self._database.write(upsert)

    async def save_node_execution(self, node: NodeExecution) -> None:
        await self._insert(NodeExecutionRow, node)

    async def _insert(self, table: type[Base], model: BaseModel) -> None:
        values = model.model_dump()

        async def insert(db: AsyncSession) -> None:
            await db.execute(sql_insert(table).values(values))

        await self._database.write(insert)

    async def get_session_by_id(self, session_id: UUID, workspace_id: str) -> ResearchSession | None:
        wanted = select(ResearchSessionRow).where(
            ResearchSessionRow.id == session_id, ResearchSessionRow.workspace_id == workspace_id
        )
        async with transaction(self._database.session) as db:
            row = await db.scalar(wanted)
        return _session(row) if row else None

    async def list_sessions(self, wanted: SessionFilter) -> SessionPage:
        conditions = list(_conditions(wanted))
        newest_first = (
            select(ResearchSessionRow)
            .where(*conditions)
            .order_by(ResearchSessionRow.created_at.desc(), ResearchSessionRow.id.desc())
            .limit(wanted.page_size)
            .offset((wanted.page - 1) * wanted.page_size)
        )
        async with transaction(self._database.session) as db:
            total = await db.scalar(select(func.count()).select_from(ResearchSessionRow).where(*conditions))
            rows = await db.scalars(newest_first)
            return SessionPage(
                total=total or 0,
                page=wanted.page,
                page_size=wanted.page_size,
                items=[_session(row) for row in rows],
            )

    async def get_node_executions_by_session(self, session_id: UUID) -> list[NodeExecution]:
        by_start = (
            select(NodeExecutionRow)
            .where(NodeExecutionRow.session_id == session_id)
            .order_by(NodeExecutionRow.started_at, NodeExecutionRow.node_type)
        )
        async with transaction(self._database.session) as db:
            rows = await db.scalars(by_start)
            return [NodeExecution.model_validate(row, from_attributes=True) for row in rows]


def _session(row: ResearchSessionRow) -> ResearchSession:
    return ResearchSession.model_validate(row, from_attributes=True)


def _conditions(wanted: SessionFilter) -> Iterator[ColumnElement[bool]]:
    yield ResearchSessionRow.workspace_id == wanted.workspace_id
    if wanted.symbol is not None:
        yield ResearchSessionRow.symbol == wanted.symbol
    if wanted.created_from is not None:
        yield ResearchSessionRow.created_at >= wanted.created_from
    if wanted.created_before is not None:
        yield ResearchSessionRow.created_at < wanted.created_before
