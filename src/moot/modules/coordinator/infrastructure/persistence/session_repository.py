"""Sessions and nodes in SQL. Rows and models share their field names, so there is nothing to map."""

from collections.abc import Iterator
from uuid import UUID

from sqlalchemy import ColumnElement, func, select

from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.persistence.tables import NodeExecutionRow, ResearchSessionRow
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.transactions import transaction

FIXED = (
    "id",
    "workspace_id",
    "symbol",
    "selected_experts",
    "options",
    "trigger_source",
    "as_of",
    "locale",
    "retry_count",
    "parent_session_id",
    "created_at",
)
"""What a session keeps from its first day: an update never moves it to another workspace."""

ENDING = ("status", "verdict_status", "reason", "audit_gaps", "completed_at", "duration_ms")

SESSION = Kind("session", ResearchSessionRow, FIXED)
SESSION_END = Kind("session_outcome", ResearchSessionRow, (*ENDING, "verdict_action"), fixed=frozenset(FIXED))
EARLIER_END = Kind("session_end", ResearchSessionRow, ENDING)
"""Vouches for sessions that ended before there was a `verdict_action`; no longer written."""
NODE = Kind("node", NodeExecutionRow, tuple(NodeExecution.model_fields))


class SqlResearchSessionRepository(IResearchSessionRepository):
    """Every row it writes gets its link in the session's chain."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail
        self._database = trail.database
        trail.vouches_for(SESSION, SESSION_END, EARLIER_END, NODE)

    async def save_session(self, session: ResearchSession) -> None:
        await self._trail.append(SESSION, session.model_dump(), session_id=session.id)

    async def update_session(self, session: ResearchSession) -> None:
        await self._trail.append(SESSION_END, session.model_dump(), session_id=session.id, write="upsert")

    async def save_node_execution(self, node: NodeExecution) -> None:
        await self._trail.append(NODE, node.model_dump(), session_id=node.session_id)

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
            .offset(wanted.offset)
        )
        async with transaction(self._database.session) as db:
            total = await db.scalar(select(func.count()).select_from(ResearchSessionRow).where(*conditions))
            rows = await db.scalars(newest_first)
            return SessionPage(
                total=total or 0,
                page=wanted.offset // wanted.page_size + 1,
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
    row = ResearchSessionRow
    yield row.workspace_id == wanted.workspace_id
    for column in (row.symbol, row.status, row.verdict_action, row.trigger_source, row.parent_session_id):
        value = getattr(wanted, column.key)
        if value is not None:
            yield column == value
    if wanted.created_from is not None:
        yield row.created_at >= wanted.created_from
    if wanted.created_before is not None:
        yield row.created_at < wanted.created_before
