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


@dataclass
class _Order(Generic[T]):
    item: T
    done: asyncio.Future[None]

    def settle(self, error: Exception | None = None) -> None:
        if self.done.done():  # whoever waited for it was cancelled
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


LINGER = 0.05
"""Seconds that something nobody waits for may wait for company."""


@dataclass
class GroupCommit(Generic[T]):
    """One writer: what arrives while a commit is under way goes into the next one, together.

    On SQLite, writers with connections of their own wait for each other's locks; one that commits for all of
    them does not. A group that fails is committed again one by one, so that one takes no other down.
    """

    commit: Callable[[list[T]], Awaitable[None]]
    _waiting: list[_Order[T]] = field(default_factory=list)
    _writer: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    async def __call__(self, item: T) -> None:
        """Return when `item` is committed; raise what kept it from that."""
        order = self._ordered(item)
        self._wake()
        await order.done

    def later(self, item: T) -> asyncio.Future[None]:
        """Commit `item` along with the next one that somebody waits for, in its turn, or else a moment later."""
        order = self._ordered(item)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._wake)
        return order.done

    async def finish(self) -> None:
        if self._waiting:
            self._wake()
        if self._writer is not None:
            await self._writer

    def _ordered(self, item: T) -> _Order[T]:
        order = _Order(item, asyncio.get_running_loop().create_future())
        self._waiting.append(order)
        return order

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting:
            orders, self._waiting = self._waiting, []
            try:
                await self._commit(orders)
            except Exception:  # noqa: BLE001  # bulkhead: one bad row must not cost the rows beside it
                await self._one_by_one(orders)

    async def _one_by_one(self, orders: list[_Order[T]]) -> None:
        for order in orders:
            try:
                await self._commit([order])
            except Exception as e:  # noqa: BLE001  # bulkhead: the error belongs to whoever ordered the work
                order.settle(e)

    async def _commit(self, orders: list[_Order[T]]) -> None:
        await self.commit([order.item for order in orders])
        for order in orders:
            order.settle()


def insert_into(db: Connection, table: type[Base]) -> Insert:
    """An insert that knows `on_conflict_…`."""
    return _insert(db.dialect.name, table)


def upsert(
    db: Connection, table: type[Base], rows: Sequence[Mapping[str, Any]], *, fixed: Collection[str] = ()
) -> None:
    """Write `rows`, all of the same columns; of a row already there, all but its key and `fixed` is replaced."""
    db.execute(_replacing(db.dialect.name, table, tuple(rows[0]), frozenset(fixed)), rows)


def _insert(dialect: str, table: type[Base]) -> Insert:
    target = cast(Table, table.__table__)
    return postgresql.insert(target) if dialect == "postgresql" else sqlite.insert(target)


@cache
def _replacing(dialect: str, table: type[Base], columns: tuple[str, ...], fixed: frozenset[str]) -> Insert:
    statement = _insert(dialect, table)
    keys = [column.name for column in table.__table__.primary_key]
    new = {name: statement.excluded[name] for name in columns if name not in {*keys, *fixed}}
    return statement.on_conflict_do_update(index_elements=keys, set_=new)
