"""From a plain database URL to an engine, SQLite or PostgreSQL, set up the way Moot uses it."""

import asyncio
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import aiosqlite
from pydantic_core import to_json
from sqlalchemy import URL, AdaptedConnection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.texts import SAY

DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}
LIBPQ_NAMES = {"sslmode": "ssl"}
"""Options of a URL as other clients spell them, and as asyncpg does."""

Pragmas = Mapping[str, str | int]

BUSY_SECONDS = 30  # on a busy machine another process may take its time, and nobody is to fail for it
SQLITE_PRAGMAS: Pragmas = {
    "busy_timeout": BUSY_SECONDS * 1000,
    "journal_mode": "WAL",
    # What returned is committed, also when the power fails: resume and the audit rest on it. NORMAL may lose the
    # last commits to save about a millisecond each, which is nothing next to a model call.
    "synchronous": "FULL",
    "foreign_keys": "ON",
}
POOLS: dict[str, dict[str, Any]] = {
    "sqlite": {"pool_size": 4, "max_overflow": 0},
    "postgresql": {"pool_size": 10, "max_overflow": 10, "pool_pre_ping": True},
}


def driver_url(url: str) -> URL:
    """Name the driver in a URL, and refuse one Moot cannot use before anything is opened."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the URL itself is not repeated: it may hold a password
        raise InvalidInput(SAY("database.url_malformed"), code="SETTINGS_INVALID") from None
    driver = DRIVERS.get(parsed.drivername)
    if driver is None:
        raise InvalidInput(SAY("database.url_unsupported", driver=parsed.drivername), code="SETTINGS_INVALID")
    if driver.startswith("sqlite"):
        return parsed.set(drivername=driver, database=str(_file(parsed)))
    query = {LIBPQ_NAMES.get(name, name): value for name, value in parsed.query.items()}
    return parsed.set(drivername=driver, query=query)


def _file(url: URL) -> Path:
    if not url.database or url.database == ":memory:":
        raise InvalidInput(SAY("database.url_without_file"), code="SETTINGS_INVALID")
    return Path(url.database).expanduser()


def open_engine(url: URL, pragmas: Pragmas = SQLITE_PRAGMAS, **options: Any) -> AsyncEngine:
    """Parameters stay out of error messages and logs: they are prompts and answers."""
    try:
        engine = create_async_engine(url, json_serializer=_json, hide_parameters=True, **options)
    except ModuleNotFoundError as e:
        raise Unavailable(SAY("database.driver_missing"), code="DRIVER_MISSING") from e
    if url.get_backend_name() == "sqlite":
        _make_folder(Path(str(url.database)).parent)
        _set_pragmas_on_connect(engine, pragmas)
    return engine


def open_writer(url: URL) -> Engine:
    """For the one thread that writes to an SQLite file: a driver without a hop for every call."""
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite"),
        json_serializer=_json,
        hide_parameters=True,
        pool_size=1,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        for name, value in SQLITE_PRAGMAS.items():
            connection.execute(f"PRAGMA {name} = {value}")

    return engine


def _json(value: Any) -> str:
    """Numbers JSON cannot say (NaN, infinities) become null, at any depth."""
    return to_json(value, inf_nan_mode="null").decode()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(SAY("database.folder_failed", folder=folder, reason=e.strerror or e)) from e


def _set_pragmas_on_connect(engine: AsyncEngine, pragmas: Pragmas) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection: AdaptedConnection, _: ConnectionPoolEntry) -> None:
        connection.run_async(lambda driver: _set_pragmas(driver, pragmas))


async def _set_pragmas(connection: aiosqlite.Connection, pragmas: Pragmas) -> None:
    for name, value in pragmas.items():
        await _execute_when_free(connection, f"PRAGMA {name} = {value}")


async def _execute_when_free(connection: aiosqlite.Connection, statement: str) -> None:
    """Switching a file to WAL ignores `busy_timeout` while another process writes to it: ask again ourselves."""
    deadline = monotonic() + BUSY_SECONDS
    while True:
        try:
            await connection.execute(statement)
            return
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
        await asyncio.sleep(0.02)
