"""The queue of escalations in SQL. Every change is one statement on the state it expects: there is one winner.

What was asked, and what became of it, is in the chain of its session.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Table, and_, func, or_, select, true, update

from moot.modules.governance.domain.escalations import (
    OPEN,
    Escalation,
    EscalationPage,
    EscalationQueue,
    Question,
    Wanted,
)
from moot.modules.governance.infrastructure.persistence.tables import EscalationRow
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind, Record
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.transactions import transaction

TABLE = cast(Table, EscalationRow.__table__)
ROW = TABLE.c
ESCALATION = Kind("escalation", EscalationRow, tuple(Escalation.model_fields))


class SqlEscalationQueue(EscalationQueue):
    def __init__(self, trail: AuditTrail) -> None:
        self._trail, self._database = trail, trail.database
        trail.vouches_for(ESCALATION)

    async def add(self, escalation: Escalation) -> None:
        row = escalation.model_dump()
        await self._trail.append(ESCALATION, row, session_id=escalation.session_id)

    async def newest(self, question: Question) -> Escalation | None:
        ordered = select(TABLE).where(*_match(question)).order_by(ROW.requested_at.desc(), ROW.id)
        async with transaction(self._database.session) as db:
            row = (await db.execute(ordered.limit(1))).mappings().first()
        return Escalation.model_validate(dict(row)) if row else None

    async def page(
        self, workspace_id: str, now: datetime, wanted: Wanted, *, page: int, page_size: int
    ) -> EscalationPage:
        mine = (ROW.workspace_id == workspace_id, _stands(wanted, now))
        newest_decided = func.coalesce(ROW.decided_at, ROW.expires_at).desc()
        order = ROW.requested_at if wanted == "pending" else newest_decided
        ordered = select(TABLE).where(*mine).order_by(order, ROW.id)
        async with transaction(self._database.session) as db:
            total = await db.scalar(select(func.count()).select_from(TABLE).where(*mine)) or 0
            rows = await db.execute(ordered.limit(page_size).offset((page - 1) * page_size))
            items = [Escalation.model_validate(dict(row)).at(now) for row in rows.mappings()]
        return EscalationPage(total=total, page=page, page_size=page_size, items=items)

    async def settle(self, pending: Escalation, ruling: Mapping[str, Any]) -> Escalation | None:
        waits = (
            ROW.id == pending.id,
            ROW.workspace_id == pending.workspace_id,
            ROW.status == "pending",
            ROW.expires_at > ruling["decided_at"],
        )
        return next(iter(await self._change(waits, REDACT(dict(ruling)))), None)

    async def use(self, question: Question, decision_id: str, now: datetime) -> Escalation | None:
        if mine := await self.newest({**question, "status": "used", "used_for": decision_id}):
            return mine
        approved = (*_match(question), ROW.status == "approved", ROW.expires_at > now)
        oldest = select(ROW.id).where(*approved).order_by(ROW.requested_at, ROW.id).limit(1).scalar_subquery()
        used = {"status": "used", "used_at": now, "used_for": decision_id}
        return next(iter(await self._change((ROW.id == oldest, ROW.status == "approved"), used)), None)

    async def expire(self, now: datetime) -> list[Escalation]:
        return await self._change((ROW.status.in_(OPEN), ROW.expires_at <= now), {"status": "expired"})

    async def _change(
        self, conditions: Sequence[ColumnElement[bool]], values: dict[str, Any]
    ) -> list[Escalation]:
        changing = update(TABLE).where(*conditions).values(values).returning(TABLE)
        changed: list[Escalation] = []

        def work(db: Connection) -> list[Record]:
            rows = db.execute(changing).mappings()
            changed[:] = [Escalation.model_validate(dict(row)) for row in rows]
            return [Record(ESCALATION, "update", e.session_id, e.model_dump()) for e in changed]

        await self._trail.vouch(work)
        return changed


def _stands(wanted: Wanted, now: datetime) -> ColumnElement[bool]:
    """What ran out of time is expired, whether or not somebody has written that down."""
    late = and_(ROW.status.in_(OPEN), ROW.expires_at <= now)
    if wanted == "all":
        return true()
    if wanted == "decided":
        return or_(ROW.status != "pending", late)
    return or_(ROW.status == wanted, late) if wanted == "expired" else and_(ROW.status == wanted, ~late)


def _match(question: Question) -> list[ColumnElement[bool]]:
    """Outside of a session that is `IS NULL`."""
    return [ROW[name] == value for name, value in question.items()]
