"""Destinations and the outbox in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import SecretStr
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from moot.modules.jobs.domain.destinations import HELD, Destination, Notifications, Outcome, Tally
from moot.modules.jobs.domain.notices import Pending
from moot.modules.jobs.infrastructure.causes import PLACE, ROW, DestinationRow
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.transactions import transaction

FACTS = {"kind", "occasions", "locale", "sender", "recipients", "place"}
SECRETS = ("url", "secret")
SHORTEST_KEY = 16
"""What is shorter in an address may be an ordinary word, which must not vanish from all that is written."""
MOST_LOOKED_AT = 1000
"""Failures among which the last of each place is looked for."""
SHOWN = [getattr(ROW, name) for name in Pending._fields]


class Cipher(Protocol):
    """What goes in or comes out is written down nowhere from then on."""

    def encrypt(self, plain: str) -> str: ...

    def decrypt(self, token: str) -> str:
        """Raise an `Unavailable` that does not pass for what another secret has encrypted."""


class SqlNotifications(Notifications):
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

        def work(db: Connection) -> bool:
            if db.scalar(taken) is not None:
                return False
            db.execute(insert(PLACE).values(row))
            return True

        return await self._database.write(work)

    async def list(self, workspace: str | None = None) -> Sequence[Destination]:
        wanted = select(PLACE).order_by(PLACE.name)
        if workspace is not None:
            wanted = wanted.where(PLACE.workspace_id == workspace)
        return [self._destination(row) for row in await self._database.scalars(wanted)]

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

    async def claim(self, rows: Sequence[Pending], now: datetime) -> Sequence[Pending]:
        wanted = ROW.id.in_([row.id for row in rows])
        free = update(ROW).where(wanted, ROW.status == "due", ROW.due_at <= now)
        taking = free.values(due_at=now + HELD, attempts=ROW.attempts + 1).returning(*SHOWN)
        taken = await self._database.write(lambda db: [Pending(*row) for row in db.execute(taking)])
        return sorted(taken, key=lambda row: row.created_at)

    async def postpone(self, claimed: Pending, until: datetime, error: str) -> None:
        later = update(ROW).where(*_held(claimed)).values(due_at=until, error=error)
        await self._database.write(lambda db: db.execute(later))

    async def hold_back(self, destination_id: UUID, now: datetime, until: datetime) -> None:
        due = ROW.destination_id == destination_id, ROW.status == "due", ROW.due_at <= now
        await self._database.write(lambda db: db.execute(update(ROW).where(*due).values(due_at=until)))

    async def close(
        self, claimed: Sequence[Pending], outcome: Outcome, at: datetime, error: str | None = None
    ) -> None:
        def work(db: Connection) -> None:
            for row in claimed:
                db.execute(update(ROW).where(*_held(row)).values(status=outcome, due_at=at, error=error))

        await self._database.write(work)

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
