"""What a session with nine model calls adds to the database, once it has ended."""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import running_llm_server
from tests.postgres import running_postgres

from bench.line import Line
from moot.desk import Moot
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.settings import Settings

SYMBOLS = [f"90000{n}.DEMO" for n in range(1, 7)]
LOCALES: tuple[Locale, ...] = ("zh-CN", "en-US")
CALLS = 9
BUDGET = 80.0
ON_POSTGRES = """SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"""
Size = Callable[[Moot], Awaitable[int]]


async def lines() -> list[Line]:
    with running_postgres() as postgres:
        url = await postgres.create(migrated=True)
        return [await measured("SQLite", "", file_size), await measured("PostgreSQL", url, tables_size)]


async def measured(name: str, url: str, size: Size) -> Line:
    """All symbols in both languages, twice: the first time each is new to the desk."""
    async with running_llm_server() as server:
        server.default = careful
        with tempfile.TemporaryDirectory() as home:
            settings = Settings(
                home=Path(home),
                database_url=url,
                llm_base_url=server.url,
                llm_model="careful-1",
                log_level="error",
            )
            async with Moot(settings) as desk:
                await research_all(desk)
                before = await size(desk)
                count = await research_all(desk)
                grown = (await size(desk) - before) / count / 1000
    detail = f"{grown:.1f} kB on {name}, {count} sessions of five experts, debate and verdict"
    return Line(f"kB a session with nine model calls, {name}", grown, BUDGET, detail)


async def research_all(desk: Moot) -> int:
    for symbol in SYMBOLS:
        for locale in LOCALES:
            answer = await desk.research(symbol, locale=locale)
            assert answer.usage.requests == CALLS, answer.usage
    assert desk.trail is not None
    await desk.trail.finish()
    return len(SYMBOLS) * len(LOCALES)


async def file_size(desk: Moot) -> int:
    """Without the room that rows have left, which those of the next session fill."""
    assert desk.database is not None
    await desk.database.reclaim()
    return await desk.database.size()


async def tables_size(desk: Moot) -> int:
    assert desk.database is not None
    url = desk.database.safe_url.replace("+asyncpg", "")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("VACUUM FULL")
        found = await (await connection.execute(ON_POSTGRES)).fetchone()
    assert found is not None
    return int(found[0])
