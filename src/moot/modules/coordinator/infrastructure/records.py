"""What a session's record can hold; and taking the texts of its calls out, a batch at a time."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, func, or_, select, update

from moot.modules.coordinator.domain.ports.session_record import CallTexts, TextStore
from moot.modules.coordinator.infrastructure.persistence.session_repository import (
    NODE,
    SESSION,
    SESSION_END,
)
from moot.modules.coordinator.infrastructure.persistence.tables import ResearchSessionRow
from moot.modules.governance.container import DECISION_KINDS
from moot.modules.llm_platform.container import CALL_BODIES, CALL_KINDS
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.messages import LOG_LOCALE, Locale
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.audit_verification import examine, read_chain
from moot.shared.infrastructure.call_audit import EXTERNAL_BODIES, EXTERNAL_KINDS, Bodies
from moot.shared.infrastructure.transactions import transaction

ALL_BODIES = (CALL_BODIES, EXTERNAL_BODIES)
BATCH = 500
"""Rows in memory, and in a transaction, at a time."""

ROW = ResearchSessionRow

KINDS = (SESSION, SESSION_END, NODE, *CALL_KINDS, *EXTERNAL_KINDS, *DECISION_KINDS)
RECORD_KINDS: dict[str, Kind] = {kind.name: kind for kind in KINDS}
"""Everything a session's record can hold, known without a database: so that a pack can be examined anywhere."""


def examine_record(chain: Chain, locale: Locale) -> Verification:
    return examine(chain, RECORD_KINDS, locale)


class SqlTextStore(TextStore):
    def __init__(self, trail: AuditTrail) -> None:
        self._trail, self._database = trail, trail.database
        trail.vouches_for(*RECORD_KINDS.values())

    async def sessions_before(self, before: datetime, workspace: str) -> list[UUID]:
        found: dict[UUID, None] = {}
        async with transaction(self._database.session) as db:
            for bodies in ALL_BODIES:
                calls = bodies.kind.rows
                owned = calls.c.session_id.is_not(None)
                of_old = select(calls.c.session_id).where(*_old(bodies, before, workspace), owned).distinct()
                found |= dict.fromkeys(await db.scalars(of_old))
        return list(found)

    async def count(self, before: datetime, workspace: str) -> int:
        async with transaction(self._database.session) as db:
            counts = [
                await db.scalar(
                    select(func.count()).select_from(bodies.kind.rows).where(*_old(bodies, before, workspace))
                )
                for bodies in ALL_BODIES
            ]
        return sum(filter(None, counts))

    async def drop(self, session_id: UUID) -> CallTexts | None:
        """A record that was tampered with must not be sealed anew, so it is examined first."""
        if not examine_record(await read_chain(self._trail, session_id), LOG_LOCALE).intact:
            return None
        dropped = CallTexts(sessions=1)
        for bodies in ALL_BODIES:
            while rows := await self._some(bodies, bodies.kind.rows.c.session_id == session_id):
                emptied = ({**_vouched(row, bodies), **bodies.emptied} for row in rows)
                await asyncio.gather(
                    *(
                        self._trail.append(bodies.kind, row, session_id=session_id, write="update")
                        for row in emptied
                    )
                )
                dropped += CallTexts(calls=len(rows), size=bodies.weigh(rows))
        return dropped

    async def drop_loose(self, before: datetime, workspace: str) -> CallTexts:
        for bodies in ALL_BODIES:
            calls = bodies.kind.rows
            rows = await self._some(bodies, *_old(bodies, before, workspace), calls.c.session_id.is_(None))
            if rows:
                await self._empty(bodies, [row["id"] for row in rows])
                return CallTexts(calls=len(rows), size=bodies.weigh(rows))
        return CallTexts()

    async def _empty(self, bodies: Bodies, ids: Sequence[UUID]) -> None:
        calls = bodies.kind.rows
        emptied = update(calls).where(calls.c.id.in_(ids)).values(dict(bodies.emptied))

        def work(db: Connection) -> None:
            db.execute(emptied)

        await self._database.write(work)

    async def _some(self, bodies: Bodies, *conditions: ColumnElement[bool]) -> Sequence[RowMapping]:
        some = select(bodies.kind.rows).where(bodies.remain(), *conditions).limit(BATCH)
        async with transaction(self._database.session) as db:
            return (await db.execute(some)).mappings().all()


def _old(bodies: Bodies, before: datetime, workspace: str) -> Iterator[ColumnElement[bool]]:
    """Calls of sessions that ended before that moment; without a session, those made before it."""
    calls = bodies.kind.rows
    its_session = ROW.id == calls.c.session_id
    ended = exists().where(its_session, ROW.completed_at < before, ROW.status.not_in(["queued", "running"]))
    loose = ~exists().where(its_session)
    yield calls.c.workspace_id == workspace
    yield bodies.remain()
    yield or_(ended, loose & (calls.c.created_at < before))


def _vouched(row: Mapping[Any, Any], bodies: Bodies) -> dict[str, Any]:
    return {name: row[name] for name in bodies.kind.columns}
