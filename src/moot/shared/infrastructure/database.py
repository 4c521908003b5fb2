"""The one door to the database: fresh sessions, and the revisions of its schema.

SQLite in a file by default, PostgreSQL by URL.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from pathlib import Path
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import aiosqlite
from pydantic_core import to_json
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Select,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure import migrations
from moot.shared.infrastructure.home import make_private_database
from moot.shared.infrastructure.transactions import (
    GroupCommit,
    InDoubt,
    Patience,
    Work,
    store_errors,
    transaction,
)

P = ParamSpec("P")
T = TypeVar("T")

DRIVERS = {
    **dict.fromkeys(("sqlite", "sqlite+aiosqlite"), "sqlite+aiosqlite"),
    **dict.fromkeys(("postgres", "postgresql", "postgresql+asyncpg"), "postgresql+asyncpg"),
}
LIBPQ_NAMES = {"sslmode": "ssl"}
"""Options of a URL as other clients spell them, and as asyncpg does."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BUSY_SECONDS = 30
"""On a busy machine another process may take its time, and nobody is to fail for it."""
SQLITE_PRAGMAS = {
    "busy_timeout": BUSY_SECONDS * 1000,
    # What returned is committed, also when the power fails: resume and the audit rest on it. NORMAL may lose the
    # last commits to save about a millisecond each, which is nothing next to a model call.
    "synchronous": "FULL",
    "foreign_keys": "ON",
}
# A migration may rebuild a table others refer to, and may have to wait for another process that does the same.
MIGRATION_PRAGMAS = {**SQLITE_PRAGMAS, "foreign_keys": "OFF", "busy_timeout": 60_000}
# A process that was stopped in the middle of a transaction holds its locks, and nobody could take over from it.
STOPPED = "15s"
POOLS: dict[str, dict[str, Any]] = {
    "sqlite": {"pool_size": 4, "max_overflow": 0},
    "postgresql": {
        "pool_size": 10,
        "max_overflow": 10,
        "pool_pre_ping": True,
        "connect_args": {"server_settings": {"idle_in_transaction_session_timeout": STOPPED}},
    },
}
OPTIONS: dict[str, Any] = {
    # Numbers JSON cannot say (NaN, infinities) become null, at any depth.
    "json_serializer": lambda value: to_json(value, inf_nan_mode="null").decode(),
    # Parameters stay out of error messages and logs: they are prompts and answers.
    "hide_parameters": True,
}


class Database:
    """Opening one connects to nothing yet. The rows are the contexts' own business."""

    def __init__(self, url: str) -> None:
        self._url = driver_url(url)
        self._backend = self._url.get_backend_name()
        self._engine = _open(self._url, SQLITE_PRAGMAS, **POOLS[self._backend])
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)
        self._writer = _OneWriter(self._url) if self._backend == "sqlite" else None
        self.clock, self.patience = StoreClock(), Patience()
        self._closed = False
        self._finishing: list[Callable[[], Awaitable[None]]] = []
        self._connections: set[Any] = set()
        event.listen(self._engine.sync_engine, "connect", self._keep_note)
        event.listen(self._engine.sync_engine, "close", lambda closed, _: self._connections.discard(closed))

    @property
    def safe_url(self) -> str:
        """Where it is, without the password: for people and logs."""
        return self._url.render_as_string(hide_password=True)

    @property
    def plain_url(self) -> str:
        """As clients take it that name their own drivers, with the password."""
        libpq = {asyncpg: name for name, asyncpg in LIBPQ_NAMES.items()}
        query = {libpq.get(name, name): value for name, value in self._url.query.items()}
        if self._backend == "postgresql":
            query = {"options": f"-cidle_in_transaction_session_timeout={STOPPED}", **query}
        plain = self._url.set(drivername=self._backend, query=query)
        return plain.render_as_string(hide_password=False)

    def session(self) -> AsyncSession:
        """A fresh session, to be used by one task: `async with database.session() as session`."""
        return self._sessions()

    async def scalars(self, wanted: Select[T]) -> list[T]:
        """The rows of a table, or the values of a column, read in a transaction of their own."""
        async with transaction(self.session) as db:
            return list(await db.scalars(wanted))

    async def scalar(self, wanted: Select[T]) -> T | None:
        """The first of them, if there is one."""
        async with transaction(self.session) as db:
            return await db.scalar(wanted)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """What `work` gives, run in a transaction, when that is committed. It may run twice, never commit twice."""
        given: list[T] = []

        def keep(db: Connection) -> None:
            given[:] = [work(db)]

        if self._writer is not None:
            await self._writer.write(keep)
        else:
            with store_errors():
                async with self.session() as session:
                    await (await session.connection()).run_sync(keep)
                    with store_errors(lost=InDoubt):
                        await session.commit()
        return given[0]

    async def write_at_most_once(self, work: Work) -> None:
        """A database that is gone is waited for; a commit that may have been made is not made again."""

        async def attempt() -> None:
            with suppress(InDoubt):
                await self.write(work)

        await self.patience.outlast(attempt)

    async def prepare(self) -> None:
        """Make ready for use: an SQLite file is migrated; PostgreSQL must have been, by `moot db upgrade`."""
        await self.keep_time()
        current, build = await self._version()
        if current == self.head():
            if build != migrations.digest():
                raise Unavailable(
                    SAY("database.other_build", head=current, where=self.safe_url),
                    code="DATABASE_OTHER_BUILD",
                )
            return
        if self._backend == "postgresql":
            self._refuse_newer(current)
            raise Unavailable(SAY("database.outdated", head=self.head()), code="DATABASE_OUTDATED")
        await self.upgrade()

    async def upgrade(self) -> None:
        self._refuse_newer(await self.current())
        await self._migrate("upgrade", self.head())

    async def downgrade(self, revision: str) -> None:
        """Go back to `revision`; `base` is the empty database. What the dropped tables held is lost."""
        self.require_revision(revision)
        await self._migrate("downgrade", revision)

    def require_revision(self, revision: str) -> None:
        known = ["base", *migrations.revisions()]
        if revision not in known:
            raise InvalidInput(SAY("database.revision_unknown", revision=revision, revisions=known))

    async def current(self) -> str | None:
        """The revision the database is at; None: it holds nothing of Moot."""
        return (await self._version())[0]

    async def _version(self) -> tuple[str | None, str | None]:
        """The revision, and by which build of it the tables were made."""
        async with self._connect() as connection:
            if not await connection.run_sync(lambda sync: inspect(sync).has_table(migrations.VERSION_TABLE)):
                return None, None
            row = (await connection.execute(migrations.CURRENT)).mappings().one_or_none()
            return (row["version_num"], row.get(migrations.DIGEST)) if row else (None, None)

    def head(self) -> str:
        """The revision this version of Moot needs."""
        return migrations.revisions()[-1]

    async def keep_time(self) -> None:
        """Ask the store for its time: a machine that slept since has counted too little."""
        if self._backend == "postgresql":
            async with self._connect() as connection:
                self.clock.set(cast(datetime, await connection.scalar(select(func.clock_timestamp()))))

    async def size(self) -> int:
        """In bytes, on SQLite with the log of what is not in the file yet."""
        if self._backend == "sqlite":
            parts = (Path(f"{self._url.database}{end}") for end in ("", "-wal"))
            return sum(part.stat().st_size for part in parts if part.exists())
        async with self._connect() as connection:
            return int(await connection.scalar(text("SELECT pg_database_size(current_database())")))

    async def reclaim(self) -> None:
        """Give room that rows have left back to the disk. PostgreSQL keeps it, for rows to come."""
        if self._backend == "sqlite":
            async with self._connect() as connection:
                alone = await connection.execution_options(isolation_level="AUTOCOMMIT")
                await alone.execute(text("VACUUM"))
                await alone.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def finish_first(self, finish: Callable[[], Awaitable[None]]) -> None:
        """Whoever writes what nobody waits for says how to wait for it: that comes before the database is closed."""
        self._finishing.append(finish)

    async def close(self) -> None:
        """For good: a task that goes on while its desk closes neither keeps its connection nor opens another, and
        nobody waits for a database that is gone."""
        self.patience.end()
        for finish in self._finishing:
            await finish()
        self._closed = True
        if self._writer is not None:
            await self._writer.close()
        await self._engine.dispose()
        if self._backend == "postgresql":  # SQLite's would wait for ever for the thread that was stopped
            for lent in list(self._connections):
                lent.terminate()

    def _keep_note(self, opened: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        if self._closed:
            raise Unavailable(SAY("database.closed"), code="DATABASE_CLOSED")
        self._connections.add(opened)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        with store_errors():
            async with self._engine.connect() as connection:
                yield connection

    async def _migrate(self, direction: migrations.Direction, revision: str) -> None:
        engine = _open(self._url, MIGRATION_PRAGMAS, poolclass=NullPool)
        with store_errors():
            async with engine.begin() as connection:
                await migrations.migrate(connection, direction, revision)

    def _refuse_newer(self, current: str | None) -> None:
        if current is not None and current not in migrations.revisions():
            raise Unavailable(SAY("database.newer", current=current, head=self.head()), code="DATABASE_NEWER")


Asking = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]


def patient(method: Asking[P, T]) -> Asking[P, T]:
    """A session under way needs what is read or written here, always: a database that is gone is waited for, and all
    is done again."""

    @wraps(method)
    async def waiting(self: Any, /, *given: P.args, **named: P.kwargs) -> T:
        database: Database = self._database
        return await database.patience.outlast(lambda: method(self, *given, **named))

    return waiting


class StoreClock(Clock):
    """The database's time, for all who share it from machines whose clocks differ; SQLite's is this machine's.

    It is asked once and goes on from there: no clock that somebody sets moves it.
    """

    def __init__(self) -> None:
        self._ahead: timedelta | None = None

    def set(self, now: datetime) -> None:
        self._ahead = now - _since_boot()

    def now(self) -> datetime:
        return datetime.now(UTC) if self._ahead is None else _since_boot() + self._ahead


def _since_boot() -> datetime:
    return EPOCH + timedelta(seconds=monotonic())


class _OneWriter:
    """SQLite has one at a time: a thread that commits for all who wait, with a single hop to it and back."""

    def __init__(self, url: URL) -> None:
        self._engine = create_engine(
            url.set(drivername="sqlite+pysqlite"),
            **OPTIONS,
            pool_size=1,
            max_overflow=0,
            connect_args={"check_same_thread": False},
        )
        _listen(self._engine, url, SQLITE_PRAGMAS)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="moot-writer")
        self.write = GroupCommit(partial(self._hand_over, self._transact))

    async def close(self) -> None:
        await self.write.finish()
        await self._hand_over(self._engine.dispose)

    async def _hand_over(self, *work: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, *work)

    def _transact(self, works: list[Work]) -> None:
        with store_errors(), self._engine.begin() as connection:
            for work in works:
                work(connection)


def driver_url(url: str) -> URL:
    """Name the driver in a URL, and refuse one Moot cannot use before anything is opened."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the URL itself is not repeated: it may hold a password
        raise InvalidInput(SAY("database.url_malformed"), code="SETTINGS_INVALID") from None
    driver = DRIVERS.get(parsed.drivername)
    if driver is None:
        raise InvalidInput(SAY("database.url_unsupported", driver=parsed.drivername), code="SETTINGS_INVALID")
    if not driver.startswith("sqlite"):
        query = {LIBPQ_NAMES.get(name, name): value for name, value in parsed.query.items()}
        return parsed.set(drivername=driver, query=query)
    if not parsed.database or parsed.database == ":memory:":
        raise InvalidInput(SAY("database.url_without_file"), code="SETTINGS_INVALID")
    return parsed.set(drivername=driver, database=str(Path(parsed.database).expanduser()))


def _open(url: URL, pragmas: Mapping[str, object], **pool: Any) -> AsyncEngine:
    try:
        engine = create_async_engine(url, **OPTIONS, **pool)
    except ModuleNotFoundError as e:
        raise Unavailable(SAY("database.driver_missing"), code="DRIVER_MISSING") from e
    if url.get_backend_name() == "sqlite":
        folder = Path(str(url.database)).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise Unavailable(SAY("database.folder_failed", folder=folder, reason=e.strerror or e)) from e
        _listen(engine.sync_engine, url, pragmas)
        event.listen(engine.sync_engine, "connect", lambda opened, _: opened.run_async(_switch_to_wal))
    return engine


def _listen(engine: Engine, url: URL, pragmas: Mapping[str, object]) -> None:
    """To every connection: the file is its owner's before it is opened, and is used in one way by all."""
    file = Path(str(url.database))

    def set_pragmas(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for name, value in pragmas.items():
            cursor.execute(f"PRAGMA {name} = {value}")
        cursor.close()

    event.listen(engine, "do_connect", lambda *_connecting: make_private_database(file))
    event.listen(engine, "connect", set_pragmas)


async def _switch_to_wal(connection: aiosqlite.Connection) -> None:
    """This ignores `busy_timeout` while another process writes to the file: ask again ourselves."""
    deadline = monotonic() + BUSY_SECONDS
    while True:
        try:
            await connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
        await asyncio.sleep(0.02)
