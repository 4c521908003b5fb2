"""Where a conversation stands, kept by LangGraph's own checkpointers: a person may answer after a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from sqlalchemy import make_url

from moot.shared.domain.errors import Unavailable
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.private_files import make_private_database, make_private_folder

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

Saver = BaseCheckpointSaver[Any]
LOCK = 0x6D6F6F74
"""The number by which processes know that somebody makes the tables."""
ASK_AGAIN = 0.1


@asynccontextmanager
async def checkpointer(url: str | None, home: Path) -> AsyncIterator[Saver]:
    """Beside a file database a file of its own; in a server's database, tables of its own; without either, memory."""
    if url is None:
        yield InMemorySaver()
    elif make_url(url).get_backend_name() == "sqlite":
        async with _in_file(home / "conversations.db") as saver:
            yield saver
    else:
        async with _in_postgres(url) as saver:
            yield saver


@asynccontextmanager
async def _in_file(path: Path) -> AsyncIterator[Saver]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: PLC0415

    make_private_folder(path.parent)
    make_private_database(path)
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await saver.setup()
        yield saver


@asynccontextmanager
async def _in_postgres(url: str) -> AsyncIterator[Saver]:
    try:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415
        from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415
    except ImportError as e:
        raise Unavailable(SAY("database.driver_missing"), code="DRIVER_MISSING") from e
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    given = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool[Any](plain, min_size=1, max_size=5, open=False, kwargs=given) as pool:
        saver = AsyncPostgresSaver(pool)
        async with _alone(pool):
            await saver.setup()
        yield saver


@asynccontextmanager
async def _alone(pool: "AsyncConnectionPool[Any]") -> AsyncIterator[None]:
    """Of all processes, one at a time makes the tables. Who waits asks again and again: a statement that waited would
    itself be waited for by the indexes."""
    async with pool.connection() as connection:
        locking = "SELECT pg_try_advisory_lock(%s) AS mine"
        while not (await (await connection.execute(locking, (LOCK,))).fetchone())["mine"]:  # noqa: ASYNC110
            await asyncio.sleep(ASK_AGAIN)
        try:
            yield
        finally:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))
