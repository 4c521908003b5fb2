"""Sessions and the journal of their nodes. The columns carry the names of the fields in `domain/model/session.py`."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, String, Text, false, text
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.kept_texts import KeptJson, KeptText
from moot.shared.infrastructure.leases import LeasedRow
from moot.shared.infrastructure.tables import Base


class ResearchSessionRow(LeasedRow, Base):
    __tablename__ = "research_sessions"
    __table_args__ = (
        Index(None, "symbol", "created_at"),
        Index(None, "workspace_id", "created_at", "id"),
        Index(None, "workspace_id", "symbol", "created_at", "id"),
        Index(None, "workspace_id", "status", "created_at", "id"),
        Index(None, "workspace_id", "verdict_action", "created_at", "id"),
        Index(None, "workspace_id", "trigger_source", "created_at", "id"),
        Index(None, "batch_id"),
        Index(None, "parent_session_id", "created_at", "id"),
        Index(None, "workspace_id", "idempotency_key", unique=True),
        Index(None, "status", "lease_expires_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64), server_default=DEFAULT_WORKSPACE)
    symbol: Mapped[str] = mapped_column(String(20))
    status: Mapped[str] = mapped_column(String(20))
    selected_experts: Mapped[list[str]]
    options: Mapped[dict[str, Any]]
    question: Mapped[dict[str, Any] | None] = mapped_column(KeptJson(member="previous"))
    """What was asked, as far as it has no column of its own: what nobody searches by needs none."""
    trigger_source: Mapped[str] = mapped_column(String(50))
    requested_by: Mapped[str | None] = mapped_column(String(100))
    as_of: Mapped[datetime]
    locale: Mapped[str] = mapped_column(String(10))
    verdict_status: Mapped[str | None] = mapped_column(String(20))
    verdict_action: Mapped[str | None] = mapped_column(String(10))
    reason: Mapped[str | None] = mapped_column(Text)
    audit_gaps: Mapped[int] = mapped_column(server_default=text("0"))
    retry_count: Mapped[int] = mapped_column(server_default=text("0"))
    parent_session_id: Mapped[UUID | None] = mapped_column(ForeignKey("research_sessions.id"))
    batch_id: Mapped[UUID | None]
    """No foreign key: batches are kept by others."""
    created_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]
    duration_ms: Mapped[int | None]
    begun: Mapped[int] = mapped_column(server_default=text("0"))
    cancel_requested: Mapped[bool] = mapped_column(server_default=false())
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    request_digest: Mapped[str | None] = mapped_column(String(64))


class NodeExecutionRow(Base):
    __tablename__ = "node_executions"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    session_id: Mapped[UUID] = mapped_column(ForeignKey("research_sessions.id"), index=True)
    node_type: Mapped[str] = mapped_column(String(50))
    status: Mapped[str] = mapped_column(String(20))
    result_data: Mapped[dict[str, Any] | None] = mapped_column(KeptJson)
    narrative_report: Mapped[str | None] = mapped_column(KeptText)
    error_type: Mapped[str | None] = mapped_column(String(100))
    error_message: Mapped[str | None] = mapped_column(Text)
    attempts: Mapped[int] = mapped_column(server_default=text("1"))
    reused: Mapped[bool] = mapped_column(server_default=false())
    evidence: Mapped[list[dict[str, Any]]] = mapped_column(KeptJson)
    started_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]
    duration_ms: Mapped[int | None]


class SessionEventRow(Base):
    """What a session told while it ran, in order. No foreign key: it may be told before the session is stored."""

    __tablename__ = "session_events"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 (SQLAlchemy's own name, read once)

    session_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    id: Mapped[UUID]
    type: Mapped[str] = mapped_column(String(30))
    at: Mapped[datetime]
    data: Mapped[dict[str, Any]]


class SessionAnswerRow(Base):
    """What a version of Moot once handed on as the answer of a session: the digest of each file, by name."""

    __tablename__ = "session_answers"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    session_id: Mapped[UUID] = mapped_column(index=True)
    moot: Mapped[str] = mapped_column(String(40))
    files: Mapped[dict[str, Any]]
