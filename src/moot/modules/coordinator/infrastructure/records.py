"""What a session's record can hold, read back and verified; and taking the texts of its calls out."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, RowMapping, exists, func, or_, select, update

from moot.modules.coordinator.application.session_history import Pruned
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.infrastructure.session_repository import (
    ANSWER,
    SESSION_KINDS,
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.modules.governance.container import DECISION_KINDS
from moot.modules.llm_platform.application.call_logs import (
    ExternalAPICallLogQueryService,
    LLMCallLogQueryService,
)
from moot.modules.llm_platform.container import CALL_BODIES, CALL_KINDS
from moot.shared.domain.audit import Chain, Seal, Verification, WorkspaceVerification
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import LOG_LOCALE, Locale, locale_of
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import refuse_field
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.audit_verification import (
    examine,
    is_listed,
    read_chain,
    verify,
    verify_workspace,
)
from moot.shared.infrastructure.call_audit import EXTERNAL_BODIES, EXTERNAL_KINDS, Bodies
from moot.shared.infrastructure.transactions import transaction

ALL_BODIES = (CALL_BODIES, EXTERNAL_BODIES)
BATCH = 500
"""Rows in memory, and in a transaction, at a time."""

ROW = ResearchSessionRow

KINDS = (*SESSION_KINDS, *CALL_KINDS, *EXTERNAL_KINDS, *DECISION_KINDS)
RECORD_KINDS: dict[str, Kind] = {kind.name: kind for kind in KINDS}
"""Everything a session's record can hold, known without a database: so that a pack can be examined anywhere."""


def examine_record(chain: Chain, locale: Locale, seal: Seal | None = None) -> Verification:
    return examine(chain, RECORD_KINDS, locale, seal)


class SessionPruning:
    """Prompts, answers and responses of old sessions go; what was found and decided, and the chain, stay."""

    def __init__(self, trail: AuditTrail, clock: Clock) -> None:
        self._trail, self._database, self._clock = trail, trail.database, clock
        trail.vouches_for(*RECORD_KINDS.values())

    async def plan(self, before: date, workspace: str) -> Pruned:
        """How many sessions and calls would lose their texts."""
        moment = self._moment(before)
        calls = [
            select(func.count()).select_from(bodies.kind.rows).where(*_old(bodies, moment, workspace))
            for bodies in ALL_BODIES
        ]
        async with transaction(self._database.session) as db:
            counts = [await db.scalar(count) or 0 for count in calls]
        return Pruned(sessions=len(await self._sessions(moment, workspace)), calls=sum(counts))

    async def prune(
        self, before: date, workspace: str, watch: Callable[[int], None] = lambda _calls: None
    ) -> Pruned:
        """Of sessions that ended before that day (UTC), and of calls without a session made before it.

        `watch` is told how many calls it has been so far. A record that was tampered with must not be sealed anew, so
        each is examined first.
        """
        moment, total = self._moment(before), Pruned()
        for session_id in await self._sessions(moment, workspace):
            if examine_record(await read_chain(self._trail, session_id), LOG_LOCALE).intact:
                await self._empty_session(session_id, total)
                total.sessions += 1
            else:
                total.broken.append(session_id)
            watch(total.calls)
        for bodies in ALL_BODIES:
            loose = (*_old(bodies, moment, workspace), bodies.kind.rows.c.session_id.is_(None))
            while rows := await self._some(bodies, *loose):
                await self._empty_loose(bodies, [row["id"] for row in rows])
                total.calls += len(rows)
                total.size += bodies.weigh(rows)
                watch(total.calls)
        return total

    def _moment(self, before: date) -> datetime:
        """A day that has not come could take in sessions that still run."""
        if before > self._clock.now().astimezone(UTC).date():
            raise refuse_field("in_future", "before", before.isoformat())
        return datetime.combine(before, time.min, UTC)

    async def _sessions(self, before: datetime, workspace: str) -> list[UUID]:
        """Those that ended before that moment and have texts left."""
        found: dict[UUID, None] = {}
        async with transaction(self._database.session) as db:
            for bodies in ALL_BODIES:
                owner = bodies.kind.rows.c.session_id
                old = select(owner).where(*_old(bodies, before, workspace), owner.is_not(None))
                found |= dict.fromkeys(await db.scalars(old.distinct()))
        return list(found)

    async def _empty_session(self, session_id: UUID, total: Pruned) -> None:
        for bodies in ALL_BODIES:
            while rows := await self._some(bodies, bodies.kind.rows.c.session_id == session_id):
                vouched = ({name: row[name] for name in bodies.kind.columns} for row in rows)
                await asyncio.gather(
                    *(
                        self._trail.append(
                            bodies.kind, {**row, **bodies.emptied}, session_id=session_id, write="update"
                        )
                        for row in vouched
                    )
                )
                total.calls += len(rows)
                total.size += bodies.weigh(rows)

    async def _empty_loose(self, bodies: Bodies, ids: Sequence[UUID]) -> None:
        calls = bodies.kind.rows
        emptied = update(calls).where(calls.c.id.in_(ids)).values(dict(bodies.emptied))
        await self._database.write(lambda db: db.execute(emptied))

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


class SqlSessionRecord(SqlResearchSessionRepository):
    """Sessions with all that was written down while they ran."""

    def __init__(
        self,
        trail: AuditTrail,
        llm: LLMCallLogQueryService,
        external: ExternalAPICallLogQueryService,
        close_calls: Callable[[UUID], Awaitable[None]],
    ) -> None:
        super().__init__(trail)
        self._llm, self._external, self._close_calls = llm, external, close_calls
        trail.vouches_for(*RECORD_KINDS.values())

    async def llm_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        calls = await self._llm.get_by_session_id(session_id, include_text=include_text)
        return [call.model_dump(mode="json") for call in calls]

    async def api_calls(self, session_id: UUID, *, include_text: bool) -> list[dict[str, Any]]:
        calls = await self._external.get_by_session_id(session_id, include_text=include_text)
        return [call.model_dump(mode="json") for call in calls]

    async def close_calls(self, session_id: UUID) -> None:
        await self._close_calls(session_id)

    async def verify(self, session_id: UUID, workspace_id: str, locale: Locale | None) -> Verification:
        """Without a look at the rest of the session's row, which may be what cannot be read."""
        known = select(ROW.workspace_id, ROW.locale).where(ROW.id == session_id)
        async with transaction(self._database.session) as db:
            row = (await db.execute(known)).one_or_none()
        listed = row is not None or await is_listed(self._trail, workspace_id, session_id)
        if not listed or (row is not None and row.workspace_id != workspace_id):
            raise SessionNotFound(session_id)
        spoken = locale or locale_of(row and row.locale)
        return await verify(self._trail, session_id, spoken, workspace=workspace_id)

    async def verify_all(self, workspace_id: str, locale: Locale, *, sign: bool) -> WorkspaceVerification:
        async with transaction(self._database.session) as db:
            stored = list(await db.scalars(select(ROW.id).where(ROW.workspace_id == workspace_id)))
        ledger, found = await verify_workspace(self._trail, workspace_id, stored, locale)
        broken = [one for one in found if not one.intact]
        problems = {one.first_break.problem for one in (ledger, *broken) if one.first_break}
        if sign and problems == {"unsigned"}:
            await self._trail.sign_ledger(workspace_id)
            return await self.verify_all(workspace_id, locale, sign=False)
        said = SAY(
            "ledger.intact" if not broken else "ledger.broken", sessions=len(found), broken=len(broken)
        )
        return WorkspaceVerification(
            intact=ledger.intact and not broken,
            sessions=len(found),
            head=ledger.head,
            broken=broken,
            explanation=f"{said.in_locale(locale)}{'' if ledger.intact else ' ' + ledger.explanation}",
        )

    async def chain(self, session_id: UUID) -> Chain:
        return await read_chain(self._trail, session_id)

    async def bind_answer(self, session_id: UUID, moot: str, files: Mapping[str, str]) -> None:
        row = {"id": uuid4(), "session_id": session_id, "moot": moot, "files": dict(files)}
        await self._trail.append(ANSWER, row, session_id=session_id)
