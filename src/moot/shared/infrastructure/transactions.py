"""How rows get in: a transaction each, or, where a database has one writer, one for all that are waiting."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

import structlog
from sqlalchemy import Connection, Dialect, Insert, Table, Update, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.errors import Unavailable
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.tables import Base

logger = structlog.get_logger(__name__)

SessionFactory = Callable[[], AsyncSession]
Work = Callable[[Connection], object]
"""What is done within a transaction. In a thread of its own perhaps, and more than once; what it gives is dropped."""
Write = Literal["insert", "update", "upsert"]
T = TypeVar("T")


@asynccontextmanager
async def transaction(session_factory: SessionFactory) -> AsyncIterator[AsyncSession]:
    """A session of its own, committed at the end of the block, rolled back if it raises."""
    with store_errors():
        async with session_factory() as session, session.begin():
            yield session


ASK_AGAIN = (0.5, 1, 2, 4, 8, 15)
"""Seconds between attempts to read what is needed, while the database is gone."""


async def read_patiently(read: Callable[[], Awaitable[T]]) -> T:
    """For whoever goes on from a record and must not do again what is on it: a database that is gone for a moment is
    waited for."""
    for pause in ASK_AGAIN:
        try:
            return await read()
        except Unavailable as e:
            logger.warning("record not read yet", error=str(e))
            await asyncio.sleep(pause)
    return await read()


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
    write_rows(db, "upsert", table, rows, fixed=fixed)


def write_rows(
    db: Connection,
    how: Write,
    table: type[Base],
    rows: Sequence[Mapping[str, Any]],
    *,
    fixed: Collection[str] = (),
) -> None:
    """Write `rows`, all of the same columns. An update changes the rows that have their ids."""
    told = _prepare(db.dialect, how, table, tuple(rows[0]), frozenset(fixed))
    values = [tuple([tell(row[name]) if tell else row[name] for name, tell in told.values]) for row in rows]
    db.exec_driver_sql(told.statement, values)


class Told(NamedTuple):
    """A statement as a driver takes it, with the columns of a row in its order, and how their values are put to it.

    Left to SQLAlchemy, all that is found out anew for every row, which takes longer than writing most of them.
    """

    statement: str
    values: Sequence[tuple[str, Callable[[Any], Any] | None]]


ITS_ID = "its_id"


@lru_cache(1024)
def _prepare(
    dialect: Dialect, how: Write, table: type[Base], columns: tuple[str, ...], fixed: frozenset[str]
) -> Told:
    rows = cast(Table, table.__table__)
    statement: Insert | Update = insert(rows)
    if how == "upsert":
        statement = _make_upsert(dialect.name, rows, columns, fixed)
    elif how == "update":
        statement = update(rows).where(rows.c.id == bindparam(ITS_ID))
        columns = tuple(name for name in columns if name != "id")
    compiled = statement.compile(dialect=dialect, column_keys=columns)
    types = {name: compiled.binds[name].type.dialect_impl(dialect) for name in compiled.positiontup or ()}
    values = [
        ("id" if name == ITS_ID else name, kind.bind_processor(dialect)) for name, kind in types.items()
    ]
    return Told(str(compiled), values)


def _make_upsert(dialect: str, table: Table, columns: Iterable[str], fixed: Collection[str]) -> Insert:
    statement = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    keys = [column.name for column in table.primary_key]
    new = {name: statement.excluded[name] for name in columns if name not in {*keys, *fixed}}
    if not new:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(index_elements=keys, set_=new)
