"""The schema's revisions: `versions/v<number>_<what>.py`, a single line, each run inside the caller's transaction.

Alembic is imported when a migration runs, not when a database is opened.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Literal

from sqlalchemy import Connection, String, column, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

FOLDER = Path(__file__).parent
VERSION_TABLE = "alembic_version"
CURRENT = select(column("version_num", String)).select_from(table(VERSION_TABLE))

DATABASE_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(1836019572)"}
"""Taken first, given back by the end of the transaction: of several processes that start at once, one migrates."""
_PROCESS_LOCK = Lock()

Direction = Literal["upgrade", "downgrade"]


@cache
def revisions() -> list[str]:
    """All of them, oldest first."""
    return sorted(file.stem[1:].split("_")[0] for file in (FOLDER / "versions").glob("v*.py"))


async def migrate(connection: AsyncConnection, direction: Direction, revision: str) -> None:
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    def run(sync: Connection) -> None:
        config = Config(attributes={"connection": sync})
        config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
        getattr(command, direction)(config, revision)

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
