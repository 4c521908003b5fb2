"""What a session's record can hold, read back and verified; and taking the texts of its calls out."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, partial
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, RowMapping, exists, func, or_, select, update

from moot.modules.coordinator.application.session_history import Pruned
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.domain.model.session import Called, SessionOutcome
from moot.modules.coordinator.infrastructure.session_repository import (
    ANSWER,
    SESSION_KINDS,
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import (
    NodeExecutionRow,
    ResearchSessionRow,
    SessionEventRow,
)
from moot.modules.llm_platform.application.call_logs import (
    ExternalAPICallLogQueryService,
    LLMCallLogQueryService,
)
from moot.modules.llm_platform.container import CALL_BODIES, CALL_KINDS
from moot.shared.domain.audit import Chain, Seal, Verification, WorkspaceVerification
from moot.shared.domain.brief import Usage
from moot.shared.domain.clock import Clock, in_utc
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

ROW, NODES, EVENTS = ResearchSessionRow, NodeExecutionRow, SessionEventRow


@cache
def record_kinds() -> dict[str, Kind]:
    """Everything a session's record can hold, known without a database: so that a pack can be examined anywhere.

    Who only lists sessions does not need governance loaded for it.
    """
    from moot.modules.governance.container import DECISION_KINDS  # noqa: PLC0415

    kinds = (*SESSION_KINDS, *CALL_KINDS, *EXTERNAL_KINDS, *DECISION_KINDS)
    return {kind.name: kind for kind in kinds}


def examine_record(chain: Chain, locale: Locale, seal: Seal | None = None) -> Verification:
    return examine(chain, record_kinds(), locale, seal)


async def read_record(trail: AuditTrail, session_id: UUID) -> Chain:
    trail.vouches_for(*record_kinds().values())
    return await read_chain(trail, session_id)


class SessionPruning:
    """Prompts, answers and responses of old sessions go; what was found and decided, and the chain, stay."""

    def __init__(self, trail: AuditTrail, clock: Clock) -> None:
        self._trail, self._database, self._clock = trail, trail.database, clock

    async def plan(self, before: date, workspace: str) -> Pruned:
        """How many sessions and calls would lose their texts."""
        calls = await self._count_calls(self._moment(before), workspace)
        return Pruned(sessions=len(calls.keys() - {None}), calls=calls.total())

    async def prune(
        self, before: date, workspace: str, watch: Callable[[int], None] = lambda _calls: None
    ) -> Pruned:
        """Of sessions that ended before that day (UTC), and of calls without a session made before it.

        `watch` is told how many calls it has been so far. A record that was tampered with must not be sealed anew, so
        each is examined first.
        """
        moment, total = self._moment(before), Pruned()
        for owner in await self._count_calls(moment, workspace):
            if owner is not None:
                if not examine_record(await read_record(self._trail, owner), LOG_LOCALE).intact:
                    total.broken.append(owner)
                    continue
                total.sessions += 1
            for bodies in ALL_BODIES:
                mine = (*_old(bodies, moment, workspace), bodies.kind.rows.c.session_id == owner)
                while rows := await self._some(bodies, *mine):
                    await self._empty(bodies, rows, owner)
                    total.calls += len(rows)
                    total.size += bodies.weigh(rows)
                    watch(total.calls)
            if owner is not None:
                await self._trail.pack(owner, anew=True)
        return total

    def _moment(self, before: date) -> datetime:
        """A day that has not come could take in sessions that still run."""
        if before > self._clock.now().astimezone(UTC).date():
            raise refuse_field("in_future", "before", before.isoformat())
        return in_utc(before)

    async def _count_calls(self, before: datetime, workspace: str) -> Counter[UUID | None]:
        """Those that have texts left, by the session that ended before that moment; None: they have no session."""
        found: Counter[UUID | None] = Counter()
        async with transaction(self._database.session) as db:
            for bodies in ALL_BODIES:
                owner = bodies.kind.rows.c.session_id
                old = select(owner, func.count()).where(*_old(bodies, before, workspace)).group_by(owner)
                for session_id, calls in await db.execute(old):
                    found[session_id] += calls
        return found

    async def _empty(self, bodies: Bodies, rows: Sequence[RowMapping], owner: UUID | None) -> None:
        """On the record of their session, if they have one."""
        if owner is None:
            calls = bodies.kind.rows
            loose = update(calls).where(calls.c.id.in_([row["id"] for row in rows]))
            await self._database.write(lambda db: db.execute(loose.values(dict(bodies.emptied))))
            return
        emptied = [{name: row[name] for name in bodies.kind.columns} | dict(bodies.emptied) for row in rows]
        append = partial(self._trail.append, bodies.kind, session_id=owner, write="update")
        await asyncio.gather(*map(append, emptied))

    async def _some(self, bodies: Bodies, *conditions: ColumnElement[bool]) -> Sequence[RowMapping]:
        some = select(bodies.kind.rows).where(*conditions).limit(BATCH)
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

    async def calls(self, session_id: UUID, to: Called, *, include_text: bool) -> list[dict[str, Any]]:
        logs = self._llm if to == "models" else self._external
        calls = await logs.get_by_session_id(session_id, include_text=include_text)
        return [call.model_dump(mode="json") for call in calls]

    async def list_outcomes(self, batch_ids: Sequence[UUID]) -> list[SessionOutcome]:
        mine = ROW.batch_id.in_(batch_ids)
        within = select(ROW.id).where(mine)
        columns = [getattr(ROW, name) for name in SessionOutcome.model_fields if hasattr(ROW, name)]
        pointing = select(EVENTS.session_id, EVENTS.data).where(
            EVENTS.session_id.in_(within), EVENTS.type.in_(["debate", "verdict"])
        )
        failing = select(NODES.session_id, NODES.error_type).where(
            NODES.session_id.in_(within), NODES.status == "failed"
        )
        async with transaction(self._database.session) as db:
            rows = (await db.execute(select(*columns).where(mine))).mappings().all()
            events = (await db.execute(pointing.order_by(EVENTS.seq))).all()
            failures = (await db.execute(failing)).all()
        points: dict[UUID, dict[str, Any]] = defaultdict(dict)
        for session_id, data in events:
            points[session_id] |= data
        codes: dict[UUID, set[str]] = defaultdict(set)
        for session_id, code in failures:
            codes[session_id].add(code or "")
        spent = await self._llm.add_up([row["id"] for row in rows])

        def tell(session_id: UUID, row: RowMapping) -> SessionOutcome:
            known = {**row, "failures": codes[session_id], **dict(spent.get(session_id, Usage()))}
            return SessionOutcome.model_validate(points[session_id] | known)

        return [tell(row["id"], row) for row in rows]

    async def close_calls(self, session_id: UUID) -> None:
        await self._close_calls(session_id)

    async def verify(self, session_id: UUID, workspace_id: str, locale: Locale | None = None) -> Verification:
        """Without a look at the rest of the session's row, which may be what cannot be read."""
        known = select(ROW.workspace_id, ROW.locale).where(ROW.id == session_id)
        async with transaction(self._database.session) as db:
            row = (await db.execute(known)).one_or_none()
        listed = row is not None or await is_listed(self._trail, workspace_id, session_id)
        if not listed or (row is not None and row.workspace_id != workspace_id):
            raise SessionNotFound(session_id)
        spoken = locale or locale_of(row and row.locale)
        self._trail.vouches_for(*record_kinds().values())
        return await verify(self._trail, session_id, spoken, workspace=workspace_id)

    async def verify_all(self, workspace_id: str, locale: Locale, *, sign: bool) -> WorkspaceVerification:
        stored = await self._database.scalars(select(ROW.id).where(ROW.workspace_id == workspace_id))
        self._trail.vouches_for(*record_kinds().values())
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
        return await read_record(self._trail, session_id)

    async def bind_answer(self, session_id: UUID, moot: str, files: Mapping[str, str]) -> None:
        row = {"id": uuid4(), "session_id": session_id, "moot": moot, "files": dict(files)}
        await self._trail.append(ANSWER, row, session_id=session_id)
