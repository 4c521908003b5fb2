"""Opening a database: what a URL may say, how SQLite is set up, and what people read when it fails."""

import asyncio
import gc
import sqlite3
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg import AsyncConnection
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, StatementError

from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.infrastructure.database import Database, driver_url
from moot.shared.infrastructure.tables import ExternalAPICallLog
from tests.postgres import Postgres


class TestAUrl:
    @pytest.mark.parametrize(
        ("written", "read"),
        [
            ("sqlite:////data/moot.db", "sqlite+aiosqlite:////data/moot.db"),
            ("sqlite:///moot.db", "sqlite+aiosqlite:///moot.db"),
            ("sqlite+aiosqlite:///moot.db", "sqlite+aiosqlite:///moot.db"),
            ("postgresql://u:p%40ss@db:5433/moot", "postgresql+asyncpg://u:p%40ss@db:5433/moot"),
            ("postgres://u@db/moot", "postgresql+asyncpg://u@db/moot"),
            ("postgresql+asyncpg://u@db/moot", "postgresql+asyncpg://u@db/moot"),
            ("postgres://u@db/moot?sslmode=require", "postgresql+asyncpg://u@db/moot?ssl=require"),
        ],
    )
    def test_gets_its_driver(self, written: str, read: str) -> None:
        assert driver_url(written).render_as_string(hide_password=False) == read

    def test_of_sqlite_may_start_at_the_users_home(self) -> None:
        assert driver_url("sqlite:///~/moot.db").database == str(Path.home() / "moot.db")

    @pytest.mark.parametrize("url", ["mysql://u:secret@db/moot", "postgresql+psycopg://u:secret@db/moot"])
    def test_of_another_database_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            Database(url)
        driver = url.partition(":")[0]
        assert str(refused.value) == (
            f"MOOT_DATABASE_URL: {driver} is not supported. "
            "Write sqlite:///path/to/moot.db or postgresql://user:password@host/name."
        )
        assert refused.value.code == "SETTINGS_INVALID"

    @pytest.mark.parametrize("url", ["", "moot.db", "postgresql://u:secret@db:port/moot"])
    def test_that_is_none_is_refused_without_repeating_it(self, url: str) -> None:
        with pytest.raises(InvalidInput, match="is not a database URL") as refused:
            Database(url)
        assert "secret" not in str(refused.value)

    @pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
    def test_of_sqlite_in_memory_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidInput, match="MOOT_PERSISTENCE=off"):
            Database(url)

    def test_of_postgres_without_its_driver_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "asyncpg", None)
        with pytest.raises(Unavailable) as missing:
            Database("postgresql://u@db/moot")
        assert missing.value.in_locale("en-US").endswith("Run: pip install 'moot[postgres]'")
        assert missing.value.in_locale("zh-CN").endswith("请运行：pip install 'moot[postgres]'")


class TestSqlite:
    async def test_is_set_up_for_parallel_nodes_and_power_cuts(self, sqlite_database: Database) -> None:
        pragmas = ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        async with sqlite_database.session() as db:
            values = [await db.scalar(text(f"PRAGMA {name}")) for name in pragmas]
        full = 2
        assert values == ["wal", 30_000, 1, full]

    async def test_makes_the_folder_of_its_file(self, home: Path) -> None:
        database = Database(f"sqlite:///{home / 'a' / 'b' / 'moot.db'}")
        await database.prepare()
        await database.close()
        assert (home / "a" / "b" / "moot.db").exists()

    def test_says_which_folder_cannot_be_made(self, home: Path) -> None:
        (home / "file").write_text("in the way")
        with pytest.raises(
            Unavailable, match=r"file/data for the database cannot be created: Not a directory"
        ):
            Database(f"sqlite:///{home / 'file' / 'data' / 'moot.db'}")

    async def test_waits_for_another_process_that_writes_the_file_when_switching_it_to_wal(
        self, bare_home: Path
    ) -> None:
        other = sqlite3.connect(bare_home / "moot.db", isolation_level=None)
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN IMMEDIATE")
        database = Database(f"sqlite:///{bare_home / 'moot.db'}")
        waiting = asyncio.create_task(database.current())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        other.execute("COMMIT")
        other.close()

        await waiting
        async with database.session() as db:
            assert await db.scalar(text("PRAGMA journal_mode")) == "wal"
        await database.close()

    async def test_a_file_that_is_no_database_is_unavailable_and_let_go(self, bare_home: Path) -> None:
        (bare_home / "moot.db").write_text("something else entirely" * 100)
        database = Database(f"sqlite:///{bare_home / 'moot.db'}")
        with warnings.catch_warnings(record=True, action="always") as left_open:
            with pytest.raises(Unavailable, match="file is not a database"):
                await database.prepare()
            await database.close()
            gc.collect()
        assert left_open == []


class TestPostgres:
    async def test_that_does_not_answer_is_unavailable(self, home: Path) -> None:
        database = Database(f"postgresql://u:secret@/moot?host={home}")
        with pytest.raises(Unavailable) as failed:
            await database.current()
        assert failed.value.code == "STORE_FAILED"
        assert "secret" not in str(failed.value)
        await database.close()

    async def test_without_that_database_is_unavailable(self, postgres: Postgres) -> None:
        url = await postgres.create(migrated=False)
        await postgres.drop(url)
        database = Database(url)
        with pytest.raises(Unavailable, match="does not exist"):
            await database.current()
        await database.close()


class TestMoments:
    """Written as an aware datetime, read as one: in UTC, whatever the database keeps."""

    def a_call(self, created_at: datetime) -> ExternalAPICallLog:
        return ExternalAPICallLog(
            id=uuid4(),
            service_name="bochai",
            operation="web-search",
            request_params={"query": "白酒"},
            latency_ms=12,
            status="success",
            created_at=created_at,
        )

    @pytest.mark.accepts("W24")
    async def test_come_back_in_utc(self, database: Database) -> None:
        call = self.a_call(datetime.fromisoformat("2026-06-30T07:30:00.000001-05:00"))
        async with database.session() as db, db.begin():
            db.add(call)
        async with database.session() as db:
            stored = await db.get_one(ExternalAPICallLog, call.id)
        assert stored.created_at.isoformat() == "2026-06-30T12:30:00.000001+00:00"
        assert stored.created_at.tzinfo is UTC
        assert (stored.workspace_id, stored.request_params) == ("default", {"query": "白酒"})

    async def test_are_refused_without_a_time_zone(self, database: Database) -> None:
        naive = datetime(2026, 6, 30, 12, 0)  # noqa: DTZ001
        async with database.session() as db:
            db.add(self.a_call(naive))
            with pytest.raises(StatementError, match="a naive datetime is no moment"):
                await db.flush()


async def test_a_session_is_fresh_each_time(database: Database) -> None:
    async with database.session() as one, database.session() as other:
        assert one is not other
        await database.current()


async def test_a_closed_database_lends_no_connection(database: Database) -> None:
    await database.close()
    with pytest.raises(Unavailable, match="database is closed"):
        async with database.session() as session:
            await session.execute(text("SELECT 1"))


async def test_closing_takes_back_a_connection_that_a_task_still_uses(postgres_database: Database) -> None:
    async with postgres_database.session() as session:
        await session.execute(text("SELECT 1"))
        await postgres_database.close()
        with pytest.raises(DBAPIError, match="closed"):
            await session.execute(text("SELECT 1"))


def test_using_a_migrated_database_does_not_load_alembic(bare_home: Path) -> None:
    use = (
        "import asyncio, sys\n"
        "from moot.shared.infrastructure.database import Database\n"
        "async def use():\n"
        f"    database = Database('sqlite:///{bare_home}/moot.db')\n"
        "    await database.prepare()\n"
        "    await database.close()\n"
        "asyncio.run(use())\n"
        "print('alembic' in sys.modules)\n"
    )
    first, second = (subprocess.check_output([sys.executable, "-c", use], text=True) for _ in range(2))
    assert (first, second) == ("True\n", "False\n")


async def test_postgres_ends_what_a_stopped_process_left_half_done(postgres_database: Database) -> None:
    """By every client: its locks would keep others from taking over for as long as it stands still."""
    asked = "SHOW idle_in_transaction_session_timeout"
    async with postgres_database.session() as db:
        assert await db.scalar(text(asked)) == "15s"
    async with await AsyncConnection.connect(postgres_database.plain_url) as connection:
        assert await (await connection.execute(asked)).fetchone() == ("15s",)
