"""How rows get in: a transaction each, or, where a database has one writer, one for all that are waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.errors import Unavailable
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.tables import Base

SessionFactory = Callable[[], AsyncSession]
Work = Callable[[Connection], object]
"""What is done within a transaction. In a thread of its own perhaps, and more than once; what it gives is dropped."""
Insert = sqlite.Insert | postgresql.Insert
"""Both databases know inserts that may meet a row already there, each by one of its own."""
T = TypeVar("T")


@asynccontextmanager
async def transaction(session_factory: SessionFactory) -> AsyncIterator[AsyncSession]:
    """A session of its own, committed at the end of the block, rolled back if it raises."""
    with store_errors():
        async with session_factory() as session, session.begin():
            yield session


@contextmanager
def store_errors() -> Iterator[None]:
    """A database that fails, or cannot be reached, is `Unavailable`, without the statement and its data."""
    try:
        yield
    except (SQLAlchemyError, OSError) as e:
        reason = str(getattr(e, "orig", None) or e)
        raise Unavailable(SAY("database.store_failed", reason=reason), code="STORE_FAILED") from e


LINGER = 0.05
"""Seconds that something nobody waits for may wait for company."""


@dataclass
class GroupCommit(Generic[T]):
    """One writer: what arrives while a commit is under way goes into the next one, together.

    On SQLite, writers with connections of their own wait for each other's locks; one that commits for all of
    them does not. A group that fails is committed again one by one, so that one takes no other down.
    """

    commit: Callable[[list[T]], Awaitable[None]]
    _waiting: list[tuple[T, asyncio.Future[None]]] = field(default_factory=list)
    _writer: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    async def __call__(self, item: T) -> None:
        """Return when `item` is committed; raise what kept it from that."""
        done = self._order(item)
        self._wake()
        await done

    def later(self, item: T) -> asyncio.Future[None]:
        """Commit `item` along with the next one that somebody waits for, in its turn, or else a moment later."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._wake)
        return self._order(item)

    async def finish(self) -> None:
        if self._waiting:
            self._wake()
        if self._writer is not None:
            await self._writer

    def _order(self, item: T) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done))
        return done

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting:
            orders, self._waiting = self._waiting, []
            if await self._try(orders) is not None:  # one bad row must not cost the rows beside it
                for item, done in orders:
                    error = await self._try([(item, done)])
                    if error is not None and not done.done():
                        done.set_exception(error)

    async def _try(self, orders: list[tuple[T, asyncio.Future[None]]]) -> Exception | None:
        try:
            await self.commit([item for item, _ in orders])
        except Exception as e:  # noqa: BLE001  # bulkhead: the error belongs to whoever ordered the work
            return e
        for _, done in orders:
            if not done.done():  # whoever waited for it was cancelled
                done.set_result(None)
        return None


def upsert(
    db: Connection, table: type[Base], rows: Sequence[Mapping[str, Any]], *, fixed: Collection[str] = ()
) -> None:
    """Write `rows`, all of the same columns; of a row already there, all but its key and `fixed` is replaced."""
    db.execute(_make_upsert(db.dialect.name, table, tuple(rows[0]), frozenset(fixed)), rows)


@cache
def _make_upsert(dialect: str, table: type[Base], columns: tuple[str, ...], fixed: frozenset[str]) -> Insert:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert(cast(Table, table.__table__))
    keys = [column.name for column in table.__table__.primary_key]
    new = {name: statement.excluded[name] for name in columns if name not in {*keys, *fixed}}
    if not new:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(index_elements=keys, set_=new)
