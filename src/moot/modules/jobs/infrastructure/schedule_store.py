"""Schedules and their runs in SQL. A due moment is a row, made with the next one in a single transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import (
    Connection,
    ForeignKey,
    Index,
    String,
    UniqueConstraint,
    delete,
    false,
    func,
    select,
    update,
)
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.jobs.domain.schedules import Schedule, ScheduleRun, ScheduleStore, ScheduleView
from moot.modules.jobs.infrastructure.causes import note_failed_run
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.leases import LeasedRow, SqlLeases
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import transaction, upsert


class ScheduleRow(Base):
    """`facts` is what was asked for."""

    __tablename__ = "schedules"
    __table_args__ = (UniqueConstraint("workspace_id", "name"), Index(None, "next_due"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(64))
    facts: Mapped[dict[str, Any]]
    paused: Mapped[bool] = mapped_column(server_default=false())
    next_due: Mapped[datetime]
    created_at: Mapped[datetime]


class ScheduleRunRow(LeasedRow, Base):
    """`facts` is what came of it."""

    __tablename__ = "schedule_runs"
    __table_args__ = (Index(None, "schedule_id", "due_at"), Index(None, "status"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    schedule_id: Mapped[UUID] = mapped_column(ForeignKey("schedules.id", ondelete="CASCADE"))
    due_at: Mapped[datetime]
    status: Mapped[str] = mapped_column(String(20))
    facts: Mapped[dict[str, Any]]


ROW, RUN = ScheduleRow, ScheduleRunRow
COLUMNS = {"id", "workspace_id", "name", "paused", "next_due", "created_at"}
RUN_COLUMNS = {"id", "schedule_id", "due_at", "status"}


class SqlSchedules(SqlLeases, ScheduleStore):
    def __init__(self, database: Database) -> None:
        super().__init__(database, RUN, to_do=RUN.status.in_(("waiting", "running")))

    async def add(self, schedule: Schedule, at_most: int) -> Literal["added", "taken", "full"]:
        row = schedule.model_dump(include=COLUMNS) | {
            "facts": schedule.model_dump(mode="json", exclude=COLUMNS)
        }
        mine = select(func.count()).select_from(ROW).where(ROW.workspace_id == schedule.workspace_id)

        def work(db: Connection) -> Literal["added", "taken", "full"]:
            if db.scalar(mine.where(ROW.name == schedule.name)):
                return "taken"
            if (db.scalar(mine) or 0) >= at_most:
                return "full"
            upsert(db, ROW, [row])
            return "added"

        return await self._database.write(work)

    async def list(self, workspace: str, runs: int, name: str | None = None) -> Sequence[ScheduleView]:
        wanted = select(ROW).where(ROW.workspace_id == workspace).order_by(ROW.name)
        if name is not None:
            wanted = wanted.where(ROW.name == name)
        async with transaction(self._database.session) as db:
            found = list(await db.scalars(wanted))
            latest = {row.id: list(await db.scalars(_latest(row.id, runs))) for row in found if runs}
        return [
            ScheduleView(**dict(_read(row)), runs=[_read_run(run) for run in latest.get(row.id, ())])
            for row in found
        ]

    async def remove(self, schedule: Schedule) -> None:
        await self._database.write(lambda db: db.execute(delete(ROW).where(ROW.id == schedule.id)))

    async def pause(self, schedule: Schedule, next_due: datetime | None) -> None:
        changes = {"paused": True} if next_due is None else {"paused": False, "next_due": next_due}
        await self._database.write(
            lambda db: db.execute(update(ROW).where(ROW.id == schedule.id).values(changes))
        )

    async def add_run(self, run: ScheduleRun) -> None:
        await self._database.write(lambda db: _add_run(db, run))

    async def find_due(self, now: datetime) -> Sequence[Schedule]:
        due = select(ROW).where(ROW.next_due <= now, ROW.paused.is_(False)).order_by(ROW.next_due)
        return [_read(row) for row in await self._database.scalars(due)]

    async def fire(self, schedule: Schedule, run: ScheduleRun, next_due: datetime) -> None:
        as_found = ROW.id == schedule.id, ROW.next_due == schedule.next_due, ROW.paused.is_(False)

        def work(db: Connection) -> None:
            if db.execute(update(ROW).where(*as_found).values(next_due=next_due)).rowcount:
                _add_run(db, run)

        await self._database.write(work)

    async def find_waiting(self, now: datetime) -> Sequence[ScheduleRun]:
        waiting = select(RUN).where(self.free(now)).order_by(RUN.due_at)
        return [_read_run(run) for run in await self._database.scalars(waiting)]

    async def find(self, schedule_id: UUID) -> Schedule | None:
        row = await self._database.scalar(select(ROW).where(ROW.id == schedule_id))
        return _read(row) if row else None

    async def keep(self, run: ScheduleRun, token: int, until: datetime | None = None) -> bool:
        mine = self._update(RUN.id == run.id, RUN.lease_token == token)
        held = {"lease_expires_at": until} if until else {}
        changing = mine.values(status=run.status, facts=_facts(run), **held)

        def work(db: Connection) -> bool:
            met = db.execute(changing).rowcount > 0
            if met and run.status == "failed" and run.ended_at:
                _note_failure(db, run, run.ended_at)
            return met

        return await self._database.write(work)


def _note_failure(db: Connection, run: ScheduleRun, at: datetime) -> None:
    name, workspace, facts = db.execute(
        select(ROW.name, ROW.workspace_id, ROW.facts).where(ROW.id == run.schedule_id)
    ).one()
    told = {"schedule": name, "due": f"{run.due_at:%Y-%m-%d %H:%M} UTC", "why": run.error or ""}
    note_failed_run(db, run.id, workspace, told | {"locale": facts["request"]["locale"]}, at)


def _latest(schedule_id: UUID, most: int) -> Any:
    return select(RUN).where(RUN.schedule_id == schedule_id).order_by(RUN.due_at.desc()).limit(most)


def _add_run(db: Connection, run: ScheduleRun) -> None:
    """What is there stays as it is."""
    row = run.model_dump(include=RUN_COLUMNS) | {"facts": _facts(run)}
    upsert(db, RUN, [row], fixed=row)


def _facts(run: ScheduleRun) -> dict[str, Any]:
    return run.model_dump(mode="json", exclude=RUN_COLUMNS)


def _read(row: ScheduleRow) -> Schedule:
    return Schedule(**row.facts, **{name: getattr(row, name) for name in COLUMNS})


def _read_run(row: ScheduleRunRow) -> ScheduleRun:
    return ScheduleRun(**row.facts, **{name: getattr(row, name) for name in RUN_COLUMNS})
