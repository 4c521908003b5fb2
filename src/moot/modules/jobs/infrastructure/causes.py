"""What is worth telling leaves a row in the outbox, in the transaction of what causes it.

Every desk loads this, as every session may be worth telling of: it needs little.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID, uuid5

from sqlalchemy import Connection, Index, String, Text, UniqueConstraint, bindparam, select, text
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.coordinator.application.session_queue import BATCH, WHAT_IF
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import upsert

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moot.modules.jobs.domain.notices import Occasion
    from moot.shared.infrastructure.audit_trail import AuditTrail


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

    __tablename__ = "notify_outbox"
    __table_args__ = (
        Index(None, "status", "due_at"),
        Index(None, "workspace_id", "destination_id", "status"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    destination_id: Mapped[UUID]
    occasion: Mapped[str] = mapped_column(String(20))
    session_id: Mapped[UUID | None]
    about: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(String(20))
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    due_at: Mapped[datetime]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]


PLACE, ROW = DestinationRow, NotificationRow
CONCERNED = select(PLACE.id, PLACE.workspace_id, PLACE.facts).where(
    PLACE.workspace_id.in_(bindparam("of", expanding=True))
)


UNTOLD = (WHAT_IF, BATCH)
"""Sessions that are not told of each: what-ifs, and those of a batch, whose end tells of all of them."""


class Cause(NamedTuple):
    """Why somebody is told something: `id` is that of the row that says so."""

    id: UUID
    workspace_id: str
    occasion: Occasion
    session_id: UUID | None
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
        if row["trigger_source"] not in UNTOLD and (judged or failed):
            occasion: Occasion = "verdict" if judged else "failure"
            yield Cause(row["id"], row["workspace_id"], occasion, row["id"], {}, row["completed_at"])


def note_batches(db: Connection, ended: Sequence[tuple[UUID, str]], at: datetime) -> None:
    """That these batches, each with its workspace, have ended then."""
    _note(db, (Cause(i, of, "batch", None, {"batch_id": str(i)}, at) for i, of in ended))


def note_failed_run(
    db: Connection, run_id: UUID, workspace: str, about: dict[str, Any], at: datetime
) -> None:
    """That a schedule could not begin what was due."""
    _note(db, iter([Cause(run_id, workspace, "failure", None, about, at)]))


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
