"""Conversations in SQL. A turn is a document: it is read and written as a whole."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index, String, Text, insert, select, true
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.intake.domain.conversation import Conversation, Conversations
from moot.shared.domain.ids import ALL_IDS
from moot.shared.domain.leases import Lease
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.leases import LeasedRow, SqlLeases
from moot.shared.infrastructure.redaction import REDACT
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


ROW = ConversationRow


class SqlConversations(SqlLeases, Conversations):
    lasting = True

    def __init__(self, database: Database) -> None:
        super().__init__(database, ROW, to_do=true())

    async def add(self, conversation: Conversation, lease: Lease) -> None:
        held = {"lease_owner": lease.owner, "lease_token": lease.token, "lease_expires_at": lease.expires_at}
        adding = insert(ROW).values(_row(conversation) | held)
        await self._database.write(lambda db: db.execute(adding))

    async def save(self, conversation: Conversation, token: int, *, release: bool = False) -> bool:
        row = _row(conversation) | ({"lease_expires_at": None} if release else {})
        saving = self._update(ROW.id == conversation.id, ROW.lease_token == token).values(row)
        return await self._write(saving)

    async def get(self, conversation_id: UUID, workspace: str) -> Conversation | None:
        mine = select(ROW).where(ROW.id == conversation_id, ROW.workspace_id == workspace)
        row = await self._database.scalar(mine)
        return Conversation.model_validate(row, from_attributes=True) if row else None

    async def newest(
        self, workspace: str, *, limit: int = 20, between: Sequence[UUID] = ALL_IDS
    ) -> list[Conversation]:
        mine = select(ROW).where(ROW.workspace_id == workspace, ROW.id.between(between[0], between[1]))
        mine = mine.order_by(ROW.updated_at.desc()).limit(limit)
        found = await self._database.scalars(mine)
        return [Conversation.model_validate(row, from_attributes=True) for row in found]


def _row(conversation: Conversation) -> dict[str, Any]:
    turns = [turn.model_dump(mode="json") for turn in conversation.turns]
    row = conversation.model_dump(exclude={"turns"}) | {"turns": turns, "status": conversation.status}
    return {name: REDACT(value) for name, value in row.items()}
