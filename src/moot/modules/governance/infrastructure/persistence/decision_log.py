"""Decisions in SQL, in the chain of their session. Rows and records share their field names."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import ColumnElement, Select, func, select, tuple_

from moot.modules.governance.application.decision_log import PLAIN_YES
from moot.modules.governance.domain.decisions import (
    DecisionFilter,
    DecisionLog,
    DecisionPage,
    DecisionRecord,
    DecisionStatistics,
)
from moot.modules.governance.infrastructure.persistence.tables import DecisionRow
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.ids import COUNTED_TO
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import AuditTrail, Fenced, Kind, Record
from moot.shared.infrastructure.execution_context import current_context, current_replay
from moot.shared.infrastructure.transactions import transaction

logger = structlog.get_logger(__name__)

ROW = DecisionRow
DECISION = Kind("decision", DecisionRow, tuple(DecisionRecord.model_fields))
NOTHING_SAID = PLAIN_YES.model_dump(mode="json")
AT_A_TIME = 500


class SqlDecisionLog(DecisionLog):
    """Best effort: a decision that cannot be written is logged and counted, and stands. `strict` refuses it.

    A replay leaves no trace.
    """

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

    async def of_session(self, session_id: UUID, workspace: str) -> list[DecisionRecord]:
        return await self._read(
            select(ROW)
            .where(ROW.session_id == session_id, ROW.workspace_id == workspace)
            .order_by(ROW.decided_at, ROW.requested_at, ROW.id)
        )

    async def page(self, workspace: str, wanted: DecisionFilter) -> DecisionPage:
        conditions = [ROW.workspace_id == workspace, *_conditions(wanted)]
        counted = select(ROW.id).where(*conditions).limit(COUNTED_TO + 1)
        async with transaction(self._database.session) as db:
            total = await db.scalar(select(func.count()).select_from(counted.subquery())) or 0
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
        async with transaction(self._database.session) as db:
            return [
                DecisionRecord.model_validate(row, from_attributes=True) for row in await db.scalars(wanted)
            ]


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
