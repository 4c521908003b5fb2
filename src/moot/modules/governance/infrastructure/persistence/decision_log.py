"""Decisions in SQL, and the queue of those that wait for a person, in the chain of their session.

Rows and records share their field names.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import structlog
from sqlalchemy import ColumnElement, Connection, Select, Table, and_, func, or_, select, true, tuple_, update

from moot.modules.governance.application.decision_log import PLAIN_YES
from moot.modules.governance.domain.decisions import (
    DecisionFilter,
    DecisionLog,
    DecisionPage,
    DecisionRecord,
    DecisionStatistics,
)
from moot.modules.governance.domain.escalations import (
    OPEN,
    Escalation,
    EscalationPage,
    EscalationQueue,
    Question,
    Wanted,
)
from moot.modules.governance.infrastructure.persistence.tables import DecisionRow, EscalationRow
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.ids import COUNTED_TO
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import AuditTrail, Fenced, Kind, Record
from moot.shared.infrastructure.database import patient
from moot.shared.infrastructure.execution_context import current_context, current_replay
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.transactions import transaction

logger = structlog.get_logger(__name__)

ROW = DecisionRow
DECISION = Kind("decision", DecisionRow, tuple(DecisionRecord.model_fields))
NOTHING_SAID = PLAIN_YES.model_dump(mode="json")
AT_A_TIME = 500

QUEUE = cast(Table, EscalationRow.__table__)
ASKED = QUEUE.c
ESCALATION = Kind("escalation", EscalationRow, tuple(Escalation.model_fields))


class SqlDecisionLog(DecisionLog):
    """Best effort: a decision that cannot be written is logged and counted, and stands. `strict` refuses it.

    A replay leaves no trace.
    """

    lasting = True

    def __init__(self, trail: AuditTrail, *, strict: bool = False) -> None:
        self._trail, self._strict = trail, strict
        self._database = trail.database
        trail.vouches_for(DECISION)

    async def write(self, record: DecisionRecord) -> DecisionRecord:
        """A plain yes within a session is not waited for: all that is done on its account is committed after it."""
        if current_replay() is not None:
            return record
        plain_yes = record.result is PLAIN_YES
        said = NOTHING_SAID if plain_yes else record.result.model_dump(mode="json")
        row = {**vars(record), "result": said}
        if plain_yes and record.session_id is not None and not self._strict:
            noted = Record(DECISION, "insert", record.session_id, row)
            self._trail.note(noted).add_done_callback(
                lambda done: None if done.cancelled() else _note_gap(record, done.exception())
            )
            return record
        try:
            await self._trail.append(DECISION, row, session_id=record.session_id)
        except Exception as e:  # bulkhead: a lost record must not cost the decision, unless it was asked to
            _note_gap(record, e)
            if self._strict:
                raise Unavailable(SAY("audit.not_written"), code="AUDIT_FAILED") from e
        return record

    @patient
    async def of_session(self, session_id: UUID, workspace: str) -> list[DecisionRecord]:
        return await self._read(
            select(ROW)
            .where(ROW.session_id == session_id, ROW.workspace_id == workspace)
            .order_by(ROW.decided_at, ROW.requested_at, ROW.id)
        )

    async def page(self, workspace: str, wanted: DecisionFilter) -> DecisionPage:
        conditions = [ROW.workspace_id == workspace, *_conditions(wanted)]
        counted = select(ROW.id).where(*conditions).limit(COUNTED_TO + 1)
        total = await self._database.scalar(select(func.count()).select_from(counted.subquery())) or 0
        return DecisionPage(
            total=min(total, COUNTED_TO),
            total_is_more=total > COUNTED_TO,
            page=wanted.page,
            page_size=wanted.page_size,
            items=await self._read(
                select(ROW)
                .where(*conditions)
                .order_by(ROW.decided_at.desc(), ROW.id.desc())
                .limit(wanted.page_size)
                .offset((wanted.page - 1) * wanted.page_size)
            ),
        )

    async def statistics(self, workspace: str) -> DecisionStatistics:
        """Counted in an index, without a look at the rows."""
        by_status = select(ROW.status, func.count()).where(ROW.workspace_id == workspace).group_by(ROW.status)
        async with transaction(self._database.session) as db:
            counts = dict((await db.execute(by_status)).all())
        return DecisionStatistics(total=sum(counts.values()), **counts)

    async def history(self, workspace: str, since: datetime) -> AsyncIterator[DecisionRecord]:
        mine = select(ROW).where(ROW.workspace_id == workspace, ROW.decided_at >= since)
        in_order = mine.order_by(ROW.decided_at, ROW.id).limit(AT_A_TIME)
        records = await self._read(in_order)
        while records:
            for record in records:
                yield record
            reached = (records[-1].decided_at, records[-1].id)
            records = await self._read(in_order.where(tuple_(ROW.decided_at, ROW.id) > reached))

    async def _read(self, wanted: Select[DecisionRow]) -> list[DecisionRecord]:
        found = await self._database.scalars(wanted)
        return [DecisionRecord.model_validate(row, from_attributes=True) for row in found]


def _note_gap(record: DecisionRecord, error: BaseException | None) -> None:
    if error is not None and not isinstance(error, Fenced):
        current_context().tally.audit_gaps += 1
        logger.warning("decision not recorded", decision_id=record.decision_id, exc_info=error)


def _conditions(wanted: DecisionFilter) -> Iterator[ColumnElement[bool]]:
    equal = wanted.model_dump(
        include={"session_id", "status", "decision_type", "requester"}, exclude_none=True
    )
    yield from (getattr(ROW, name) == value for name, value in equal.items())
    if wanted.decided_from is not None:
        yield ROW.decided_at >= wanted.decided_from
    if wanted.decided_before is not None:
        yield ROW.decided_at < wanted.decided_before


class SqlEscalationQueue(EscalationQueue):
    """Every change is one statement on the state it expects: there is one winner."""

    lasting = True

    def __init__(self, trail: AuditTrail) -> None:
        self._trail, self._database = trail, trail.database
        trail.vouches_for(ESCALATION)

    async def add(self, escalation: Escalation) -> None:
        row = escalation.model_dump()
        await self._trail.append(ESCALATION, row, session_id=escalation.session_id)

    @patient
    async def newest(self, question: Question) -> Escalation | None:
        ordered = select(QUEUE).where(*_match(question)).order_by(ASKED.requested_at.desc(), ASKED.id)
        async with transaction(self._database.session) as db:
            row = (await db.execute(ordered.limit(1))).mappings().first()
        return Escalation.model_validate(dict(row)) if row else None

    async def page(
        self, workspace_id: str, now: datetime, wanted: Wanted, *, page: int, page_size: int
    ) -> EscalationPage:
        mine = (ASKED.workspace_id == workspace_id, _stands(wanted, now))
        newest_decided = func.coalesce(ASKED.decided_at, ASKED.expires_at).desc()
        order = ASKED.requested_at if wanted == "pending" else newest_decided
        ordered = select(QUEUE).where(*mine).order_by(order, ASKED.id)
        async with transaction(self._database.session) as db:
            total = await db.scalar(select(func.count()).select_from(QUEUE).where(*mine)) or 0
            rows = await db.execute(ordered.limit(page_size).offset((page - 1) * page_size))
            items = [Escalation.model_validate(dict(row)).at(now) for row in rows.mappings()]
        return EscalationPage(total=total, page=page, page_size=page_size, items=items)

    async def settle(self, pending: Escalation, ruling: Mapping[str, Any]) -> Escalation | None:
        waits = (
            ASKED.id == pending.id,
            ASKED.workspace_id == pending.workspace_id,
            ASKED.status == "pending",
            ASKED.expires_at > ruling["decided_at"],
        )
        return next(iter(await self._change(waits, REDACT(dict(ruling)))), None)

    @patient
    async def use(self, question: Question, decision_id: str, now: datetime) -> Escalation | None:
        if mine := await self.newest({**question, "status": "used", "used_for": decision_id}):
            return mine
        approved = (*_match(question), ASKED.status == "approved", ASKED.expires_at > now)
        oldest = (
            select(ASKED.id)
            .where(*approved)
            .order_by(ASKED.requested_at, ASKED.id)
            .limit(1)
            .scalar_subquery()
        )
        used = {"status": "used", "used_at": now, "used_for": decision_id}
        return next(iter(await self._change((ASKED.id == oldest, ASKED.status == "approved"), used)), None)

    async def expire(self, now: datetime) -> list[Escalation]:
        return await self._change((ASKED.status.in_(OPEN), ASKED.expires_at <= now), {"status": "expired"})

    async def _change(
        self, conditions: Sequence[ColumnElement[bool]], values: dict[str, Any]
    ) -> list[Escalation]:
        changing = update(QUEUE).where(*conditions).values(values).returning(QUEUE)
        changed: list[Escalation] = []

        def work(db: Connection) -> list[Record]:
            rows = db.execute(changing).mappings()
            changed[:] = [Escalation.model_validate(dict(row)) for row in rows]
            return [Record(ESCALATION, "update", e.session_id, e.model_dump()) for e in changed]

        await self._trail.vouch(work)
        return changed


def _stands(wanted: Wanted, now: datetime) -> ColumnElement[bool]:
    """What ran out of time is expired, whether or not somebody has written that down."""
    late = and_(ASKED.status.in_(OPEN), ASKED.expires_at <= now)
    if wanted == "all":
        return true()
    if wanted == "decided":
        return or_(ASKED.status != "pending", late)
    return or_(ASKED.status == wanted, late) if wanted == "expired" else and_(ASKED.status == wanted, ~late)


def _match(question: Question) -> list[ColumnElement[bool]]:
    """Outside of a session that is `IS NULL`."""
    return [ASKED[name] == value for name, value in question.items()]
