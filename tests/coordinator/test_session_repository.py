"""Sessions and nodes come back as they were stored, on both databases."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, text, update

from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionFilter,
)
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database

NOON = datetime(2026, 6, 30, 12, 0, 0, 123456, tzinfo=UTC)
DESK = "desk"


def a_session(**changes: Any) -> ResearchSession:
    facts: dict[str, Any] = {
        "id": uuid4(),
        "symbol": "900001.DEMO",
        "status": "running",
        "selected_experts": ["technical_analyst"],
        "options": {},
        "trigger_source": "api",
        "workspace_id": DESK,
        "as_of": NOON,
        "created_at": NOON,
    }
    return ResearchSession(**(facts | changes))


def a_node(session_id: UUID, **changes: Any) -> NodeExecution:
    facts: dict[str, Any] = {
        "id": uuid4(),
        "session_id": session_id,
        "node_type": "technical_analyst",
        "status": "success",
        "started_at": NOON,
    }
    return NodeExecution(**(facts | changes))


@pytest.fixture
def repository(database: Database) -> SqlResearchSessionRepository:
    return SqlResearchSessionRepository(AuditTrail(database))


class TestASession:
    async def test_comes_back_with_every_field(self, repository: SqlResearchSessionRepository) -> None:
        parent = a_session()
        session = a_session(
            status="partial",
            selected_experts=["technical_analyst", "valuation_modeler"],
            options={"technical_analyst": {"analysis_date": "2026-06-29"}, "说明": {"行业": "白酒"}},
            trigger_source="scheduler",
            locale="en-US",
            verdict_status="abstained",
            reason="one expert of two answered",
            audit_gaps=2,
            retry_count=1,
            parent_session_id=parent.id,
            completed_at=NOON + timedelta(seconds=3),
            duration_ms=3000,
        )
        await repository.save_session(parent)
        await repository.save_session(session)

        assert await repository.get_session_by_id(session.id, DESK) == session

    async def test_is_invisible_from_another_workspace(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        session = a_session()
        await repository.save_session(session)

        assert await repository.get_session_by_id(session.id, "another") is None

    async def test_is_found_by_the_range_its_id_is_in(self, repository: SqlResearchSessionRepository) -> None:
        ids = [UUID(f"{start}{'0' * (32 - len(start))}") for start in ("00", "ab0", "abf", "ac", "ff")]
        for session_id in ids:
            await repository.save_session(a_session(id=session_id))
        for low, high, found in (("ab", "abffffff", ids[1:3]), ("0", "f" * 32, ids), ("ad", "ae", [])):
            between = (UUID(low.ljust(32, "0")), UUID(high.ljust(32, "f")))
            page = await repository.list_sessions(SessionFilter(workspace_id=DESK, ids=between))
            assert sorted(session.id for session in page.items) == found

    async def test_nobody_stored_is_none(self, repository: SqlResearchSessionRepository) -> None:
        assert await repository.get_session_by_id(uuid4(), DESK) is None

    async def test_is_stored_once(self, repository: SqlResearchSessionRepository) -> None:
        session = a_session()
        await repository.save_session(session)

        with pytest.raises(Unavailable) as refused:
            await repository.save_session(session)
        assert refused.value.code == "STORE_FAILED"
        assert session.symbol not in str(refused.value)

    @pytest.mark.accepts("W24")
    async def test_a_moment_in_another_time_zone_comes_back_in_utc(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        shanghai = datetime.fromisoformat("2026-06-30T20:00:00.123456+08:00")
        session = a_session(as_of=shanghai)
        await repository.save_session(session)

        stored = await repository.get_session_by_id(session.id, DESK)
        assert stored is not None
        assert stored.as_of.isoformat() == "2026-06-30T12:00:00.123456+00:00"


class TestAnUpdate:
    async def test_stores_the_state_a_session_has_reached(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        reached = session.model_copy(
            update={
                "status": "completed",
                "verdict_status": "judged",
                "audit_gaps": 1,
                "completed_at": NOON + timedelta(seconds=1),
                "duration_ms": 1000,
            }
        )
        await repository.update_session(reached)

        assert await repository.get_session_by_id(session.id, DESK) == reached

    async def test_inserts_a_session_whose_first_insert_had_failed(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        never_saved = a_session(status="completed", audit_gaps=1, options={"technical_analyst": {"limit": 3}})
        await repository.update_session(never_saved)

        assert await repository.get_session_by_id(never_saved.id, DESK) == never_saved

    async def test_leaves_workspace_and_creation_alone(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        moved = session.model_copy(
            update={"workspace_id": "another", "created_at": NOON + timedelta(days=1), "status": "failed"}
        )
        await repository.update_session(moved)

        assert await repository.get_session_by_id(session.id, "another") is None
        assert await repository.get_session_by_id(session.id, DESK) == session.model_copy(
            update={"status": "failed"}
        )

    async def test_leaves_the_lease_alone(
        self, repository: SqlResearchSessionRepository, database: Database
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        lease = update(ResearchSessionRow).values(
            lease_owner="worker-1", lease_token=7, lease_expires_at=NOON
        )
        async with database.session() as db, db.begin():
            await db.execute(lease)
        await repository.update_session(session.model_copy(update={"status": "completed"}))

        async with database.session() as db:
            row = (await db.scalars(select(ResearchSessionRow))).one()
        assert (row.status, row.lease_owner, row.lease_token, row.lease_expires_at) == (
            "completed",
            "worker-1",
            7,
            NOON,
        )


class TestNodes:
    async def test_a_node_comes_back_with_every_field(self, repository: SqlResearchSessionRepository) -> None:
        session = a_session()
        node = a_node(
            session.id,
            node_type="valuation_modeler",
            status="failed",
            result_data={"verdict": "Fair", "range": {"lower": 1.5}, "说明": ["合理"]},
            narrative_report="估值处于合理区间。" * 500,
            error_type="TimeoutError",
            error_message="took longer than 60 s",
            attempts=3,
            reused=True,
            evidence=[{"id": "pe_ttm", "value": 21.4, "unit": None}],
            completed_at=NOON + timedelta(milliseconds=250),
            duration_ms=250,
        )
        await repository.save_session(session)
        await repository.save_node_execution(node)

        assert await repository.get_node_executions_by_session(session.id) == [node]

    async def test_a_node_without_a_result_has_none(
        self, repository: SqlResearchSessionRepository, database: Database
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        await repository.save_node_execution(a_node(session.id, status="skipped"))

        async with database.session() as db:
            nulls = await db.scalar(text("SELECT count(*) FROM node_executions WHERE result_data IS NULL"))
        assert nulls == 1

    async def test_come_in_the_order_in_which_they_started(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        for seconds, node_type in [
            (2, "judge"),
            (0, "technical_analyst"),
            (1, "debate"),
            (0, "catalyst_detective"),
        ]:
            started = NOON + timedelta(seconds=seconds)
            await repository.save_node_execution(a_node(session.id, node_type=node_type, started_at=started))

        nodes = await repository.get_node_executions_by_session(session.id)
        assert [node.node_type for node in nodes] == [
            "catalyst_detective",
            "technical_analyst",
            "debate",
            "judge",
        ]

    async def test_of_another_session_stay_there(self, repository: SqlResearchSessionRepository) -> None:
        session = a_session()
        await repository.save_session(session)
        await repository.save_node_execution(a_node(session.id))

        assert await repository.get_node_executions_by_session(uuid4()) == []

    async def test_a_node_of_no_session_is_refused(self, repository: SqlResearchSessionRepository) -> None:
        with pytest.raises(Unavailable):
            await repository.save_node_execution(a_node(uuid4()))

    async def test_numbers_json_cannot_say_become_null(
        self, repository: SqlResearchSessionRepository, database: Database
    ) -> None:
        session = a_session()
        node = a_node(
            session.id,
            result_data={"rsi": math.nan, "levels": [math.inf, {"stop": -math.inf, "target": 12.5}]},
            evidence=[{"id": "atr", "value": math.nan}],
        )
        await repository.save_session(session)
        await repository.save_node_execution(node)

        (stored,) = await repository.get_node_executions_by_session(session.id)
        assert stored.result_data == {"rsi": None, "levels": [None, {"stop": None, "target": 12.5}]}
        assert stored.evidence == [{"id": "atr", "value": None}]

    @pytest.mark.accepts("W5")
    async def test_twenty_parallel_writes_all_arrive(self, repository: SqlResearchSessionRepository) -> None:
        session = a_session()
        await repository.save_session(session)
        nodes = [a_node(session.id, node_type=f"expert_{n:02}") for n in range(20)]
        await asyncio.gather(*(repository.save_node_execution(node) for node in nodes))

        assert await repository.get_node_executions_by_session(session.id) == nodes

    async def test_a_failed_write_takes_no_other_with_it(
        self, repository: SqlResearchSessionRepository, database: Database
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        good = [a_node(session.id) for _ in range(5)]
        bad = a_node(uuid4())
        outcomes = await asyncio.gather(
            *(repository.save_node_execution(node) for node in [*good, bad]), return_exceptions=True
        )

        assert [type(outcome) for outcome in outcomes] == [type(None)] * 5 + [Unavailable]
        async with database.session() as db:
            assert set(await db.scalars(select(NodeExecutionRow.id))) == {node.id for node in good}


class TestAList:
    async def test_is_newest_first_with_the_total_of_all_pages(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        sessions = [a_session(created_at=NOON + timedelta(minutes=n)) for n in (3, 1, 5, 2, 4)]
        for session in sessions:
            await repository.save_session(session)

        pages = [
            await repository.list_sessions(SessionFilter(workspace_id=DESK, page=page, page_size=2))
            for page in (1, 2, 3, 4)
        ]
        minutes = [[item.created_at.minute for item in page.items] for page in pages]
        assert minutes == [[5, 4], [3, 2], [1], []]
        assert [(page.total, page.page, page.page_size) for page in pages] == [
            (5, n, 2) for n in (1, 2, 3, 4)
        ]

    async def test_sessions_of_the_same_moment_are_each_listed_once(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        sessions = [a_session() for _ in range(6)]
        for session in sessions:
            await repository.save_session(session)

        listed = []
        for page in (1, 2, 3):
            wanted = SessionFilter(workspace_id=DESK, symbol="900001.DEMO", page=page, page_size=2)
            listed += [item.id for item in (await repository.list_sessions(wanted)).items]
        assert listed == sorted((session.id for session in sessions), reverse=True)

    async def test_a_foreign_workspace_is_invisible(self, repository: SqlResearchSessionRepository) -> None:
        mine, theirs = a_session(), a_session(workspace_id="another")
        await repository.save_session(mine)
        await repository.save_session(theirs)

        page = await repository.list_sessions(SessionFilter(workspace_id=DESK))
        assert (page.total, page.items) == (1, [mine])

    async def test_filters_by_symbol_and_by_time(self, repository: SqlResearchSessionRepository) -> None:
        for symbol in ("900001.DEMO", "900002.DEMO"):
            for hour in range(4):
                await repository.save_session(
                    a_session(symbol=symbol, created_at=NOON + timedelta(hours=hour))
                )

        async def hours(**conditions: Any) -> list[tuple[str, int]]:
            page = await repository.list_sessions(SessionFilter(workspace_id=DESK, **conditions))
            assert page.total == len(page.items)
            return [(item.symbol[:6], item.created_at.hour) for item in page.items]

        one, three = NOON + timedelta(hours=1), NOON + timedelta(hours=3)
        assert await hours(symbol="900002.DEMO") == [("900002", h) for h in (15, 14, 13, 12)]
        assert await hours(symbol="900001.DEMO", created_from=one) == [("900001", h) for h in (15, 14, 13)]
        assert await hours(symbol="900001.DEMO", created_before=one) == [("900001", 12)]
        assert len(await hours(created_from=one, created_before=three)) == 4
        assert await hours(symbol="900003.DEMO") == []


async def test_without_its_tables_the_store_says_that_it_is_unavailable(database: Database) -> None:
    await database.downgrade("base")
    repository = SqlResearchSessionRepository(AuditTrail(database))

    with pytest.raises(Unavailable):
        await repository.save_session(a_session())
    with pytest.raises(Unavailable):
        await repository.update_session(a_session())
