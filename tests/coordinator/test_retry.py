"""A retry runs again what failed and nothing else; on both databases, with a real journal."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.results import past_result
from moot.modules.coordinator.domain.exceptions import (
    AllExpertsFailed,
    SessionNotFound,
    SessionNotRetryable,
    SessionRunning,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession, SessionFilter
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_execution_ctx
from tests.coordinator.test_session_repository import a_node, a_session
from tests.fakes.clock import PATIENCE, FixedClock, TickingClock
from tests.fakes.coordinator import (
    CATALYST,
    FINANCIAL,
    MACRO,
    TECHNICAL,
    VALUATION,
    Answer,
    FakeDebate,
    FakeJudge,
    FakeResearch,
    FakeSessions,
)

WORKSPACE = "default"
EVERYTHING = SessionFilter(workspace_id=WORKSPACE)
BARS = {"id": "technical.current_price", "value": 10.5}
DOWN = AppError("the provider is down")
CHARTED = {"signal": "BULLISH", "narrative_report": "the chart in words", "evidence": [BARS]}


class AskedJudge(FakeJudge):
    """Notes who counts as asked when the verdict is due."""

    asked: tuple[str, ...] = ()

    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        context = current_execution_ctx.get()
        assert context is not None
        self.asked = context.experts
        return await super().run_verdict(symbol, debate_outcome)


class Stuck(FakeResearch):
    """The macro expert never answers; the others do."""

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if expert_type is MACRO:
            await asyncio.Event().wait()
        return await super().run_expert(expert_type, symbol, options)


class Bench:
    """A desk over a real journal; each run has its own experts, debate and judge."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        self.trail = AuditTrail(database)
        self.repository = SqlResearchSessionRepository(self.trail)
        self._clock = TickingClock(clock.now())
        self.debate, self.judge = FakeDebate(), AskedJudge()

    def served_by(self, research: FakeResearch) -> ResearchOrchestrationService:
        layers = NodeLayers(repository=self.repository, clock=self._clock)
        engine = LangGraphResearchOrchestrator(research, self.debate, self.judge, layers=layers)
        return ResearchOrchestrationService(engine, repository=self.repository, clock=self._clock)

    async def research(
        self, *experts: ExpertType, answers: Mapping[ExpertType, Answer] | None = None, **more: Any
    ) -> ResearchResult:
        asked = {"symbol": "000001.SZ", "experts": list(experts), "locale": "en-US", **more}
        return await self.served_by(FakeResearch(answers)).execute(asked)

    async def retry(
        self, session_id: str, research: FakeResearch | None = None, **more: Any
    ) -> ResearchResult:
        return await self.served_by(research or FakeResearch()).retry(UUID(session_id), **more)

    async def session(self, session_id: str) -> ResearchSession:
        found = await self.repository.get_session_by_id(UUID(session_id), WORKSPACE)
        assert found is not None
        return found

    async def rows(self, session_id: str) -> dict[str, NodeExecution]:
        nodes = await self.repository.get_node_executions_by_session(UUID(session_id))
        assert len({node.node_type for node in nodes}) == len(nodes), "one row per node"
        return {node.node_type: node for node in nodes}

    async def intact(self, session_id: str) -> bool:
        return (await verify(self.trail, UUID(session_id))).intact


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Tracebacks of failures made on purpose take longer to print than the runs they belong to."""
    with capture_logs():
        yield


@pytest.fixture
def bench(database: Database, clock: FixedClock) -> Bench:
    return Bench(database, clock)


def statuses(result: ResearchResult) -> dict[str, str]:
    return {item.expert_type.value: item.status for item in result.expert_results.values()}


def data_of(result: ResearchResult, expert: ExpertType) -> dict[str, Any] | None:
    return next(item.data for item in result.expert_results.values() if item.expert_type is expert)


class TestARetry:
    async def test_asks_only_who_failed_and_answers_with_everybody(self, bench: Bench) -> None:
        options = {"technical_analyst": {"analysis_date": "2026-02-13"}, "financial_auditor": {"limit": 3}}
        partial = await bench.research(
            TECHNICAL, FINANCIAL, MACRO, answers={FINANCIAL: DOWN}, options=options
        )
        research = FakeResearch()
        result = await bench.retry(partial.session_id, research)
        assert research.calls == [(FINANCIAL, "000001.SZ", {"limit": 3})]
        assert (partial.overall_status, result.overall_status) == ("partial", "completed")
        assert statuses(result) == dict.fromkeys([TECHNICAL, FINANCIAL, MACRO], "success")
        assert result.verdict_status == "judged"

    async def test_tells_everybody_in_one_order_whenever_it_is_asked(self, bench: Bench) -> None:
        partial = await bench.research(MACRO, TECHNICAL, FINANCIAL, answers={MACRO: DOWN})
        result = await bench.retry(partial.session_id)
        session, nodes = await bench.session(result.session_id), await bench.rows(result.session_id)
        on_record = past_result(session, [nodes[name] for name in sorted(nodes)], (), "CNY")
        assert list(statuses(result)) == list(statuses(on_record)) == [TECHNICAL, FINANCIAL, MACRO]

    @pytest.mark.accepts("A1N-09")
    async def test_is_a_session_of_its_own_that_knows_where_it_comes_from(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, MACRO, answers={MACRO: DOWN}, as_of="2026-03-31")
        result = await bench.retry(partial.session_id, trigger_source="sdk")
        parent, child = await bench.session(partial.session_id), await bench.session(result.session_id)
        assert (child.id != parent.id, child.parent_session_id, child.retry_count) == (True, parent.id, 1)
        assert (child.status, child.selected_experts) == ("completed", ["macro_intelligence"])
        assert (child.symbol, child.options, child.locale) == (parent.symbol, parent.options, "en-US")
        assert child.as_of == parent.as_of == result.as_of
        assert (child.trigger_source, result.retry_count, partial.retry_count) == ("sdk", 1, 0)
        assert parent.status == "partial", "the session that failed stays what it was"

    async def test_keeps_what_it_reuses_as_rows_of_its_own_that_its_chain_vouches_for(
        self, bench: Bench
    ) -> None:
        answers = {TECHNICAL: CHARTED, MACRO: DOWN}
        partial = await bench.research(TECHNICAL, MACRO, answers=answers)
        result = await bench.retry(partial.session_id)
        before, after = await bench.rows(partial.session_id), await bench.rows(result.session_id)
        assert {name: (row.status, row.reused) for name, row in after.items()} == {
            "technical_analyst": ("success", True),
            "macro_intelligence": ("success", False),
            "debate": ("success", False),
            "judge": ("success", False),
        }
        row, source = after["technical_analyst"], before["technical_analyst"]
        assert (row.result_data, row.evidence) == (source.result_data, [BARS])
        assert (row.narrative_report, row.duration_ms) == ("the chart in words", 0)
        assert row.id != source.id
        assert await bench.intact(result.session_id)
        assert await bench.intact(partial.session_id)

    async def test_lets_the_debate_see_the_reused_evidence(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, MACRO, answers={TECHNICAL: CHARTED, MACRO: DOWN})
        result = await bench.retry(partial.session_id)
        _, heard = bench.debate.calls[-1]
        assert heard == {TECHNICAL: CHARTED, MACRO: {"said": "macro_intelligence"}}
        assert data_of(result, TECHNICAL) == CHARTED

    async def test_counts_the_reused_experts_as_asked(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, FINANCIAL, MACRO, answers={FINANCIAL: DOWN})
        await bench.retry(partial.session_id)
        assert set(bench.judge.asked) == {TECHNICAL, FINANCIAL, MACRO}

    @pytest.mark.accepts("W2", "A1N-09")
    async def test_of_a_retry_reuses_what_the_first_had_reused(self, bench: Bench) -> None:
        answers = {TECHNICAL: CHARTED, FINANCIAL: DOWN, MACRO: DOWN}
        first = await bench.research(TECHNICAL, FINANCIAL, MACRO, answers=answers)
        second = await bench.retry(first.session_id, FakeResearch({MACRO: DOWN}))
        research = FakeResearch()
        third = await bench.retry(second.session_id, research)
        assert research.asked == {MACRO}
        assert [run.overall_status for run in (first, second, third)] == ["partial", "partial", "completed"]
        assert [run.retry_count for run in (first, second, third)] == [0, 1, 2]
        assert data_of(third, TECHNICAL) == CHARTED
        assert statuses(third) == dict.fromkeys([TECHNICAL, FINANCIAL, MACRO], "success")
        child = await bench.session(third.session_id)
        assert (str(child.parent_session_id), child.selected_experts) == (second.session_id, [MACRO])
        assert await bench.intact(third.session_id)

    async def test_may_leave_out_the_debate(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, MACRO, answers={MACRO: DOWN})
        result = await bench.retry(partial.session_id, skip_debate=True)
        assert (result.overall_status, result.debate_outcome, result.verdict_status) == (
            "completed",
            None,
            "skipped",
        )
        assert set(await bench.rows(result.session_id)) == {TECHNICAL, MACRO}

    async def test_leaves_it_out_where_it_was_left_out(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, MACRO, answers={MACRO: DOWN}, skip_debate=True)
        kept, told = (
            await bench.retry(partial.session_id),
            await bench.retry(partial.session_id, skip_debate=False),
        )
        assert (kept.verdict_status, (await bench.session(kept.session_id)).skip_debate) == ("skipped", True)
        assert told.verdict_status == "judged"

    async def test_that_fails_again_is_partial_again_and_can_be_retried(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, MACRO, answers={MACRO: DOWN})
        again = await bench.retry(partial.session_id, FakeResearch({MACRO: DOWN}))
        assert (again.overall_status, statuses(again)[MACRO]) == ("partial", "failed")
        assert (await bench.retry(again.session_id)).overall_status == "completed"

    async def test_where_nobody_succeeds_still_names_its_own_session(self, bench: Bench) -> None:
        everybody_down = {TECHNICAL: DOWN, MACRO: DOWN}
        with pytest.raises(AllExpertsFailed) as first:
            await bench.research(TECHNICAL, MACRO, answers=everybody_down)
        with pytest.raises(AllExpertsFailed) as second:
            await bench.retry(first.value.details["session_id"], FakeResearch(everybody_down))
        child = await bench.session(second.value.details["session_id"])
        assert (str(child.parent_session_id), child.status) == (first.value.details["session_id"], "failed")
        result = await bench.retry(str(child.id))
        assert (result.overall_status, result.retry_count) == ("completed", 2)

    async def test_beside_another_makes_a_child_of_its_own(self, bench: Bench) -> None:
        partial = await bench.research(TECHNICAL, VALUATION, MACRO, CATALYST, answers={MACRO: DOWN})
        results = await asyncio.gather(*(bench.retry(partial.session_id) for _ in range(4)))
        assert len({result.session_id for result in results} | {partial.session_id}) == 5
        for result in results:
            child = await bench.session(result.session_id)
            assert (str(child.parent_session_id), child.retry_count) == (partial.session_id, 1)
            assert (child.status, child.audit_gaps) == ("completed", 0)
            reused = [row for row in (await bench.rows(result.session_id)).values() if row.reused]
            assert {row.node_type for row in reused} == {TECHNICAL, VALUATION, CATALYST}
            assert await bench.intact(result.session_id)


class TestWithoutAVerdict:
    @pytest.mark.parametrize("broken", ["debate", "judge"])
    async def test_debate_and_judge_run_again_and_no_expert_does(self, bench: Bench, broken: str) -> None:
        working = getattr(bench, broken)
        setattr(bench, broken, FakeDebate(DOWN) if broken == "debate" else FakeJudge(DOWN))
        failed = await bench.research(TECHNICAL, MACRO, answers={TECHNICAL: CHARTED})
        setattr(bench, broken, working)
        research = FakeResearch()
        result = await bench.retry(failed.session_id, research)
        assert (failed.overall_status, failed.verdict_status) == ("completed", "failed")
        assert research.asked == set()
        assert (result.overall_status, result.verdict_status) == ("completed", "judged")
        assert data_of(result, TECHNICAL) == CHARTED
        assert (await bench.session(result.session_id)).selected_experts == []
        assert await bench.intact(result.session_id)

    async def test_a_debate_that_was_held_is_not_held_again(self, bench: Bench) -> None:
        judge, bench.judge = bench.judge, AskedJudge(DOWN)
        failed = await bench.research(TECHNICAL, MACRO)
        again = await bench.retry(failed.session_id)
        bench.judge = judge
        result = await bench.retry(again.session_id)
        assert [len(bench.debate.calls), len(judge.calls)] == [1, 1]
        assert result.verdict_status == "judged"
        assert result.debate_outcome == {**(failed.debate_outcome or {}), "evidence": []}
        rows = await bench.rows(result.session_id)
        assert {name: row.reused for name, row in rows.items()} == {
            TECHNICAL: True,
            MACRO: True,
            "debate": True,
            "judge": False,
        }
        assert await bench.intact(result.session_id)

    async def test_skipping_the_debate_leaves_nothing_to_run(self, bench: Bench) -> None:
        bench.judge = AskedJudge(DOWN)
        failed = await bench.research(TECHNICAL, MACRO)
        with pytest.raises(
            SessionNotRetryable, match=r"Nothing failed in session .* that this retry could run"
        ):
            await bench.retry(failed.session_id, skip_debate=True)


class TestARunThatDied:
    @pytest.mark.accepts("W2")
    async def test_is_retried_with_those_who_left_no_row(self, bench: Bench) -> None:
        """A cancelled expert has no row: nobody was left to write it."""
        service = bench.served_by(Stuck({TECHNICAL: CHARTED}))
        run = asyncio.create_task(service.execute({"symbol": "000001.SZ", "experts": [TECHNICAL, MACRO]}))
        died = await self._once_a_row_is_there(bench)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert set(await bench.rows(died)) == {TECHNICAL}
        research = FakeResearch()
        result = await bench.retry(died, research)
        assert ((await bench.session(died)).status, research.asked) == ("cancelled", {MACRO})
        assert (result.overall_status, data_of(result, TECHNICAL)) == ("completed", CHARTED)

    async def test_before_anybody_answered_is_retried_whole(self, bench: Bench) -> None:
        session = a_session(status="failed", verdict_status="failed", workspace_id=WORKSPACE)
        await bench.repository.save_session(session)
        research = FakeResearch()
        result = await bench.retry(str(session.id), research)
        assert (research.asked, result.overall_status) == ({TECHNICAL}, "completed")

    async def _once_a_row_is_there(self, bench: Bench) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                await asyncio.sleep(0.01)
                page = await bench.repository.list_sessions(EVERYTHING)
                if page.items and await bench.rows(str(page.items[0].id)):
                    return str(page.items[0].id)


class TestIsRefused:
    async def test_for_a_session_that_is_still_running(self, bench: Bench) -> None:
        session = a_session(workspace_id=WORKSPACE)
        await bench.repository.save_session(session)
        with pytest.raises(SessionRunning, match="still running") as refused:
            await bench.retry(str(session.id))
        assert (refused.value.code, refused.value.details) == (
            "SESSION_RUNNING",
            {"session_id": str(session.id)},
        )

    @pytest.mark.parametrize("skip_debate", [False, True])
    async def test_where_nothing_failed(self, bench: Bench, skip_debate: bool) -> None:
        done = await bench.research(TECHNICAL, MACRO, skip_debate=skip_debate)
        with pytest.raises(SessionNotRetryable, match="Nothing failed in session") as refused:
            await bench.retry(done.session_id)
        assert refused.value.code == "SESSION_NOT_RETRYABLE"
        assert refused.value.in_locale("zh-CN").startswith(f"会话 {done.session_id} 没有失败的部分")

    async def test_for_a_session_nobody_knows_here(self, bench: Bench) -> None:
        theirs = a_session(status="failed", workspace_id="another")
        await bench.repository.save_session(theirs)
        for session_id in (theirs.id, uuid4()):
            with pytest.raises(SessionNotFound):
                await bench.retry(str(session_id))

    async def test_and_leaves_no_session_behind(self, bench: Bench) -> None:
        done = await bench.research(TECHNICAL)
        with pytest.raises(SessionNotRetryable):
            await bench.retry(done.session_id)
        assert (await bench.repository.list_sessions(EVERYTHING)).total == 1


async def test_a_reused_result_that_cannot_be_stored_is_counted_and_stops_nothing(clock: FixedClock) -> None:
    class NoReusedRows(FakeSessions):
        async def save_session(self, session: ResearchSession, **beside: Any) -> None:
            if beside["nodes"]:
                raise OSError("no space left on device")
            await super().save_session(session, **beside)

    sessions = NoReusedRows()
    failed = a_session(
        status="partial", selected_experts=[TECHNICAL, MACRO], verdict_status="judged", workspace_id=WORKSPACE
    )
    sessions.sessions[failed.id] = failed
    sessions.nodes.append(a_node(failed.id, result_data={"signal": "BULLISH"}))
    engine = LangGraphResearchOrchestrator(FakeResearch(), FakeDebate(), FakeJudge())
    service = ResearchOrchestrationService(engine, repository=sessions, clock=clock)
    result = await service.retry(failed.id)
    assert (result.overall_status, result.audit_gaps) == ("completed", 1)
    assert sessions.sessions[UUID(result.session_id)].audit_gaps == 1


async def test_without_persistence_there_is_nothing_to_retry() -> None:
    service = ResearchOrchestrationService(LangGraphResearchOrchestrator(FakeResearch()))
    with pytest.raises(Unavailable) as refused:
        await service.retry(uuid4())
    assert refused.value.code == "PERSISTENCE_OFF"
