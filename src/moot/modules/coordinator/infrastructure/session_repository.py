"""Sessions, nodes, events and leases in SQL. Rows and models share their field names, so there is nothing to map."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import structlog
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Result,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    select,
    type_coerce,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from moot.modules.coordinator.domain.exceptions import KeyReused, KeyTaken
from moot.modules.coordinator.domain.model.session import (
    GOING_ON,
    WHAT_IF,
    Asked,
    IdempotencyKey,
    Judged,
    NodeExecution,
    Recorded,
    ResearchSession,
    SessionEvent,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.tables import (
    NodeExecutionRow,
    ResearchSessionRow,
    SessionAnswerRow,
    SessionEventRow,
)
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.ids import COUNTED_TO
from moot.shared.domain.leases import Lease, passed
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind, Record
from moot.shared.infrastructure.database import patient
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.kept_texts import JSON_DATA
from moot.shared.infrastructure.leases import SqlLeases
from moot.shared.infrastructure.transactions import GroupCommit, transaction

logger = structlog.get_logger(__name__)

ROW = ResearchSessionRow
COLUMNS = set(ROW.__table__.columns.keys())
NAMES = {name: field.alias or name for name, field in ResearchSession.model_fields.items()}
LOOSE = {name for name in NAMES if NAMES[name] not in COLUMNS}
"""Of what was asked, what has no column of its own, and is kept in `question`."""

FIXED = ("id", "created_at", "question", *(NAMES[name] for name in Asked.model_fields if name not in LOOSE))
"""What a session keeps from its first day: an update never moves it to another workspace."""

ENDING = tuple(name for name in ResearchSession.model_fields if NAMES[name] not in {*FIXED, *LOOSE, "begun"})
SESSION = Kind("session_opened", ROW, FIXED, opens=True)
SESSION_END = Kind("session_outcome", ROW, ENDING, fixed=frozenset(FIXED), closes=True)
NODE = Kind("node", NodeExecutionRow, tuple(NodeExecution.model_fields))
EVENT = Kind("event", SessionEventRow, ("id", "session_id", "seq", "type", "at", "data"))
ANSWER = Kind("answer", SessionAnswerRow, ("id", "session_id", "moot", "files"))
SESSION_KINDS = (SESSION, SESSION_END, NODE, EVENT, ANSWER)
COUNT = Kind("count", ROW, ())
"""Has no link of its own."""

IN_A_LIST = [
    type_coerce(column, JSON_DATA).label(column.name) if column.name == "question" else column
    for column in ROW.__table__.columns
]
"""What was asked without what was known before: a list does not show that, and it need not be looked up."""

LOOKED_BACK = 20
"""Verdicts on a symbol among which the one of the latest moment is looked for: they may be asked in any order."""


def _last_judged() -> Select[Any]:
    reached = (
        select(ROW.id, ROW.as_of, ROW.created_at)
        .where(ROW.workspace_id == bindparam("of_workspace"), ROW.symbol == bindparam("of_symbol"))
        .where(ROW.trigger_source != WHAT_IF, ROW.verdict_status == "judged")
        .where(ROW.as_of < bindparam("before"))
        .order_by(ROW.created_at.desc(), ROW.id.desc())
        .limit(LOOKED_BACK)
        .subquery()
    )
    last = select(reached).order_by(reached.c.as_of.desc(), reached.c.created_at.desc()).limit(1).subquery()
    found = select(last.c.id, last.c.as_of)
    for node_type in ("debate", "judge"):
        node = aliased(NodeExecutionRow)
        ruled = (node.session_id == last.c.id, node.node_type == node_type, node.status == "success")
        found = found.add_columns(node.result_data).join(node, and_(*ruled))
    return found


LAST_JUDGED = _last_judged()
OF_SESSION: BindParameter[UUID] = bindparam("of_session")
NODES, EVENTS = NodeExecutionRow.__table__, SessionEventRow.__table__
SESSION_READ = select(ROW.__table__).where(ROW.id == OF_SESSION)
NODES_READ = (
    select(NODES).where(NODES.c.session_id == OF_SESSION).order_by(NODES.c.started_at, NODES.c.node_type)
)
EVENTS_READ = select(EVENTS).where(EVENTS.c.session_id == OF_SESSION).order_by(EVENTS.c.seq)
TO_DO = ROW.status.in_(GOING_ON)


class SqlResearchSessionRepository(SqlLeases, IResearchSessionRepository):
    """Every row it writes gets its link in the session's chain; once a lease is lost, nothing is committed."""

    lasting = True

    def __init__(self, trail: AuditTrail) -> None:
        super().__init__(
            trail.database,
            ROW,
            to_do=TO_DO,
            cancel_requested=ROW.cancel_requested,
            taking={"status": "running", "begun": case((ROW.lease_token == 0, 1), else_=ROW.begun)},
            leaving={"begun": 0},
        )
        self._trail, self._look_up = trail, GroupCommit(self._find_all_judged)
        self._news: WeakValueDictionary[UUID, asyncio.Event] = WeakValueDictionary()
        trail.vouches_for(*SESSION_KINDS)
        trail.set_fence(self.fence)

    async def save_session(
        self,
        session: ResearchSession,
        *,
        nodes: Sequence[NodeExecution] = (),
        events: Sequence[SessionEvent] = (),
        lease: Lease | None = None,
        key: IdempotencyKey | None = None,
        at_leisure: bool = False,
    ) -> None:
        row = _row(session)
        if lease is not None:
            row |= {f"lease_{name}": value for name, value in lease._asdict().items()} | {"begun": 1}
        if key is not None:
            row |= {"idempotency_key": key.key, "request_digest": key.digest}
        reused = [Record(NODE, "insert", session.id, dict(node)) for node in nodes]
        beside = [*reused, *_event_records(session.id, events)]
        try:
            await self._trail.append(
                SESSION, row, session_id=session.id, beside=beside, at_leisure=at_leisure
            )
        except Unavailable as e:
            if key is not None and isinstance(e.__cause__, IntegrityError):
                raise KeyTaken from e
            raise
        self._tell_listeners(session.id)

    async def update_session(self, session: ResearchSession, *, events: Sequence[SessionEvent] = ()) -> None:
        beside = _event_records(session.id, events)
        await self._trail.append(
            SESSION_END, _row(session), session_id=session.id, write="upsert", beside=beside
        )
        self._tell_listeners(session.id)

    async def save_node_execution(self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()) -> None:
        beside = _event_records(node.session_id, events)
        if current_context().answers == "resume":  # it got somewhere, after all
            beside.append(Record(COUNT, "update", None, {"id": node.session_id, "begun": 0}))
        await self._trail.append(NODE, vars(node), session_id=node.session_id, beside=beside)
        self._tell_listeners(node.session_id)

    def note_event(self, session_id: UUID, event: SessionEvent) -> None:
        (record,) = _event_records(session_id, [event])

        def tell(done: "asyncio.Future[None]") -> None:
            if not done.cancelled() and (error := done.exception()):
                logger.warning("event not stored", session_id=str(session_id), error=str(error))
            self._tell_listeners(session_id)

        self._trail.note(record).add_done_callback(tell)

    async def events_after(self, session_id: UUID, seq: int) -> list[SessionEvent]:
        later = EVENTS_READ.where(EVENTS.c.seq > seq)
        async with transaction(self._database.session) as db:
            return _events(await db.execute(later, {"of_session": session_id}))

    async def wait_for_events(self, session_id: UUID, seconds: float) -> None:
        await passed(self._news.setdefault(session_id, asyncio.Event()), seconds)

    def _tell_listeners(self, session_id: UUID) -> None:
        if news := self._news.pop(session_id, None):
            news.set()

    async def get_session_by_key(self, workspace_id: str, key: IdempotencyKey) -> ResearchSession | None:
        wanted = select(ROW).where(ROW.workspace_id == workspace_id, ROW.idempotency_key == key.key)
        row = await self._database.scalar(wanted)
        if row is not None and row.request_digest != key.digest:
            raise KeyReused(row.id)
        return _session(row) if row else None

    async def get_session_by_id(self, session_id: UUID, workspace_id: str | None) -> ResearchSession | None:
        wanted = select(ROW).where(ROW.id == session_id)
        if workspace_id is not None:
            wanted = wanted.where(ROW.workspace_id == workspace_id)
        row = await self._database.scalar(wanted)
        return _session(row) if row else None

    def _read(self, db: Connection, row_id: UUID) -> Recorded:
        asked = {"of_session": row_id}
        session = _session(db.execute(SESSION_READ, asked).one())
        return Recorded(
            session, _nodes(db.execute(NODES_READ, asked)), _events(db.execute(EVENTS_READ, asked))
        )

    @patient
    async def last_judged(self, workspace_id: str, symbol: str, as_of: datetime) -> Judged | None:
        """Looked up where rows are written, in one transaction for all who wait for theirs."""
        asked, found = {"of_workspace": workspace_id, "of_symbol": symbol, "before": as_of}, list[Any]()
        await self._look_up((asked, found))
        return Judged(*found[0]) if found else None

    async def _find_all_judged(self, wanted: list[tuple[Mapping[str, Any], list[Any]]]) -> None:
        def look(db: Connection) -> None:
            for asked, found in wanted:
                found[:] = db.execute(LAST_JUDGED, asked)

        await self._database.write(look)

    async def list_sessions(self, wanted: SessionFilter) -> SessionPage:
        conditions = list(_conditions(wanted))
        newest_first = (
            select(*IN_A_LIST)
            .where(*conditions)
            .order_by(ROW.created_at.desc(), ROW.id.desc())
            .limit(wanted.page_size)
            .offset(wanted.offset)
        )
        counted = select(ROW.id).where(*conditions)
        up_to = select(func.count()).select_from(counted.limit(COUNTED_TO + 1).subquery())
        async with transaction(self._database.session) as db:
            total = await db.scalar(up_to) or 0
            rows = await db.execute(newest_first)
            return SessionPage(
                total=min(total, COUNTED_TO),
                total_is_more=total > COUNTED_TO,
                page=wanted.offset // wanted.page_size + 1,
                page_size=wanted.page_size,
                items=[_session(row).model_copy(update={"previous": None}) for row in rows],
            )

    async def get_node_executions_by_session(self, session_id: UUID) -> list[NodeExecution]:
        async with transaction(self._database.session) as db:
            return _nodes(await db.execute(NODES_READ, {"of_session": session_id}))

    async def find_left_behind(self, now: datetime, at_most: int, taken: Collection[UUID] = ()) -> list[UUID]:
        begun = (ROW.lease_token > 0) | ROW.id.in_(taken)
        oldest_first = select(ROW.id).where(self.free(now), begun).order_by(ROW.created_at).limit(at_most)
        return await self._database.scalars(oldest_first)

    async def pause(self, session_id: UUID, token: int) -> None:
        """Its last owner may still have a heartbeat on the way, which must not hold it."""
        await self._trail.finish()
        held = self._update(ROW.id == session_id, ROW.lease_token == token, TO_DO)
        nobodys = {"lease_owner": None, "lease_expires_at": None}
        await self._write(held.values(status="waiting", begun=0, **nobodys))

    async def begin(self, session_id: UUID, token: int) -> None:
        mine = self._update(ROW.id == session_id, ROW.lease_token == token)
        await self._write(mine.values(begun=ROW.begun + 1))

    async def wake(self, session_id: UUID) -> bool:
        waiting = self._update(ROW.id == session_id, ROW.status == "waiting")
        return await self._write(waiting.values(status="queued"))

    async def request_cancel(self, session_id: UUID) -> None:
        await self._write(self._update(ROW.id == session_id, TO_DO).values(cancel_requested=True))


def _event_records(session_id: UUID, events: Iterable[SessionEvent]) -> list[Record]:
    def row(event: SessionEvent) -> dict[str, Any]:
        """Told twice it has the same id: that of its session with its number in the last digits."""
        return {"id": UUID(int=session_id.int ^ event.seq), "session_id": session_id, **vars(event)}

    return [Record(EVENT, "insert", session_id, row(event)) for event in events]


def _row(session: ResearchSession) -> dict[str, Any]:
    asked = session.model_dump(mode="json", include=LOOSE)
    return session.model_dump(exclude=LOOSE) | {"question": asked}


def _session(row: ResearchSessionRow | Row[Any]) -> ResearchSession:
    return ResearchSession.model_validate({name: getattr(row, name) for name in COLUMNS})


def _nodes(rows: Result[Any]) -> list[NodeExecution]:
    return [NodeExecution.model_validate(dict(row)) for row in rows.mappings()]


def _events(rows: Result[Any]) -> list[SessionEvent]:
    return [SessionEvent.model_validate(dict(row)) for row in rows.mappings()]


def _conditions(wanted: SessionFilter) -> Iterator[ColumnElement[bool]]:
    yield ROW.workspace_id == wanted.workspace_id
    if wanted.ids is not None:
        yield ROW.id.between(*wanted.ids)
    for column in (ROW.symbol, ROW.status, ROW.verdict_action, ROW.trigger_source, ROW.parent_session_id):
        value = getattr(wanted, column.key)
        if value is not None:
            yield column == value
    if wanted.created_from is not None:
        yield ROW.created_at >= wanted.created_from
    if wanted.created_before is not None:
        yield ROW.created_at < wanted.created_before
