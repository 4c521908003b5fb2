"""Turns in SQL: one row for each limit, held while it is looked at, and counted by the database's own clock.

Whoever shares the database shares the limit, and nobody's own clock matters.
"""

from typing import Any

from sqlalchemy import Connection, Insert, Update, bindparam, literal_column, update
from sqlalchemy.dialects import postgresql, sqlite

from moot.shared.domain.rate_limits import Priority, Rate, Turn, Turns, Use, Uses, settle, take
from moot.shared.infrastructure.database import Database, patient
from moot.shared.infrastructure.tables import RateLimitRow

NOW = {
    "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
}
"""Whole milliseconds since 1970, at that very moment and not when the transaction began."""


def _hold(insert: Any, now: str) -> Insert:
    """Nobody else reads or writes the row until the transaction ends; the time is told once that is so."""
    new = insert(RateLimitRow).values(key=bindparam("key"), uses=[])
    held: Insert = new.on_conflict_do_update(index_elements=["key"], set_={"key": new.excluded.key})
    return held.returning(RateLimitRow.uses, literal_column(now))


HOLD = {
    "postgresql": _hold(postgresql.insert, NOW["postgresql"]),
    "sqlite": _hold(sqlite.insert, NOW["sqlite"]),
}
KEEP: Update = (
    update(RateLimitRow).where(RateLimitRow.key == bindparam("held")).values(uses=bindparam("now_used"))
)


class SqlTurns(Turns):
    def __init__(self, database: Database) -> None:
        self._database = database

    @patient
    async def take(self, rate: Rate, tokens: int = 0, priority: Priority = "interactive") -> Turn:
        return await self._database.write(lambda db: take_turn(db, rate, tokens, priority))

    async def settle(self, turn: Turn, *, made: bool, tokens: int = 0) -> None:
        await self._database.write_at_most_once(lambda db: settle_turn(db, turn, made=made, tokens=tokens))


def take_turn(db: Connection, rate: Rate, tokens: int, priority: Priority) -> Turn:
    """Within a transaction of the caller's, which fails with it: raises `NotYet`."""
    uses, now = _read(db, rate.name)
    uses, turn = take(uses, rate, tokens, priority, now)
    _keep(db, rate.name, uses)
    return turn


def settle_turn(db: Connection, turn: Turn, *, made: bool, tokens: int = 0) -> None:
    uses, now = _read(db, turn.rate.name)
    _keep(db, turn.rate.name, settle(uses, turn, (int(made), tokens), now))


def _read(db: Connection, name: str) -> tuple[Uses, int]:
    uses, now = db.execute(HOLD[db.dialect.name], {"key": name}).one()
    return [Use(*use) for use in uses], now


def _keep(db: Connection, name: str, uses: Uses) -> None:
    db.execute(KEEP, {"held": name, "now_used": uses})
