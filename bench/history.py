"""Looking through the history of 100,000 sessions against looking through one of 1,000."""

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from sqlalchemy import String, cast, func, insert, literal, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from tests.postgres import running_postgres

from bench.line import Line
from bench.sessions import fresh_sqlite
from moot.modules.coordinator.application.session_history import SessionFilter, SessionHistory
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

MANY, FEW = 100_000, 1_000
BATCH = 10_000
SYMBOLS = [f"{600000 + number}.SH" for number in range(300)]
STATUSES = {"completed": 80, "partial": 12, "failed": 6, "cancelled": 2}
ACTIONS = {"BUY": 35, "HOLD": 45, "SELL": 20}
NODES = [*ExpertType, "debate", "judge"]
TODAY = datetime(2026, 6, 30, 8, tzinfo=UTC)
ROUNDS = 60
BUDGET = 3.0
FILTERS: dict[str, dict[str, Any]] = {
    "list": {},
    "list by symbol": {"symbol": SYMBOLS[7]},
    "list by status": {"status": "completed"},
    "list by verdict": {"verdict_action": "BUY"},
}
Look = Callable[[], Awaitable[object]]


async def lines() -> list[Line]:
    async with on_sqlite() as sqlite:
        measured = await compared("SQLite", *sqlite)
    async with on_postgres() as postgres:
        return measured + await compared("PostgreSQL", *postgres)


async def compared(where: str, many: Database, few: Database) -> list[Line]:
    return [
        await line(f"{name}, {MANY:,} / {FEW:,} sessions, {where}", looks)
        for name, looks in zip(
            [*FILTERS, "detail"], zip(await looks_at(many), await looks_at(few), strict=True), strict=True
        )
    ]


async def line(name: str, looks: tuple[Look, Look]) -> Line:
    rounds = [[await wall(look) for look in looks] for _ in range(ROUNDS)][ROUNDS // 6 :]
    many, few = (statistics.median(walls) for walls in zip(*rounds, strict=True))
    return Line(name, many / few, BUDGET, f"{many * 1e3:.2f} ms against {few * 1e3:.2f} ms")


async def looks_at(database: Database) -> list[Look]:
    """The first page of every list, and the detail of one session after another."""
    history = SessionHistory(SqlResearchSessionRepository(AuditTrail(database)))
    lists = [SessionFilter(workspace_id=DEFAULT_WORKSPACE, **wanted) for wanted in FILTERS.values()]
    async with database.session() as db:
        ids = iter((await db.scalars(select(ResearchSessionRow.id).limit(ROUNDS))).all())
    return [
        *(partial(history.sessions, wanted) for wanted in lists),
        lambda: history.session(next(ids), DEFAULT_WORKSPACE),
    ]


async def wall(look: Look) -> float:
    started = time.perf_counter()
    await look()
    return time.perf_counter() - started


@asynccontextmanager
async def on_sqlite() -> AsyncIterator[list[Database]]:
    async with both([fresh_sqlite(), fresh_sqlite()]) as databases:
        yield databases


@asynccontextmanager
async def on_postgres() -> AsyncIterator[list[Database]]:
    with running_postgres() as postgres:
        urls = [await postgres.create(migrated=True) for _ in range(2)]
        async with both([opened(url) for url in urls]) as databases:
            for database in databases:
                await vacuum(database)
            yield databases


async def vacuum(database: Database) -> None:
    """What PostgreSQL does by itself a minute later."""
    async with database.session() as db:
        connection = await db.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
        await connection.execute(text("VACUUM ANALYZE"))


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    yield database
    await database.close()


@asynccontextmanager
async def both(databases: list[AbstractAsyncContextManager[Database]]) -> AsyncIterator[list[Database]]:
    async with AsyncExitStack() as stack:
        many, few = [await stack.enter_async_context(database) for database in databases]
        await fill(many, MANY)
        await fill(few, FEW)
        yield [many, few]


async def fill(database: Database, count: int) -> None:
    """Straight into the tables, oldest first."""
    rows, sessions = list(session_rows(count)), ResearchSessionRow.metadata.tables["research_sessions"]
    async with database.session() as db, db.begin():
        for first in range(0, count, BATCH):
            await db.execute(insert(sessions), rows[first : first + BATCH])
        for number, node in enumerate(NODES):
            await fill_nodes(db, number, node)


def session_rows(count: int) -> Iterator[dict[str, Any]]:
    """One a minute until today. One in twenty retries the one before it; what was judged has a verdict."""
    chance, before = Random(count), None
    for number in range(count):
        status = drawn(chance, STATUSES)
        judged = status in {"completed", "partial"}
        begun = TODAY - timedelta(minutes=count - number)
        row = {
            "id": UUID(int=chance.getrandbits(128), version=4),
            "symbol": chance.choice(SYMBOLS),
            "status": status,
            "selected_experts": list(ExpertType),
            "options": {},
            "trigger_source": "api" if chance.random() < 0.7 else "cli",
            "as_of": begun,
            "locale": "zh-CN",
            "verdict_status": "judged" if judged else "failed",
            "verdict_action": drawn(chance, ACTIONS) if judged else None,
            "parent_session_id": before if chance.random() < 0.05 else None,
            "created_at": begun,
            "completed_at": begun + timedelta(seconds=40),
            "duration_ms": 40_000,
        }
        yield row
        before = row["id"]


def drawn(chance: Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


async def fill_nodes(db: AsyncSession, number: int, node: str) -> None:
    """A node of every session, made in the database itself; its id is the session's but for the beginning."""
    session, columns = ResearchSessionRow, NodeExecutionRow.__table__.c
    own_id = literal(f"{number:02x}").concat(func.substr(cast(session.id, String), 3))
    values = {
        columns.id: cast(own_id, columns.id.type),
        columns.session_id: session.id,
        columns.node_type: literal(node),
        columns.status: literal("success"),
        columns.result_data: literal({"text": "evidence and reasons. " * 4}, columns.result_data.type),
        columns.evidence: literal([], columns.evidence.type),
        columns.started_at: session.created_at,
        columns.completed_at: session.completed_at,
    }
    made = select(*values.values()).order_by(session.id)
    await db.execute(insert(NodeExecutionRow).from_select(list(values), made))
