"""Conversations in SQL."""

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, update

from moot.modules.intake.domain.conversation import Conversation, Conversations
from moot.modules.intake.infrastructure.persistence.tables import ConversationRow
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.transactions import transaction, upsert

ROW = ConversationRow
FIXED = ("workspace_id", "requested_by", "created_at")


class SqlConversations(Conversations):
    lasting = True

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, conversation: Conversation) -> None:
        row = _row(conversation)

        def work(db: Connection) -> None:
            upsert(db, ROW, [row], fixed=FIXED)

        await self._database.write(work)

    async def take(self, conversation: Conversation, before: Conversation) -> bool:
        as_before = (ROW.id == before.id, ROW.status == before.status, ROW.updated_at == before.updated_at)
        row = _row(conversation)
        taken: list[UUID] = []

        def work(db: Connection) -> None:
            taken[:] = db.scalars(update(ROW).where(*as_before).values(row).returning(ROW.id))

        await self._database.write(work)
        return bool(taken)

    async def get(self, conversation_id: UUID, workspace: str) -> Conversation | None:
        mine = select(ROW).where(ROW.id == conversation_id, ROW.workspace_id == workspace)
        async with transaction(self._database.session) as db:
            row = await db.scalar(mine)
        return Conversation.model_validate(row, from_attributes=True) if row else None

    async def newest(self, workspace: str, *, limit: int) -> list[Conversation]:
        mine = select(ROW).where(ROW.workspace_id == workspace).order_by(ROW.updated_at.desc()).limit(limit)
        async with transaction(self._database.session) as db:
            return [Conversation.model_validate(row, from_attributes=True) for row in await db.scalars(mine)]


def _row(conversation: Conversation) -> dict[str, Any]:
    turns = [turn.model_dump(mode="json") for turn in conversation.turns]
    row = conversation.model_dump(exclude={"turns"}) | {"turns": turns, "status": conversation.status}
    return {name: REDACT(value) for name, value in row.items()}


class MemoryConversations(Conversations):
    """For a desk that keeps nothing: gone with it."""

    lasting = False

    def __init__(self) -> None:
        self._kept: dict[UUID, Conversation] = {}

    async def save(self, conversation: Conversation) -> None:
        self._kept[conversation.id] = conversation

    async def take(self, conversation: Conversation, before: Conversation) -> bool:
        if self._kept.get(before.id) != before:
            return False
        self._kept[conversation.id] = conversation
        return True

    async def get(self, conversation_id: UUID, workspace: str) -> Conversation | None:
        found = self._kept.get(conversation_id)
        return found if found and found.workspace_id == workspace else None

    async def newest(self, workspace: str, *, limit: int) -> list[Conversation]:
        mine = [kept for kept in self._kept.values() if kept.workspace_id == workspace]
        return sorted(mine, key=lambda kept: kept.updated_at, reverse=True)[:limit]
