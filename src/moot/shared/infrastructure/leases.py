"""Leases in the rows they are for. Taking one is a single statement: there is one winner."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Connection, String, Update, false, select, text, update
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.domain.leases import Lease, Leases, Loss, Taken
from moot.shared.infrastructure.audit_trail import Fenced
from moot.shared.infrastructure.database import Database, patient


class LeasedRow:
    """The columns of a table whose rows are worked on; a writer with an older `lease_token` has lost its row."""

    id: Mapped[UUID]
    lease_owner: Mapped[str | None] = mapped_column(String(100))
    lease_token: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    lease_expires_at: Mapped[datetime | None]


class SqlLeases(Leases):
    """`to_do` says which rows are to be worked on; `taking` what changes in a row when somebody begins, `leaving`
    when somebody lets go of it who could have gone on."""

    def __init__(
        self,
        database: Database,
        row: type[LeasedRow],
        *,
        to_do: ColumnElement[bool],
        cancel_requested: Any = None,
        taking: Mapping[str, Any] | None = None,
        leaving: Mapping[str, Any] | None = None,
    ) -> None:
        self._database, self._row, self._to_do = database, row, to_do
        self._cancel = false() if cancel_requested is None else cancel_requested
        self._taking, self._leaving = taking or {}, leaving or {}

    async def acquire(self, row_id: UUID, owner: str, now: datetime, until: datetime) -> Taken | None:
        row = self._row
        taking = (
            self._update(row.id == row_id, self.free(now))
            .values(
                lease_owner=owner, lease_token=row.lease_token + 1, lease_expires_at=until, **self._taking
            )
            .returning(row.lease_token, self._cancel)
        )

        def take(db: Connection) -> Taken | None:
            if (taken := db.execute(taking).one_or_none()) is None:
                return None
            token, cancel = taken
            return Taken(Lease(owner, token, until), bool(cancel), self._read(db, row_id))

        return await self._database.write(take)

    def _read(self, db: Connection, row_id: UUID) -> Any:
        """What whoever takes a row needs of it, read in the transaction that takes it."""

    async def renew(self, owner: str, rows: Sequence[UUID], until: datetime) -> dict[UUID, Loss]:
        row = self._row
        mine = self._update(row.id.in_(rows), row.lease_owner == owner)
        states = select(row.id, row.lease_owner, self._cancel).where(row.id.in_(rows))

        def prolong(db: Connection) -> dict[UUID, Loss]:
            db.execute(mine.values(lease_expires_at=until))
            return {
                row_id: "taken over" if holder != owner else "cancelled"
                for row_id, holder, cancel in db.execute(states)
                if holder != owner or cancel
            }

        return await self._database.write(prolong)

    async def release(self, owner: str, now: datetime) -> None:
        mine = self._update(self._row.lease_owner == owner, self._to_do)
        await self._write(mine.values(lease_expires_at=now, **self._leaving))

    def free(self, now: datetime) -> ColumnElement[bool]:
        """To be worked on, and held by nobody."""
        expires = self._row.lease_expires_at
        return self._to_do & (expires.is_(None) | (expires <= now))

    def fence(self, db: Connection, tokens: Mapping[UUID, int]) -> None:
        """What is not stored cannot be taken over either. PostgreSQL waits here for whoever is taking one.

        The tokens are compared here: as a condition of the statement PostgreSQL would test it before it locks the
        row, and let everything pass that is being taken over.
        """
        row = self._row
        locked = select(row.id, row.lease_token).where(row.id.in_(tokens)).with_for_update(read=True)
        if lost := [row_id for row_id, token in db.execute(locked) if token != tokens[row_id]]:
            raise Fenced(f"another process carries on with {', '.join(map(str, lost))}")

    @patient
    async def _write(self, statement: Update) -> bool:
        """Whether there was a row to change."""
        return await self._database.write(lambda db: db.execute(statement).rowcount > 0)

    def _update(self, *conditions: ColumnElement[bool]) -> Update:
        return update(self._row).where(*conditions).execution_options(synchronize_session=False)
