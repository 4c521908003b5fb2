"""How rows get in: a transaction each, or, where a database has one writer, one for all that are waiting."""

import asyncio
import math
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
from contextvars import Context
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

import structlog
from sqlalchemy import Connection, Dialect, Insert, Table, Update, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import passed
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.working_time import loop_time, off_the_clock

logger = structlog.get_logger(__name__)

SessionFactory = Callable[[], AsyncSession]
Work = Callable[[Connection], object]
"""What is done within a transaction. In a thread of its own perhaps, and more than once."""
Write = Literal["insert", "update", "upsert"]
T = TypeVar("T")


@asynccontextmanager
async def transaction(session_factory: SessionFactory) -> AsyncIterator[AsyncSession]:
    """A session of its own, committed at the end of the block, rolled back if it raises."""
    with store_errors():
        async with session_factory() as session, session.begin():
            yield session


class Gone(Unavailable, code="STORE_FAILED"):
    """No connection to the database is to be had, or it was lost: what was under way is not committed."""


class InDoubt(Gone):
    """It was lost in the middle of a commit: whether that was made can be told when the database is back."""


@contextmanager
def store_errors(lost: type[Gone] = Gone) -> Iterator[None]:
    """A database that fails, or cannot be reached, is `Unavailable`, without the statement and its data."""
    try:
        yield
    except (SQLAlchemyError, OSError) as e:
        reason = str(getattr(e, "orig", None) or e)
        kind = lost if _tells_of_no_connection(e) else Unavailable
        raise kind(SAY("database.store_failed", reason=reason), code="STORE_FAILED") from e


NO_CONNECTION = ("08", "57P0")
"""How PostgreSQL's codes begin where a connection is lost, or refused by a server that stops or starts."""


def _tells_of_no_connection(error: SQLAlchemyError | OSError) -> bool:
    if not isinstance(error, DBAPIError):
        return isinstance(error, OSError)
    code = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or code.startswith(NO_CONNECTION)


OUTAGE = 60.0
"""Seconds from its first failure on for which a database that is gone is waited for."""
ASK_AGAIN = 0.25


class Patience:
    """With one database that is gone for a while, as one that is started again: those who cannot do without it stand
    in a line, and the first of them asks again. When the outage has lasted too long, all fail at once until somebody
    succeeds."""

    def __init__(self) -> None:
        self._gone_since: float | None = None
        self._line, self._ended = asyncio.Lock(), asyncio.Event()

    @property
    def tried(self) -> bool:
        """The database is gone, as far as anybody knows."""
        return self._gone_since is not None

    def lose(self) -> None:
        """Until somebody succeeds."""
        self._gone_since = -math.inf

    def end(self, *, within: float = 0.0) -> None:
        """For good: whoever waits does so for that many seconds more."""
        asyncio.get_running_loop().call_later(within, self._ended.set)

    async def outlast(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What `attempt` comes to once the database is there: it is made again, also where a commit is `InDoubt`."""
        began: float | None = None
        while True:
            try:
                came_to = await attempt()
            except Gone as e:
                if self._gone_since is None:
                    self._gone_since = loop_time()
                    logger.warning("database gone, waiting for it", error=str(e))
                began = self._gone_since if began is None else began
                if not await self._wait_in_line(began + OUTAGE):
                    raise
            else:
                self._gone_since = None
                return came_to

    async def _wait_in_line(self, end: float) -> bool:
        """Whether it is worth asking again. No time of a node's own is spent here."""
        with off_the_clock(current_context().tally.waiting):
            async with self._line:
                if self._gone_since is None:
                    return True
                return loop_time() < end and not await passed(self._ended, ASK_AGAIN)


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
            self._writer = asyncio.create_task(self._write_all(), context=Context())  # it is nobody's own

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
