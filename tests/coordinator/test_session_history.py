"""Looking back: every way to look through the history, the answer of a past session, and its report as a page."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text, update

from moot.modules.coordinator.application.report import spending
from moot.modules.coordinator.application.report_words import Wording
from moot.modules.coordinator.application.results import past_result
from moot.modules.coordinator.application.session_history import SessionFilter, SessionHistory, SessionQuery
from moot.modules.coordinator.domain.dtos.research_dtos import ModelUsage
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.shared.domain.errors import Conflict, InvalidInput
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from tests.coordinator.test_session_repository import DESK, NOON, a_node, a_session
from tests.fakes.coordinator import MACRO, TECHNICAL


@pytest.fixture
def trail(database: Database) -> AuditTrail:
    return AuditTrail(database)


@pytest.fixture
def repository(trail: AuditTrail) -> SqlResearchSessionRepository:
    return SqlResearchSessionRepository(trail)


class TestAList:
    @pytest.mark.accepts("A2-28")
    async def test_filters_by_each_condition_and_by_all_of_them(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        judged = {"status": "completed", "verdict_status": "judged"}
        kept = {
            "buy": a_session(**judged, verdict_action="BUY"),
            "hold": a_session(**judged, verdict_action="HOLD", trigger_source="cli"),
            "failed": a_session(status="failed", verdict_status="failed", trigger_source="cli"),
            "running": a_session(symbol="900002.DEMO"),
            "theirs": a_session(**judged, verdict_action="BUY", workspace_id="another"),
        }
        for minute, session in enumerate(kept.values()):
            await repository.save_session(
                session.model_copy(update={"created_at": NOON + timedelta(minutes=minute)})
            )
        names = {session.id: name for name, session in kept.items()}

        async def found(**conditions: Any) -> list[str]:
            page = await repository.list_sessions(SessionFilter(workspace_id=DESK, **conditions))
            assert page.total == len(page.items)
            return [names[item.id] for item in page.items]

        assert await found() == ["running", "failed", "hold", "buy"]
        assert await found(status="completed") == ["hold", "buy"]
        assert await found(status="cancelled") == []
        assert await found(verdict_action="BUY") == ["buy"]
        assert await found(trigger_source="cli") == ["failed", "hold"]
        assert await found(symbol="900002.DEMO") == ["running"]
        assert await found(status="completed", trigger_source="cli", symbol="900001.DEMO") == ["hold"]
        after = NOON + timedelta(minutes=1)
        assert await found(status="completed", created_from=after) == ["hold"]

    async def test_skips_sessions_where_no_page_begins(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        for minute in range(5):
            await repository.save_session(a_session(created_at=NOON + timedelta(minutes=minute)))

        page = await repository.list_sessions(SessionFilter(workspace_id=DESK, skip=3, page_size=2))
        assert [item.created_at.minute for item in page.items] == [1, 0]
        assert (page.total, page.page, page.page_size) == (5, 2, 2)

    @pytest.mark.parametrize(
        ("column", "index", "key"),
        [
            *(
                (name, f"workspace_id_{name}_created_at_id", f"workspace_id=? AND {name}=?")
                for name in ("status", "verdict_action", "trigger_source")
            ),
            ("parent_session_id", "parent_session_id_created_at_id", "parent_session_id=?"),
        ],
    )
    async def test_reads_an_index_in_order_for_every_filter(
        self, sqlite_database: Database, column: str, index: str, key: str
    ) -> None:
        plan = (
            "EXPLAIN QUERY PLAN SELECT * FROM research_sessions "
            f"WHERE workspace_id = 'desk' AND {column} = 'x' ORDER BY created_at DESC, id DESC LIMIT 20"
        )
        async with sqlite_database.session() as db:
            steps = [row.detail for row in await db.execute(text(plan))]
        assert steps == [f"SEARCH research_sessions USING INDEX ix_research_sessions_{index} ({key})"]


class TestAQuery:
    def test_means_whole_days_in_utc(self) -> None:
        asked = validate(SessionQuery, {"start_date": "2026-06-29", "end_date": "2026-06-30"})
        wanted = asked.of(DESK)
        assert wanted.created_from == datetime(2026, 6, 29, tzinfo=UTC)
        assert wanted.created_before == datetime(2026, 7, 1, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("moment", "meant"),
        [
            ("2026-06-30", datetime(2026, 6, 30, tzinfo=UTC)),
            ("2026-06-30T08:00:00+08:00", datetime(2026, 6, 30, tzinfo=UTC)),
            ("2026-06-30T01:02:03Z", datetime(2026, 6, 30, 1, 2, 3, tzinfo=UTC)),
        ],
    )
    def test_takes_moments_and_counts_too(self, moment: str, meant: datetime) -> None:
        asked = validate(SessionQuery, {"created_after": moment, "skip": 7, "limit": 5})
        assert asked.of(DESK) == SessionFilter(
            workspace_id=DESK, created_from=meant, skip=7, page=1, page_size=5
        )

    def test_on_the_last_day_there_is_stays_within_the_calendar(self) -> None:
        wanted = validate(SessionQuery, {"end_date": date(2199, 12, 31)}).of(DESK)
        assert wanted.created_before == datetime(2200, 1, 1, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("asked", "sentence"),
        [
            ({"page": 1, "skip": 0}, "skip: give either skip or page, not both."),
            ({"page_size": 1, "limit": 1}, "limit: give either limit or page_size, not both."),
            (
                {"start_date": "2026-06-30", "created_after": "2026-06-30"},
                "created_after: give either created_after or start_date, not both.",
            ),
            (
                {"start_date": "2026-06-30", "end_date": "2026-06-29"},
                "end_date: the period ends before it begins.",
            ),
            (
                {"created_after": "2026-06-30", "created_before": "2026-06-30"},
                "created_before: the period ends before it begins.",
            ),
        ],
    )
    def test_that_contradicts_itself_is_refused(self, asked: dict[str, Any], sentence: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            validate(SessionQuery, asked).of(DESK)
        assert refused.value.in_locale("en-US") == sentence


class TestTheRecord:
    async def test_vouches_for_the_verdict(
        self, trail: AuditTrail, repository: SqlResearchSessionRepository, database: Database
    ) -> None:
        session = a_session()
        await repository.save_session(session)
        ended = {"status": "completed", "verdict_status": "judged", "verdict_action": "SELL"}
        await repository.update_session(session.model_copy(update=ended))
        stored = await repository.get_session_by_id(session.id, DESK)
        assert stored is not None
        assert stored.verdict_action == "SELL"
        assert (await verify(trail, session.id)).intact

        async with database.session() as db, db.begin():
            await db.execute(update(ResearchSessionRow).values(verdict_action="BUY"))
        tampered = await verify(trail, session.id)
        assert tampered.first_break is not None
        assert (tampered.first_break.seq, tampered.first_break.problem) == (2, "changed")


class TestASession:
    async def test_names_those_that_retried_it_oldest_first(
        self, repository: SqlResearchSessionRepository
    ) -> None:
        first = a_session()
        retries = [
            a_session(parent_session_id=first.id, retry_count=1, created_at=NOON + timedelta(minutes=m))
            for m in (1, 2)
        ]
        theirs = a_session(parent_session_id=first.id, workspace_id="another")
        for session in (first, *retries, theirs):
            await repository.save_session(session)

        history = SessionHistory(repository)
        assert (await history.session(first.id, DESK)).retries == [retry.id for retry in retries]
        child = await history.session(retries[0].id, DESK)
        assert (child.parent_session_id, child.retries) == (first.id, [])

    async def test_that_is_running_has_no_result_yet(self, repository: SqlResearchSessionRepository) -> None:
        session = a_session()
        await repository.save_session(session)
        with pytest.raises(Conflict, match="still running") as running:
            await SessionHistory(repository).result(session.id, DESK)
        assert running.value.code == "SESSION_RUNNING"


class TestAPastResult:
    def test_of_a_cancelled_session_says_what_is_missing(self) -> None:
        session = a_session(
            status="cancelled",
            selected_experts=[TECHNICAL, MACRO],
            verdict_status="failed",
            reason="The run was cancelled.",
            locale="en-US",
        )
        evidence = [{"id": "technical.rsi", "value": 50}]
        said = a_node(session.id, node_type=TECHNICAL, result_data={"signal": "BULLISH"}, evidence=evidence)
        result = past_result(session, [said], [], "")

        assert (result.overall_status, result.verdict, result.verdict_status) == ("partial", None, "failed")
        heard, missing = result.expert_results.values()
        assert heard.data == {"signal": "BULLISH", "evidence": evidence}
        assert (missing.status, missing.data) == ("failed", None)
        assert missing.error is not None
        assert missing.error.startswith("There is no result on record")

    def test_of_a_retry_holds_what_it_reused(self) -> None:
        session = a_session(status="completed", selected_experts=[MACRO], verdict_status="judged")
        nodes = [
            a_node(session.id, node_type=TECHNICAL, result_data={"n": 1}, reused=True),
            a_node(session.id, node_type=MACRO, result_data={"n": 2}),
            a_node(session.id, node_type="debate", status="failed", error_message="down"),
            a_node(session.id, node_type="judge", status="skipped"),
        ]
        result = past_result(session, nodes, [], "")
        assert [item.expert_type for item in result.expert_results.values()] == [TECHNICAL, MACRO]
        assert (result.debate_outcome, result.verdict) == (None, None)

    def test_costs_what_its_live_calls_did(self) -> None:
        def call(**changes: Any) -> dict[str, Any]:
            return {"origin": "live", "status": "success", "total_tokens": 10, "cost": 0.5, **changes}

        failed = call(status="failed", total_tokens=None, cost=None)
        replayed = call(origin="record", cost=None)

        def usage(*calls: dict[str, Any]) -> ModelUsage:
            return past_result(a_session(status="completed"), [], calls, "CNY").usage

        assert usage(call(), failed, replayed) == ModelUsage(requests=2, tokens=10, cost=0.5, currency="CNY")
        assert usage(call(), call(cost=None)).cost is None

    @pytest.mark.parametrize(
        ("tokens", "why"),
        [
            (10, "unknown, a model has no price"),
            (None, "unknown, a model did not say how many tokens it used"),
        ],
    )
    def test_says_why_nobody_knows_what_it_cost(self, tokens: int | None, why: str) -> None:
        call = {"origin": "live", "status": "success", "total_tokens": tokens, "cost": None}
        result = past_result(a_session(status="completed"), [], [call], "CNY")
        assert spending(result, Wording("en-US")).endswith(f"cost: {why}.")


async def test_a_session_nobody_knows_has_no_retries_to_look_for(
    repository: SqlResearchSessionRepository,
) -> None:
    page = await repository.list_sessions(SessionFilter(workspace_id=DESK, parent_session_id=uuid4()))
    assert page.total == 0
