"""The schema's revisions: `versions/v<number>_<what>.py`, a single line, each run inside the caller's transaction.

Alembic is imported when a migration runs, not when a database is opened.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Literal

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

FOLDER = Path(__file__).parent
VERSION_TABLE = "alembic_version"
DIGEST = "build"
"""The column beside the revision that says by which text of the revisions the tables were made."""
CURRENT = text("SELECT * FROM alembic_version")
MADE_HERE = text("UPDATE alembic_version SET build = :digest")

DATABASE_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(1836019572)"}
"""Taken first, given back by the end of the transaction: of several processes that start at once, one migrates."""
_PROCESS_LOCK = Lock()

Direction = Literal["upgrade", "downgrade"]


@cache
def revisions() -> list[str]:
    """All of them, oldest first."""
    return sorted(file.stem[1:].split("_")[0] for file in (FOLDER / "versions").glob("v*.py"))


@cache
def digest() -> str:
    """Of the revisions as they stand here: until its release, two builds may have the same one with other tables."""
    files = sorted((FOLDER / "versions").glob("v*.py"))
    return blake2b(b"".join(file.read_bytes() for file in files), digest_size=8).hexdigest()


async def migrate(connection: AsyncConnection, direction: Direction, revision: str) -> None:
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    def run(sync: Connection) -> None:
        config = Config(attributes={"connection": sync})
        config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
        getattr(command, direction)(config, revision)
        if revision == revisions()[-1]:
            if DIGEST not in {found["name"] for found in inspect(sync).get_columns(VERSION_TABLE)}:
                sync.exec_driver_sql(f"ALTER TABLE {VERSION_TABLE} ADD COLUMN {DIGEST} VARCHAR(16)")
            sync.execute(MADE_HERE, {"digest": digest()})

    async with _alone(connection):
        await connection.run_sync(run)


@asynccontextmanager
async def _alone(connection: AsyncConnection) -> AsyncIterator[None]:
    """One migration at a time in a database, and in a process: Alembic keeps its connection in module globals."""
    await connection.exec_driver_sql(DATABASE_LOCKS[connection.dialect.name])
    while not _PROCESS_LOCK.acquire(blocking=False):  # noqa: ASYNC110 (shared by all event loops)
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        _PROCESS_LOCK.release()
