"""The schema: what the revisions create is what the models declare, column by column, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Inspector, inspect, text

import moot
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.infrastructure import migrations
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import Base

FOUR_TABLES = {"research_sessions", "node_executions", "llm_call_logs", "external_api_call_logs"}
ALL_TABLES = FOUR_TABLES | {
    "llm_configs",
    "llm_spending",
    "rate_limits",
    "web_search_cache",
    "audit_chain",
    "audit_heads",
    "api_keys",
    "console_logins",
    "session_answers",
    "session_events",
    "texts",
    "rulesets",
    "ruleset_activations",
    "decisions",
    "escalations",
    "conversations",
    "watched_symbols",
    "batches",
    "schedules",
    "schedule_runs",
    "notify_destinations",
    "notify_outbox",
    "alembic_version",
}

# How each database spells the types below.
SPELLINGS = {
    "sqlite": {"UUID": "CHAR(32)", "JSONB": "JSON", "TIMESTAMP": "DATETIME"},
    "postgresql": {"FLOAT": "DOUBLE PRECISION"},
}

SESSIONS = """
    id UUID
    symbol VARCHAR(20)
    status VARCHAR(20)
    selected_experts JSONB
    options JSONB
    trigger_source VARCHAR(50)
    created_at TIMESTAMP
    completed_at TIMESTAMP null
    duration_ms INTEGER null
"""
SESSIONS_ALSO = """
    workspace_id VARCHAR(64)
    as_of TIMESTAMP
    locale VARCHAR(10)
    verdict_status VARCHAR(20) null
    verdict_action VARCHAR(10) null
    reason TEXT null
    audit_gaps INTEGER
    retry_count INTEGER
    parent_session_id UUID null
    batch_id UUID null
    lease_owner VARCHAR(100) null
    lease_token BIGINT
    lease_expires_at TIMESTAMP null
    question JSONB null
    idempotency_key VARCHAR(255) null
    request_digest VARCHAR(64) null
    begun INTEGER
    cancel_requested BOOLEAN
    requested_by VARCHAR(100) null
"""
NODES = """
    id UUID
    session_id UUID
    node_type VARCHAR(50)
    status VARCHAR(20)
    result_data JSONB null
    narrative_report TEXT null
    error_type VARCHAR(100) null
    error_message TEXT null
    started_at TIMESTAMP
    completed_at TIMESTAMP null
    duration_ms INTEGER null
"""
NODES_ALSO = """
    attempts INTEGER
    reused BOOLEAN
    evidence JSONB
"""
LLM_CALLS = """
    id UUID
    session_id UUID null
    caller_module VARCHAR(50)
    caller_agent VARCHAR(50) null
    model_name VARCHAR(100)
    vendor VARCHAR(50)
    prompt_text TEXT
    system_message TEXT null
    completion_text TEXT null
    prompt_tokens INTEGER null
    completion_tokens INTEGER null
    total_tokens INTEGER null
    temperature FLOAT
    latency_ms INTEGER null
    status VARCHAR(20)
    error_message TEXT null
    created_at TIMESTAMP
"""
API_CALLS = """
    id UUID
    session_id UUID null
    service_name VARCHAR(50)
    operation VARCHAR(100)
    request_params JSONB
    response_data TEXT null
    status_code INTEGER null
    latency_ms INTEGER null
    status VARCHAR(20)
    error_message TEXT null
    created_at TIMESTAMP
"""
LOGS_ALSO = """
    workspace_id VARCHAR(64)
    cost FLOAT null
    attempt INTEGER
    request_digest VARCHAR(64) null
    origin VARCHAR(10)
"""
LLM_CALLS_ALSO = """
    alias VARCHAR(64) null
    reasoning_text TEXT null
    tool_calls JSONB null
    finish_reason VARCHAR(50) null
    ordinal INTEGER
"""


class Schema:
    """What a database holds, as its own catalogue tells it."""

    def __init__(self, inspector: Inspector) -> None:
        self._spellings = SPELLINGS[inspector.dialect.name]
        self.tables = set(inspector.get_table_names())
        self._columns = {table: inspector.get_columns(table) for table in self.tables}
        self.indexes = {
            index["name"]: (table, index["column_names"])
            for table in self.tables
            for index in inspector.get_indexes(table)
            if "duplicates_constraint" not in index
        }
        self.foreign_keys = {
            (table, *key["constrained_columns"], key["referred_table"], *key["referred_columns"])
            for table in self.tables
            for key in inspector.get_foreign_keys(table)
        }
        self.primary_keys = {
            table: inspector.get_pk_constraint(table)["constrained_columns"] for table in self.tables
        }

    def columns(self, table: str) -> set[tuple[str, str, bool]]:
        return {(c["name"], str(c["type"]), bool(c["nullable"])) for c in self._columns[table]}

    def expected(self, *listings: str) -> set[tuple[str, str, bool]]:
        lines = [line.split() for listing in listings for line in listing.strip().splitlines()]
        return {(name, self._spellings.get(kind, kind), null == ["null"]) for name, kind, *null in lines}

    def defaults(self, table: str) -> dict[str, str]:
        found = {c["name"]: c["default"] for c in self._columns[table]}
        return {name: default.split("::")[0].strip("'") for name, default in found.items() if default}


async def schema_of(database: Database) -> Schema:
    async with database.session() as db:
        return await db.run_sync(lambda sync: Schema(inspect(sync.connection())))


async def tables_of(database: Database) -> set[str]:
    return (await schema_of(database)).tables


@pytest.fixture
async def sqlite_database(empty_sqlite_url: str) -> AsyncIterator[Database]:
    """Without the tables of the engine."""
    database = Database(empty_sqlite_url)
    await database.upgrade()
    yield database
    await database.close()


@pytest.fixture
async def empty(empty_url: str) -> AsyncIterator[Database]:
    database = Database(empty_url)
    yield database
    await database.close()


class TestTables:
    @pytest.fixture
    async def schema(self, database: Database) -> Schema:
        return await schema_of(database)

    @pytest.mark.accepts("A2-17")
    def test_research_sessions(self, schema: Schema) -> None:
        assert schema.columns("research_sessions") == schema.expected(SESSIONS, SESSIONS_ALSO)
        assert schema.primary_keys["research_sessions"] == ["id"]

    @pytest.mark.accepts("A2-18")
    def test_node_executions(self, schema: Schema) -> None:
        assert schema.columns("node_executions") == schema.expected(NODES, NODES_ALSO)
        assert schema.primary_keys["node_executions"] == ["id"]

    @pytest.mark.accepts("A2-18")
    def test_foreign_keys(self, schema: Schema) -> None:
        assert schema.foreign_keys == {
            ("node_executions", "session_id", "research_sessions", "id"),
            ("research_sessions", "parent_session_id", "research_sessions", "id"),
            ("ruleset_activations", "ruleset_id", "rulesets", "id"),
            ("escalations", "decision_row_id", "decisions", "id"),
            ("schedule_runs", "schedule_id", "schedules", "id"),
        }

    @pytest.mark.accepts("A2-19")
    def test_llm_call_logs(self, schema: Schema) -> None:
        assert schema.columns("llm_call_logs") == schema.expected(LLM_CALLS, LOGS_ALSO, LLM_CALLS_ALSO)
        assert schema.primary_keys["llm_call_logs"] == ["id"]

    @pytest.mark.accepts("A2-20")
    def test_external_api_call_logs(self, schema: Schema) -> None:
        assert schema.columns("external_api_call_logs") == schema.expected(API_CALLS, LOGS_ALSO)
        assert schema.primary_keys["external_api_call_logs"] == ["id"]

    @pytest.mark.accepts("A2-21")
    def test_large_fields_are_text(self, schema: Schema) -> None:
        large = {
            ("llm_call_logs", "prompt_text"),
            ("llm_call_logs", "system_message"),
            ("llm_call_logs", "completion_text"),
            ("external_api_call_logs", "response_data"),
            ("node_executions", "narrative_report"),
        }
        text_columns = {
            (table, name) for table, _ in large for name, kind, _ in schema.columns(table) if kind == "TEXT"
        }
        assert large <= text_columns

    def test_defaults_of_what_older_writers_do_not_know(self, schema: Schema) -> None:
        no = schema.defaults("node_executions")["reused"]
        assert schema.defaults("research_sessions") == {
            "workspace_id": "default",
            "audit_gaps": "0",
            "retry_count": "0",
            "lease_token": "0",
            "begun": "0",
            "cancel_requested": no,
        }
        assert schema.defaults("node_executions") in (
            {"attempts": "1", "reused": "0"},
            {"attempts": "1", "reused": "false"},
        )
        call = {"workspace_id": "default", "attempt": "1", "origin": "live"}
        assert schema.defaults("llm_call_logs") == {**call, "ordinal": "0"}
        assert schema.defaults("external_api_call_logs") == call

    @pytest.mark.accepts("A2-22", "A2-23", "A2-24", "A2-25")
    def test_indexes(self, schema: Schema) -> None:
        assert schema.indexes == {
            "ix_schedules_next_due": ("schedules", ["next_due"]),
            "ix_schedule_runs_schedule_id_due_at": ("schedule_runs", ["schedule_id", "due_at"]),
            "ix_schedule_runs_status": ("schedule_runs", ["status"]),
            "ix_console_logins_expires_at": ("console_logins", ["expires_at"]),
            "ix_notify_outbox_status_due_at": ("notify_outbox", ["status", "due_at"]),
            "ix_notify_outbox_workspace_id_destination_id_status": (
                "notify_outbox",
                ["workspace_id", "destination_id", "status"],
            ),
            "ix_research_sessions_batch_id": ("research_sessions", ["batch_id"]),
            "ix_batches_ended_at_status": ("batches", ["ended_at", "status"]),
            "ix_batches_workspace_id_created_at_id": ("batches", ["workspace_id", "created_at", "id"]),
            "ix_batches_workspace_id_name_created_at": ("batches", ["workspace_id", "name", "created_at"]),
            "ix_research_sessions_symbol_created_at": ("research_sessions", ["symbol", "created_at"]),
            "ix_research_sessions_workspace_id_created_at_id": (
                "research_sessions",
                ["workspace_id", "created_at", "id"],
            ),
            **{
                f"ix_research_sessions_workspace_id_{name}_created_at_id": (
                    "research_sessions",
                    ["workspace_id", name, "created_at", "id"],
                )
                for name in ("symbol", "status", "verdict_action", "trigger_source")
            },
            "ix_research_sessions_parent_session_id_created_at_id": (
                "research_sessions",
                ["parent_session_id", "created_at", "id"],
            ),
            "ix_research_sessions_workspace_id_idempotency_key": (
                "research_sessions",
                ["workspace_id", "idempotency_key"],
            ),
            "ix_research_sessions_status_lease_expires_at": (
                "research_sessions",
                ["status", "lease_expires_at"],
            ),
            "ix_node_executions_session_id": ("node_executions", ["session_id"]),
            "ix_session_answers_session_id": ("session_answers", ["session_id"]),
            "ix_audit_heads_ledger": ("audit_heads", ["ledger"]),
            "ix_llm_call_logs_session_id_created_at": ("llm_call_logs", ["session_id", "created_at"]),
            "ix_external_api_call_logs_session_id_created_at": (
                "external_api_call_logs",
                ["session_id", "created_at"],
            ),
            "ix_llm_call_logs_created_at": ("llm_call_logs", ["created_at"]),
            "ix_web_search_cache_expires_at": ("web_search_cache", ["expires_at"]),
            "ix_rulesets_workspace_id_number": ("rulesets", ["workspace_id", "number"]),
            "ix_rulesets_workspace_id_digest": ("rulesets", ["workspace_id", "digest"]),
            "ix_ruleset_activations_workspace_id_sequence": (
                "ruleset_activations",
                ["workspace_id", "sequence"],
            ),
            "ix_decisions_session_id_decided_at": ("decisions", ["session_id", "decided_at"]),
            "ix_decisions_workspace_id_decided_at_id": ("decisions", ["workspace_id", "decided_at", "id"]),
            "ix_decisions_workspace_id_status_decided_at": (
                "decisions",
                ["workspace_id", "status", "decided_at"],
            ),
            "ix_escalations_workspace_id_status_requested_at": (
                "escalations",
                ["workspace_id", "status", "requested_at"],
            ),
            "ix_escalations_session_id": ("escalations", ["session_id"]),
            "ix_conversations_workspace_id_updated_at": ("conversations", ["workspace_id", "updated_at"]),
        }

    async def test_moments_keep_their_time_zone_in_postgres(self, postgres_database: Database) -> None:
        kinds = "SELECT DISTINCT data_type FROM information_schema.columns WHERE column_name LIKE '%\\_at'"
        async with postgres_database.session() as db:
            assert set(await db.scalars(text(f"{kinds} AND table_schema = 'public'"))) == {
                "timestamp with time zone"
            }

    async def test_listing_a_workspace_reads_an_index_in_order(self, sqlite_database: Database) -> None:
        plan = (
            "EXPLAIN QUERY PLAN SELECT * FROM research_sessions WHERE workspace_id = 'desk' "
            "ORDER BY created_at DESC, id DESC LIMIT 20"
        )
        async with sqlite_database.session() as db:
            steps = [row.detail for row in await db.execute(text(plan))]
        index = "ix_research_sessions_workspace_id_created_at_id"
        assert steps == [f"SEARCH research_sessions USING INDEX {index} (workspace_id=?)"]


class TestRevisions:
    def test_are_one_line_in_the_order_of_their_numbers(self) -> None:
        scripts = ScriptDirectory(str(migrations.FOLDER))
        newest_first = [script.revision for script in scripts.walk_revisions()]
        assert migrations.revisions() == newest_first[::-1]
        assert scripts.get_heads() == [migrations.revisions()[-1]]

    async def test_create_exactly_what_the_models_declare(self, database: Database) -> None:
        _import_all_models()
        async with database.session() as db:
            differences = await db.run_sync(lambda sync: _differences(sync.connection()))
        assert differences == []

    @pytest.mark.accepts("A2-38")
    async def test_the_first_adds_the_four_tables_and_touches_no_other(self, empty: Database) -> None:
        async with empty.session() as db, db.begin():
            await db.execute(text("CREATE TABLE theirs (x INTEGER)"))
            await db.execute(text("INSERT INTO theirs VALUES (1)"))
        await empty.upgrade()
        assert migrations.revisions()[0] == "0001"
        assert await tables_of(empty) == ALL_TABLES | {"theirs"}
        assert FOUR_TABLES < ALL_TABLES

        await empty.downgrade("base")
        assert await tables_of(empty) == {"theirs", "alembic_version"}
        async with empty.session() as db:
            assert (await db.execute(text("SELECT * FROM theirs"))).all() == [(1,)]

    @pytest.mark.accepts("A2-39")
    async def test_go_down_to_nothing_and_up_again(self, empty: Database) -> None:
        await empty.upgrade()
        schema = await schema_of(empty)
        await empty.downgrade("base")
        assert await tables_of(empty) == {"alembic_version"}
        assert await empty.current() is None

        await empty.upgrade()
        assert (await schema_of(empty)).indexes == schema.indexes
        assert await empty.current() == empty.head()

    async def test_that_fail_leave_nothing_behind(self, empty: Database) -> None:
        async with empty.session() as db, db.begin():
            await db.execute(text("CREATE TABLE llm_call_logs (x INTEGER)"))
        with pytest.raises(Unavailable, match=r"llm_call_logs.* already exists"):
            await empty.upgrade()
        assert await tables_of(empty) == {"llm_call_logs"}

    async def test_several_at_once_make_one_schema(self, empty_url: str) -> None:
        databases = [Database(empty_url) for _ in range(4)]
        upgrades = (database.upgrade() for database in databases)
        assert await asyncio.gather(*upgrades, return_exceptions=True) == [None] * 4

        assert [await database.current() for database in databases] == [databases[0].head()] * 4
        assert await tables_of(databases[0]) == ALL_TABLES
        for database in databases:
            await database.close()

    async def test_wait_for_another_process_that_migrates(self, empty: Database, empty_url: str) -> None:
        theirs = Database(empty_url)
        async with theirs.session() as other:
            await other.execute(text(migrations.DATABASE_LOCKS[other.get_bind().dialect.name]))
            waiting = asyncio.create_task(empty.upgrade())
            await asyncio.sleep(0.3)
            assert not waiting.done()
        await waiting
        assert await empty.current() == empty.head()
        await theirs.close()

    async def test_run_for_two_databases_at_once_each_in_its_own(
        self, empty_sqlite_url: str, empty_postgres_url: str
    ) -> None:
        databases = [Database(empty_sqlite_url), Database(empty_postgres_url)]
        upgrades = (database.upgrade() for database in databases)
        assert await asyncio.gather(*upgrades, return_exceptions=True) == [None, None]
        for database in databases:
            assert await tables_of(database) == ALL_TABLES
            await database.close()

    async def test_an_unknown_one_is_refused(self, database: Database) -> None:
        with pytest.raises(InvalidInput, match=r"There is no revision 9999. Known are base, 0001"):
            await database.downgrade("9999")


class TestPrepare:
    async def test_migrates_an_sqlite_file(self, empty_sqlite_url: str) -> None:
        database = Database(empty_sqlite_url)
        assert await database.current() != database.head()
        await database.prepare()
        assert await database.current() == database.head()
        await database.prepare()
        await database.close()

    async def test_asks_for_the_migration_of_postgres(self, empty_postgres_url: str) -> None:
        database = Database(empty_postgres_url)
        with pytest.raises(Unavailable, match="Run: moot db upgrade") as outdated:
            await database.prepare()
        assert outdated.value.code == "DATABASE_OUTDATED"
        assert await tables_of(database) == set()

        await database.upgrade()
        await database.prepare()
        await database.close()

    async def test_refuses_the_database_of_a_newer_moot(self, database: Database) -> None:
        async with database.session() as db, db.begin():
            await db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(Unavailable, match="revision 9999, made by a newer Moot") as newer:
            await database.prepare()
        assert newer.value.code == "DATABASE_NEWER"


def _import_all_models() -> None:
    source = Path(moot.__path__[0])
    for file in source.rglob("*.py"):
        if "Base):" in file.read_text(encoding="utf-8"):
            import_module(".".join(("moot", *file.relative_to(source).with_suffix("").parts)))


def _differences(connection: Connection) -> list[Any]:
    options = {"compare_type": True, "compare_server_default": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata))


@pytest.mark.parametrize("said", ["'of another day'", "NULL"])
async def test_tables_of_another_build_of_the_same_revision_are_refused_and_told_of(database, said):
    """As those of a home that was made before its release."""
    await database.prepare()
    await database.write(lambda db: db.execute(text(f"UPDATE alembic_version SET build = {said}")))
    with pytest.raises(Unavailable, match="another build of revision") as refused:
        await database.prepare()
    assert refused.value.code == "DATABASE_OTHER_BUILD"
    await database.write(lambda db: db.execute(text("ALTER TABLE alembic_version DROP COLUMN build")))
    later = Database(database.safe_url)
    with pytest.raises(Unavailable, match="moot db upgrade"):
        await later.prepare()
    await later.close()
