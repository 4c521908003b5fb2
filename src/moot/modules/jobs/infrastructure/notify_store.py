"""Destinations and the outbox in SQL. Rows of the outbox are written in the transaction of what causes them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit
from uuid import UUID, uuid5

from pydantic import SecretStr
from sqlalchemy import (
    ColumnElement,
    Connection,
    Index,
    String,
    Text,
    UniqueConstraint,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.jobs.domain.destinations import HELD, Destination, DestinationStore, Outbox, Outcome, Tally
from moot.modules.jobs.domain.notices import Occasion, Pending
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import transaction, upsert


class DestinationRow(Base):
    """`facts` may be seen, `secrets` are encrypted."""

    __tablename__ = "notify_destinations"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(64))
    facts: Mapped[dict[str, Any]]
    secrets: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class NotificationRow(Base):
    """`status`: due, sent or given_up. Whoever claims a row puts `due_at` off: that is its lease, and `attempts` the
    token of it. No foreign key: a place that is removed meanwhile must not keep a session from being stored."""

    __tablename__ = "notifications"
    __table_args__ = (
        Index(None, "status", "due_at"),
        Index(None, "workspace_id", "destination_id", "status"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    destination_id: Mapped[UUID]
    occasion: Mapped[str] = mapped_column(String(20))
    session_id: Mapped[UUID]
    about: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(String(20))
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    due_at: Mapped[datetime]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]


PLACE, ROW = DestinationRow, NotificationRow
FACTS = {"kind", "occasions", "locale", "sender", "recipients", "place"}
SECRETS = ("url", "secret")
SHORTEST_KEY = 16
"""What is shorter in an address may be an ordinary word, which must not vanish from all that is written."""
CONCERNED = select(PLACE.id, PLACE.workspace_id, PLACE.facts).where(
    PLACE.workspace_id.in_(bindparam("of", expanding=True))
)
MOST_LOOKED_AT = 1000
"""Failures among which the last of each place is looked for."""
SHOWN = [getattr(ROW, name) for name in Pending._fields]


class Cipher(Protocol):
    """What goes in or comes out is written down nowhere from then on."""

    def encrypt(self, plain: str) -> str: ...

    def decrypt(self, token: str) -> str:
        """Raise an `Unavailable` that does not pass for what another secret has encrypted."""


class Cause(NamedTuple):
    """Why somebody is told something: `id` is that of the row that says so."""

    id: UUID
    workspace_id: str
    occasion: Occasion
    session_id: UUID
    about: dict[str, Any]
    at: datetime


def follow_causes(trail: AuditTrail) -> None:
    """From now on whatever is worth a notification leaves one in the outbox, in its own transaction."""
    trail.follow("session_outcome", lambda db, rows: _note(db, _ended(rows)))
    trail.follow("escalation", lambda db, rows: _note(db, _escalated(rows)))


def _ended(sessions: Sequence[Mapping[str, Any]]) -> Iterator[Cause]:
    """Whether a verdict changes anything is found out when there is time."""
    for row in sessions:
        judged = row["verdict_status"] in ("judged", "abstained")
        failed = row["verdict_status"] == "failed" and row["status"] != "cancelled"
        if row["trigger_source"] != "contest" and (judged or failed):
            occasion: Occasion = "verdict" if judged else "failure"
            yield Cause(row["id"], row["workspace_id"], occasion, row["id"], {}, row["completed_at"])


def _escalated(asked: Sequence[Mapping[str, Any]]) -> Iterator[Cause]:
    """What no session waits for is before whoever asked."""
    for row in asked:
        if row["session_id"] is not None and row["status"] == "pending":
            about = {"escalation_id": str(row["id"]), "why": list(row["why"])}
            session, at = row["session_id"], row["requested_at"]
            yield Cause(row["id"], row["workspace_id"], "escalation", session, about, at)


def _note(db: Connection, causes: Iterator[Cause]) -> None:
    """A row for each destination that wants to know; what was noted before stays as it is."""
    found = list(causes)
    if not found:
        return
    places = db.execute(CONCERNED, {"of": list({cause.workspace_id for cause in found})}).all()
    rows = [
        _row(cause, place)
        for cause in found
        for place, workspace, facts in places
        if workspace == cause.workspace_id and cause.occasion in facts["occasions"]
    ]
    if rows:
        upsert(db, ROW, rows, fixed=rows[0])


def _row(cause: Cause, place: UUID) -> dict[str, Any]:
    known = cause._asdict()
    at = known.pop("at")
    dues = {"status": "due", "attempts": 0, "due_at": at, "created_at": at}
    return known | dues | {"id": uuid5(place, f"{cause.occasion} {cause.id}"), "destination_id": place}


class SqlNotifications(DestinationStore, Outbox):
    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database, self._cipher = database, cipher

    async def add(self, destination: Destination) -> bool:
        hidden = {name: getattr(destination, name).get_secret_value() for name in SECRETS}
        learn_parts(hidden["url"])
        row = destination.model_dump(include={"id", "workspace_id", "name", "created_at"}) | {
            "facts": destination.model_dump(mode="json", include=FACTS),
            "secrets": {name: plain and self._cipher.encrypt(plain) for name, plain in hidden.items()},
        }
        taken = select(PLACE.id).where(PLACE.workspace_id == row["workspace_id"], PLACE.name == row["name"])
        added: list[bool] = []

        def work(db: Connection) -> None:
            added[:] = [db.scalar(taken) is None]
            if added[0]:
                db.execute(insert(PLACE).values(row))

        await self._database.write(work)
        return added[0]

    async def list(self, workspace: str | None = None) -> Sequence[Destination]:
        wanted = select(PLACE).order_by(PLACE.name)
        if workspace is not None:
            wanted = wanted.where(PLACE.workspace_id == workspace)
        async with transaction(self._database.session) as db:
            return [self._destination(row) for row in await db.scalars(wanted)]

    async def remove(self, destination: Destination) -> None:
        def work(db: Connection) -> None:
            db.execute(delete(ROW).where(ROW.destination_id == destination.id))
            db.execute(delete(PLACE).where(PLACE.id == destination.id))

        await self._database.write(work)

    async def count(self, workspace: str) -> dict[UUID, Tally]:
        mine = ROW.workspace_id == workspace
        counted = select(ROW.destination_id, ROW.status, func.count()).where(mine)
        counted = counted.group_by(ROW.destination_id, ROW.status)
        failed = select(ROW.destination_id, ROW.error).where(mine, ROW.error.is_not(None))
        failed = failed.order_by(ROW.due_at.desc()).limit(MOST_LOOKED_AT)
        async with transaction(self._database.session) as db:
            sums = (await db.execute(counted)).all()
            errors = dict(reversed((await db.execute(failed)).all()))
        by_place: dict[UUID, dict[str, Any]] = {}
        for place, status, number in sums:
            name = "waiting" if status == "due" else status
            by_place.setdefault(place, {"last_error": errors.get(place)})[name] = number
        return {place: Tally(**known) for place, known in by_place.items()}

    async def find_due(self, now: datetime, at_most: int) -> Sequence[Pending]:
        due = select(*SHOWN).where(ROW.status == "due", ROW.due_at <= now).order_by(ROW.due_at).limit(at_most)
        async with transaction(self._database.session) as db:
            return [Pending(*row) for row in await db.execute(due)]

    async def claim(self, pending: Pending, now: datetime) -> Pending | None:
        free = update(ROW).where(ROW.id == pending.id, ROW.status == "due", ROW.due_at <= now)
        taking = free.values(due_at=now + HELD, attempts=ROW.attempts + 1).returning(*SHOWN)
        taken: list[Pending] = []

        def work(db: Connection) -> None:
            taken[:] = [Pending(*row) for row in db.execute(taking)]

        await self._database.write(work)
        return taken[0] if taken else None

    async def postpone(self, claimed: Pending, until: datetime, error: str) -> None:
        later = update(ROW).where(*_held(claimed)).values(due_at=until, error=error)
        await self._database.write(lambda db: db.execute(later))

    async def close(self, claimed: Pending, outcome: Outcome, at: datetime, error: str | None = None) -> None:
        closed = update(ROW).where(*_held(claimed)).values(status=outcome, due_at=at, error=error)
        await self._database.write(lambda db: db.execute(closed))

    async def drop(self, claimed: Pending) -> None:
        await self._database.write(lambda db: db.execute(delete(ROW).where(*_held(claimed))))

    async def forget(self, before: datetime) -> None:
        old = ROW.status.in_(("sent", "given_up")) & (ROW.due_at < before)
        nobodys = ROW.destination_id.not_in(select(PLACE.id))
        await self._database.write(lambda db: db.execute(delete(ROW).where(old | nobodys)))

    def _destination(self, row: DestinationRow) -> Destination:
        opened, unreadable = {"url": "", "secret": ""}, False
        try:
            opened = {name: sealed and self._cipher.decrypt(sealed) for name, sealed in row.secrets.items()}
        except Unavailable as e:
            if e.passing:
                raise
            unreadable = True
        learn_parts(opened["url"])
        columns = {name: getattr(row, name) for name in ("id", "workspace_id", "name", "created_at")}
        hidden = {name: SecretStr(plain) for name, plain in opened.items()}
        return Destination(**row.facts, **columns, **hidden, unreadable=unreadable)


def learn_parts(url: str) -> None:
    """The key of a chat group is one part of its address, and may be told without the rest."""
    parts = urlsplit(url)
    found = [*(pair.partition("=")[2] for pair in parts.query.split("&")), *parts.path.split("/")]
    REDACT.learn(*(part for part in found if len(part) >= SHORTEST_KEY))


def _held(claimed: Pending) -> tuple[ColumnElement[bool], ...]:
    return ROW.id == claimed.id, ROW.status == "due", ROW.attempts == claimed.attempts
