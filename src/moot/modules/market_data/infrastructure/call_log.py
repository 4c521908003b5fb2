"""Writes the calls to outside sources into `external_api_call_logs`, with the session they were made for."""

from uuid import UUID, uuid4

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.market_data.domain.call_record import ExternalCall
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, current_execution_ctx
from moot.shared.infrastructure.tables import ExternalAPICallLog


class SqlCallRecorder:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record(self, call: ExternalCall) -> None:
        context = current_execution_ctx.get()
        row = {
            "id": uuid4(),
            "session_id": UUID(context.session_id) if context and context.session_id else None,
            "workspace_id": context.workspace if context else DEFAULT_WORKSPACE,
            "created_at": self._clock.now(),
            **call.model_dump(),
        }

        async def write(db: AsyncSession) -> None:
            await db.execute(insert(ExternalAPICallLog).values(row))

        await self._database.write(write)
