"""Who runs a session, in the row of the session."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select

from moot.modules.coordinator.domain.model.session import GOING_ON
from moot.modules.coordinator.domain.ports.session_leases import ISessionLeases
from moot.modules.coordinator.infrastructure.persistence.tables import ResearchSessionRow
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.leases import SqlLeases
from moot.shared.infrastructure.transactions import transaction

ROW = ResearchSessionRow
TO_DO = ROW.status.in_(GOING_ON)


class SqlSessionLeases(SqlLeases, ISessionLeases):
    """Also stands guard over the trail: a row of a session whose lease was lost is not committed."""

    def __init__(self, trail: AuditTrail) -> None:
        super().__init__(
            trail.database,
            ROW,
            to_do=TO_DO,
            cancel_requested=ROW.cancel_requested,
            taking={"status": "running"},
        )
        trail.fenced_by(self.fence)

    async def left_behind(self, now: datetime, at_most: int) -> list[UUID]:
        oldest_first = select(ROW.id).where(self.free(now)).order_by(ROW.created_at).limit(at_most)
        async with transaction(self._database.session) as db:
            return list(await db.scalars(oldest_first))

    async def pause(self, session_id: UUID, token: int) -> None:
        held = self._update(ROW.id == session_id, ROW.lease_token == token, TO_DO)
        await self._write(held.values(status="waiting", lease_expires_at=None))

    async def wake(self, session_id: UUID) -> bool:
        waking = self._update(ROW.id == session_id, ROW.status == "waiting").values(status="queued")
        woken: list[UUID] = []

        def wake(db: Connection) -> None:
            woken[:] = db.scalars(waking.returning(ROW.id))

        await self._database.write(wake)
        return bool(woken)

    async def request_cancel(self, session_id: UUID) -> None:
        await self._write(self._update(ROW.id == session_id, TO_DO).values(cancel_requested=True))
