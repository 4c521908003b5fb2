"""Leases in the row of the session they are for. Taking one is a single statement: there is one winner."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Update, or_, select, update

from moot.modules.coordinator.domain.model.session import GOING_ON
from moot.modules.coordinator.domain.ports.session_leases import ISessionLeases, Lease, Renewal, Taken
from moot.modules.coordinator.infrastructure.persistence.tables import ResearchSessionRow
from moot.shared.infrastructure.audit_trail import AuditTrail, Fenced
from moot.shared.infrastructure.transactions import transaction

ROW = ResearchSessionRow


class SqlSessionLeases(ISessionLeases):
    """Also stands guard over the trail: a row of a session whose lease was lost is not committed."""

    def __init__(self, trail: AuditTrail) -> None:
        self._database = trail.database
        trail.fenced_by(_fence)

    async def acquire(self, session_id: UUID, owner: str, now: datetime, until: datetime) -> Taken | None:
        taking = (
            _update(ROW.id == session_id, *_free(now))
            .values(
                lease_owner=owner,
                lease_token=ROW.lease_token + 1,
                lease_expires_at=until,
                status="running",
            )
            .returning(ROW.lease_token, ROW.cancel_requested)
        )
        taken: list[Taken] = []

        def take(db: Connection) -> None:
            taken.clear()
            for token, cancel in db.execute(taking):
                taken.append(Taken(Lease(owner, token, until), cancel))

        await self._database.write(take)
        return taken[0] if taken else None

    async def renew(self, owner: str, sessions: Sequence[UUID], until: datetime) -> Renewal:
        mine = _update(ROW.id.in_(sessions), ROW.lease_owner == owner)
        states = select(ROW.id, ROW.lease_owner, ROW.cancel_requested).where(ROW.id.in_(sessions))
        found = Renewal(set(), set())

        def prolong(db: Connection) -> None:
            db.execute(mine.values(lease_expires_at=until))
            for session_id, holder, cancel in db.execute(states):
                if holder != owner:
                    found.lost.add(session_id)
                elif cancel:
                    found.cancel_requested.add(session_id)

        await self._database.write(prolong)
        return found

    async def release(self, owner: str, now: datetime) -> None:
        leaving = _update(ROW.lease_owner == owner, ROW.status.in_(GOING_ON)).values(lease_expires_at=now)

        def leave(db: Connection) -> None:
            db.execute(leaving)

        await self._database.write(leave)

    async def left_behind(self, now: datetime, at_most: int) -> list[UUID]:
        oldest_first = select(ROW.id).where(*_free(now)).order_by(ROW.created_at).limit(at_most)
        async with transaction(self._database.session) as db:
            return list(await db.scalars(oldest_first))

    async def pause(self, session_id: UUID, token: int) -> None:
        held = _update(ROW.id == session_id, ROW.lease_token == token, ROW.status.in_(GOING_ON))

        def pause(db: Connection) -> None:
            db.execute(held.values(status="waiting", lease_expires_at=None))

        await self._database.write(pause)

    async def wake(self, session_id: UUID) -> bool:
        waking = _update(ROW.id == session_id, ROW.status == "waiting").values(status="queued")
        woken: list[UUID] = []

        def wake(db: Connection) -> None:
            woken[:] = db.scalars(waking.returning(ROW.id))

        await self._database.write(wake)
        return bool(woken)

    async def request_cancel(self, session_id: UUID) -> None:
        asking = _update(ROW.id == session_id, ROW.status.in_(GOING_ON)).values(cancel_requested=True)

        def ask(db: Connection) -> None:
            db.execute(asking)

        await self._database.write(ask)


def _fence(db: Connection, tokens: Mapping[UUID, int]) -> None:
    """A session that is not stored cannot be taken over either. PostgreSQL waits here for whoever is taking one.

    The tokens are compared here: as a condition of the statement PostgreSQL would test it before it locks the row,
    and let everything pass that is being taken over.
    """
    locked = select(ROW.id, ROW.lease_token).where(ROW.id.in_(tokens)).with_for_update(read=True)
    held = db.execute(locked)
    if lost := [session_id for session_id, token in held if token != tokens[session_id]]:
        raise Fenced(lost)


def _free(now: datetime) -> tuple[ColumnElement[bool], ...]:
    expired = or_(ROW.lease_expires_at.is_(None), ROW.lease_expires_at <= now)
    return ROW.status.in_(GOING_ON), expired


def _update(*conditions: ColumnElement[bool]) -> Update:
    return update(ROW).where(*conditions).execution_options(synchronize_session=False)
