"""The one door to the database: fresh sessions, and the revisions of its schema.

SQLite in a file by default, PostgreSQL by URL.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import URL, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker
from sqlalchemy.pool import NullPool

from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure import migrations
from moot.shared.infrastructure.engine import POOLS, SQLITE_PRAGMAS, driver_url, open_engine, open_writer
from moot.shared.infrastructure.transactions import GroupCommit, Work, store_errors, transaction

# A migration may rebuild a table others refer to, and may have to wait for another process that does the same.
MIGRATION_PRAGMAS = {**SQLITE_PRAGMAS, "foreign_keys": "OFF", "busy_timeout": 60_000}


class Database:
    """Opening one connects to nothing yet. The rows are the contexts' own business."""

    def __init__(self, url: str) -> None:
        self._url = driver_url(url)
        self._backend = self._url.get_backend_name()
        self._engine = open_engine(self._url, **POOLS[self._backend])
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)
        self._writer = _OneWriter(self._url) if self._backend == "sqlite" else None

    @property
    def safe_url(self) -> str:
        """Where it is, without the password: for people and logs."""
        return self._url.render_as_string(hide_password=True)

    def session(self) -> AsyncSession:
        """A fresh session, to be used by one task: `async with database.session() as session`."""
        return self._sessions()

    async def write(self, work: Work) -> None:
        """Run `work` in a transaction and return when it is committed. `work` may run twice, never commit twice."""
        if self._writer is not None:
            await self._writer.write(work)
            return
        async with transaction(self.session) as session:
            await (await session.connection()).run_sync(work)

    async def prepare(self) -> None:
        """Make ready for use: an SQLite file is migrated; PostgreSQL must have been, by `moot db upgrade`."""
        if await self.is_current():
            return
        if self._backend == "postgresql":
            self._refuse_newer(await self.current())
            raise Unavailable(SAY("database.outdated", head=self.head()), code="DATABASE_OUTDATED")
        await self.upgrade()

    async def upgrade(self) -> None:
        self._refuse_newer(await self.current())
        await self._migrate(migrations.upgrade, self.head())

    async def downgrade(self, revision: str) -> None:
        """Go back to `revision`; `base` is the empty database. What the dropped tables held is lost."""
        known = ["base", *migrations.revisions()]
        if revision not in known:
            raise InvalidInput(SAY("database.revision_unknown", revision=revision, revisions=known))
        await self._migrate(migrations.downgrade, revision)

    async def current(self) -> str | None:
        """The revision the database is at; None: it holds nothing of Moot."""
        async with self._connect() as connection:
            if not await connection.run_sync(lambda sync: inspect(sync).has_table(migrations.VERSION_TABLE)):
                return None
            return await connection.scalar(migrations.CURRENT)

    def head(self) -> str:
        """The revision this version of Moot needs."""
        return migrations.revisions()[-1]

    async def is_current(self) -> bool:
        return await self.current() == self.head()

    async def ping(self) -> None:
        """Raise `Unavailable` unless the database answers."""
        async with self._connect() as connection:
            await connection.execute(text("SELECT 1"))

    async def size(self) -> int:
        """In bytes, on SQLite with the log of what is not in the file yet."""
        if self._backend == "sqlite":
            return _bytes_on_disk(str(self._url.database))
        async with self._connect() as connection:
            return int(await connection.scalar(text("SELECT pg_database_size(current_database())")))

    async def reclaim(self) -> None:
        """Give room that rows have left back to the disk. PostgreSQL keeps it, for rows to come."""
        if self._backend == "sqlite":
            async with self._connect() as connection:
                alone = await connection.execution_options(isolation_level="AUTOCOMMIT")
                await alone.execute(text("VACUUM"))
                await alone.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    async def close(self) -> None:
        if self._writer is not None:
            await self._writer.close()
        await self._engine.dispose()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        with store_errors():
            async with self._engine.connect() as connection:
                yield connection

    async def _migrate(self, move: migrations.Move, revision: str) -> None:
        engine = open_engine(self._url, MIGRATION_PRAGMAS, poolclass=NullPool)
        with store_errors():
            async with engine.begin() as connection:
                await move(connection, revision)

    def _refuse_newer(self, current: str | None) -> None:
        if current is not None and current not in migrations.revisions():
            raise Unavailable(SAY("database.newer", current=current, head=self.head()), code="DATABASE_NEWER")


class _OneWriter:
    """SQLite has one at a time: a thread that commits for all who wait, with a single hop to it and back."""

    def __init__(self, url: URL) -> None:
        self._engine = open_writer(url)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="moot-writer")
        self.write = GroupCommit(self._hand_over)

    async def close(self) -> None:
        await self.write.finish()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)

    async def _hand_over(self, works: list[Work]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, works)

    def _transact(self, works: list[Work]) -> None:
        with store_errors(), self._engine.begin() as connection:
            for work in works:
                work(connection)


def _bytes_on_disk(file: str) -> int:
    parts = (Path(file), Path(f"{file}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
