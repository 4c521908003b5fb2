"""The layers around a node: what each adds, and that failures stay where they are."""

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from moot.modules.coordinator.application.run import Run
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import SessionEvent
from moot.modules.coordinator.domain.ports.permission import AfterError, NodePolicy
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import (
    NodeLayers,
    build_research_graph,
    create_expert_node,
    persist_node_execution,
    retry,
)
from moot.modules.coordinator.infrastructure.orchestration.graph_state import initial_state
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx
from tests.fakes.clock import PATIENCE, leap
from tests.fakes.coordinator import (
    FINANCIAL,
    MACRO,
    TECHNICAL,
    FakeDebate,
    FakeJudge,
    FakeResearch,
    FakeSessions,
)

SESSION = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"


def state(*experts: ExpertType, **changes):
    return {**initial_state(ResearchRequest(symbol="000001.SZ", experts=list(experts))), **changes}


@pytest.fixture
def in_session():
    context = ExecutionContext(session_id=SESSION, locale="en-US")
    token = current_execution_ctx.set(context)
    yield context
    current_execution_ctx.reset(token)


async def run_graph(sessions: FakeSessions, research: FakeResearch, *experts, debate=None, judge=None):
    layers = NodeLayers(repository=sessions)
    graph = build_research_graph(research, debate or FakeDebate(), judge or FakeJudge(), layers=layers)
    return await graph.ainvoke(state(*experts))


@pytest.mark.accepts("A2-10", "A2-11", "A2-26")
async def test_every_node_leaves_a_row_with_its_own_times(in_session):
    sessions = FakeSessions()
    before = datetime.now(UTC)
    await run_graph(sessions, FakeResearch(), TECHNICAL, MACRO)
    assert {n.node_type: n.status for n in sessions.nodes} == {
        "technical_analyst": "success",
        "macro_intelligence": "success",
        "debate": "success",
        "judge": "success",
    }
    for node in sessions.nodes:
        assert str(node.session_id) == SESSION
        assert before <= node.started_at <= node.completed_at <= datetime.now(UTC)
        assert node.duration_ms >= 0
    assert sessions.node("macro_intelligence").result_data == {"said": "macro_intelligence"}
    assert sessions.node("judge").narrative_report == "the verdict in words"


@pytest.mark.accepts("A2-12", "A2-11")
async def test_a_failed_expert_has_its_row_and_the_graph_goes_on(in_session):
    sessions = FakeSessions()
    final = await run_graph(sessions, FakeResearch({TECHNICAL: ValueError("bad bars")}), TECHNICAL, MACRO)
    row = sessions.node("technical_analyst")
    assert (row.status, row.error_type, row.error_message) == ("failed", "ValueError", "bad bars")
    assert final["errors"] == {"technical_analyst": "bad bars"}
    assert final["overall_status"] == "partial"


@pytest.mark.accepts("A2-12", "W9")
async def test_failing_debate_and_judge_are_stored_as_failures_not_as_empty_successes(in_session):
    sessions = FakeSessions()
    await run_graph(sessions, FakeResearch(), MACRO, judge=FakeJudge(AppError("no verdict")))
    assert (sessions.node("judge").status, sessions.node("judge").error_message) == ("failed", "no verdict")
    sessions = FakeSessions()
    await run_graph(sessions, FakeResearch(), MACRO, debate=FakeDebate(AppError("no debate")))
    assert sessions.node("debate").status == "failed"
    assert sessions.node("judge").status == "skipped"


@pytest.mark.accepts("A2-26")
async def test_debate_and_judge_are_skipped_when_all_experts_failed(in_session):
    sessions = FakeSessions()
    await run_graph(sessions, FakeResearch({MACRO: AppError("nothing")}), MACRO)
    assert {n.node_type: n.status for n in sessions.nodes} == {
        "macro_intelligence": "failed",
        "debate": "skipped",
        "judge": "skipped",
    }


async def test_evidence_is_stored_beside_the_result(in_session):
    sessions = FakeSessions()
    evidence = [{"id": "technical.current_price", "value": 10.0}]
    final = await run_graph(
        sessions, FakeResearch({TECHNICAL: {"signal": "X", "evidence": evidence}}), TECHNICAL
    )
    row = sessions.node("technical_analyst")
    assert (row.evidence, row.result_data) == (evidence, {"signal": "X"})
    assert final["results"]["technical_analyst"]["evidence"] == evidence, "the graph keeps the whole result"


@pytest.mark.accepts("A2-34", "A2-39")
async def test_a_store_that_fails_is_logged_and_counted_and_never_stops_research(in_session):
    with capture_logs() as logs:
        final = await run_graph(FakeSessions(broken=True), FakeResearch(), TECHNICAL, MACRO)
    assert final["overall_status"] == "completed"
    assert final["verdict"]["action"] == "BUY"
    assert in_session.tally.audit_gaps == 4
    assert [log["log_level"] for log in logs if log["event"] == "node not stored"] == ["error"] * 4


@pytest.mark.accepts("A2-10")
async def test_without_a_session_the_journal_stays_out_of_the_way():
    sessions = FakeSessions()
    node = persist_node_execution(create_expert_node(MACRO, FakeResearch()), "macro_intelligence", sessions)
    assert await node(state(MACRO)) == {"results": {"macro_intelligence": {"said": "macro_intelligence"}}}
    assert sessions.nodes == []


@pytest.mark.accepts("A0-13", "A1N-13")
async def test_a_failed_expert_is_logged_as_a_warning():
    with capture_logs() as logs:
        await run_graph(FakeSessions(), FakeResearch({MACRO: AppError("no data")}), MACRO)
    assert [(log["log_level"], log["node"]) for log in logs if log["event"] == "node failed"] == [
        ("warning", "macro_intelligence")
    ]


@pytest.mark.accepts("A1S-44", "A1S-47")
@pytest.mark.parametrize("node", ["debate", "judge"])
async def test_a_failed_debate_or_verdict_is_logged_as_an_error(node):
    down = AppError("no answer")
    debate = FakeDebate(down) if node == "debate" else FakeDebate()
    with capture_logs() as logs:
        await run_graph(FakeSessions(), FakeResearch(), MACRO, debate=debate, judge=FakeJudge(down))
    assert [(log["log_level"], log["node"]) for log in logs if log["event"] == "node failed"] == [
        ("error", node)
    ]


async def test_an_error_reads_in_the_language_of_the_session(in_session):
    node = NodeLayers(timeout=0.01).around(FINANCIAL, create_expert_node(FINANCIAL, Sleepy()))
    update = await node(state(FINANCIAL))
    said = "Financial auditor gave no answer within 0.01 s. To give it more time: MOOT_NODE_TIMEOUT."
    assert update == {"errors": {"financial_auditor": said}}


async def test_an_error_without_words_is_named():
    final = await build_research_graph(FakeResearch({MACRO: KeyError()})).ainvoke(state(MACRO))
    assert final["errors"] == {"macro_intelligence": "KeyError"}


class Sleepy(FakeResearch):
    async def run_expert(self, expert_type, symbol, options=None):
        await asyncio.Event().wait()
        return {}


async def test_a_timeout_of_the_works_own_is_not_taken_for_the_nodes():
    async def work(state):
        raise TimeoutError("the provider did not answer")

    with pytest.raises(TimeoutError, match="the provider did not answer"):
        await retry(work, "macro_intelligence", NodePolicy(), 5)(state())


class NoMacro(NodePolicy):
    async def authorise(self, node_type, symbol, options):
        if node_type == MACRO:
            raise AppError(f"{node_type} may not look at {symbol} with {options}")


async def test_a_node_the_policy_refuses_never_runs_and_still_has_its_row(in_session):
    sessions, research = FakeSessions(), FakeResearch()
    graph = build_research_graph(research, layers=NodeLayers(repository=sessions, policy=NoMacro()))
    final = await graph.ainvoke(state(TECHNICAL, MACRO, options={"macro_intelligence": {"x": 1}}))
    assert research.asked == {TECHNICAL}
    refusal = "macro_intelligence may not look at 000001.SZ with {'x': 1}"
    assert final["errors"] == {"macro_intelligence": refusal}
    assert sessions.node("macro_intelligence").error_message == refusal


@pytest.fixture
def watched(in_session):
    """Runs whose events go to whoever is named, while nothing is stored of them."""

    @contextmanager
    def under(watch):
        run = Run(UUID(SESSION), IResearchSessionRepository(), SystemClock(), watch)
        with in_session.model_copy(update={"run": run, "session_id": ""}).active() as context:
            yield context

    return under


async def test_whoever_watches_hears_how_each_node_starts_and_ends(watched):
    heard: list[SessionEvent] = []
    with watched(heard.append):
        await run_graph(FakeSessions(), FakeResearch({TECHNICAL: AppError("no bars")}), TECHNICAL, MACRO)
    told = {}
    for event in heard:
        told.setdefault(event.data.get("node"), []).append(event.type)
    assert told == {
        "technical_analyst": ["node_started", "node_failed"],
        "macro_intelligence": ["node_started", "node_finished"],
        "debate": ["node_started", "node_finished"],
        "judge": ["node_started", "node_finished"],
        None: ["debate", "verdict"],
    }
    assert [event.seq for event in heard] == list(range(1, len(heard) + 1))
    assert next(e.data["error"] for e in heard if e.type == "node_failed") == "no bars"
    judged = next(e.data for e in heard if e.data.get("node") == "judge" and e.type == "node_finished")
    assert (judged["signal"], judged["confidence"]) == ("BUY", 0.66)


@pytest.mark.accepts("A2-36")
async def test_writing_one_experts_row_does_not_hold_up_the_others(in_session):
    """Every write waits until all five experts have done their work; if writes blocked experts, none would end."""
    experts_done = asyncio.Barrier(5)

    class SlowSessions(FakeSessions):
        async def save_node_execution(self, node, *, events=()):
            if node.node_type in set(ExpertType):
                await experts_done.wait()
            await super().save_node_execution(node)

    sessions = SlowSessions()
    final = await asyncio.wait_for(run_graph(sessions, FakeResearch(), *ExpertType), PATIENCE)
    assert (final["overall_status"], len(sessions.nodes)) == ("completed", 7)


async def test_a_watcher_that_fails_changes_nothing(watched):
    def clumsy(event: SessionEvent) -> None:
        raise RuntimeError("the terminal went away")

    with watched(clumsy) as context:
        final = await run_graph(FakeSessions(), FakeResearch(), MACRO)
    assert (final["overall_status"], final["verdict"]["action"]) == ("completed", "BUY")
    assert context.tally.failures == {}


@pytest.mark.accepts("A2-34")
async def test_a_result_that_cannot_be_recorded_is_a_result_all_the_same(in_session):
    sessions = FakeSessions()
    final = await run_graph(sessions, FakeResearch({MACRO: {"evidence": "not a list"}}), MACRO)
    assert (final["overall_status"], in_session.tally.audit_gaps) == ("completed", 1)
    assert {node.node_type for node in sessions.nodes} == {"debate", "judge"}


class Handling(NodePolicy):
    """Says what follows each error, in turn."""

    def __init__(self, *steps: AfterError) -> None:
        self.steps, self.heard = list(steps), []

    async def authorise(self, node_type, symbol, options):
        return {"limit": 3} if node_type == FINANCIAL else None

    async def after_error(self, node_type, error):
        self.heard.append((node_type, str(error)))
        return self.steps.pop(0) if self.steps else AfterError("abort")

    async def review(self, node_type, result):
        return {**result, "position_percent": 0.2} if node_type == "judge" else result


class Flaky(FakeResearch):
    """Fails as often as it is told to, and says what it knew of the last time."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors, self.told = list(errors), []

    async def run_expert(self, expert_type, symbol, options=None):
        self.told.append(current_execution_ctx.get().feedback)
        if self.errors:
            raise self.errors.pop(0)
        return await super().run_expert(expert_type, symbol, options)


async def handled(research, policy, *experts, **layers):
    sessions = FakeSessions()
    around = NodeLayers(repository=sessions, policy=policy, **layers)
    graph = build_research_graph(research, FakeDebate(), FakeJudge(), layers=around)
    return await graph.ainvoke(state(*experts)), sessions


async def test_an_error_that_passes_is_tried_again_and_its_attempts_are_on_the_record(in_session):
    policy = Handling(AfterError("retry", 0.01), AfterError("retry", 0.01))
    final, sessions = await handled(Flaky(TimeoutError("slow"), ConnectionError("gone")), policy, MACRO)
    assert (final["errors"], final["overall_status"]) == ({}, "completed")
    assert policy.heard == [("macro_intelligence", "slow"), ("macro_intelligence", "gone")]
    assert sessions.node("macro_intelligence").attempts == 3
    assert sessions.node("judge").attempts == 1


async def test_an_agent_that_is_asked_again_knows_what_went_wrong(in_session):
    why = {"type": "execution_error", "suggestion": "use what is cached"}
    research = Flaky(AppError("no bars"))
    final, _ = await handled(research, Handling(AfterError("feedback", 0.0, why)), MACRO)
    assert (final["errors"], research.told) == ({}, [None, why])


async def test_what_aborts_or_escalates_ends_that_node_only(in_session):
    research = FakeResearch({MACRO: AppError("no licence")})
    final, _ = await handled(research, Handling(AfterError("escalate")), MACRO, TECHNICAL)
    assert (final["errors"], final["overall_status"]) == ({"macro_intelligence": "no licence"}, "partial")


async def test_all_attempts_of_a_node_share_its_time(in_session):
    class TwentySecondsEach(Flaky):
        async def run_expert(self, *arguments):
            leap(20)
            return await super().run_expert(*arguments)

    policy = Handling(*[AfterError("retry", 0.0)] * 50)
    research = TwentySecondsEach(*[TimeoutError("slow")] * 50)
    final, sessions = await handled(research, policy, MACRO, timeout=60)
    assert final["errors"] == {"macro_intelligence": "slow"}
    assert sessions.node("macro_intelligence").attempts == 3


async def test_a_node_runs_with_what_the_rules_make_of_its_options_and_stands_as_they_leave_it(in_session):
    research = FakeResearch()
    final, sessions = await handled(research, Handling(), FINANCIAL)
    assert [call[2] for call in research.calls] == [{"limit": 3}]
    assert final["verdict"]["position_percent"] == 0.2
    assert sessions.node("judge").result_data["position_percent"] == 0.2
