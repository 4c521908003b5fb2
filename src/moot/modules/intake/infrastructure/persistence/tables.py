"""Conversations. A turn is a document: it is read and written as a whole."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.leases import LeasedRow
from moot.shared.infrastructure.tables import Base


class ConversationRow(LeasedRow, Base):
    __tablename__ = "conversations"
    __table_args__ = (Index(None, "workspace_id", "updated_at"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    requested_by: Mapped[str | None] = mapped_column(String(100))
    title: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(20))
    turns: Mapped[list[dict[str, Any]]]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
