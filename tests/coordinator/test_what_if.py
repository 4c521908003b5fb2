"""A what-if is a session like any other: it can be resumed and retried, and knows who was asked and who failed."""

from typing import Any
from uuid import uuid4

from moot.modules.coordinator.application.contest import ContestService
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.results import copy_reused, request_of, request_what_if
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.model.session import Past
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.shared.domain.claims import Move
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import current_context
from tests.coordinator.test_session_repository import a_node, a_session
from tests.fakes.clock import TickingClock
from tests.fakes.coordinator import (
    MACRO,
    OUTCOME,
    TECHNICAL,
    FakeDebate,
    FakeJudge,
    FakeResearch,
    FakeSessions,
)

ARGUMENT = {
    "claims": [{"id": "technical.rsi", "says": {"en-US": "rsi"}}],
    "strengths": {"technical.rsi": 0.5},
    "dimensions": {"technical.momentum": 0.5},
    "motion": 0.7,
}
STRUCK = {"claims": [], "strengths": {}, "dimensions": {}, "motion": 0.5}
STRIKE = Move(move="strike", claim="technical.rsi")


class Judge(FakeJudge):
    """Notes for whom it rules: who was asked, who failed, and whether it must do without a model."""

    ruled: list[tuple[Any, ...]]

    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        context = current_context()
        self.ruled = [
            *getattr(self, "ruled", ()),
            (context.experts, set(context.tally.failures), context.analyst),
        ]
        return await super().run_verdict(symbol, debate_outcome)


async def test_it_is_retried_as_what_it_is_with_the_panel_it_had(clock):
    repository, judge = FakeSessions(), Judge()
    research = FakeResearch(
        {TECHNICAL: {"signal": "BULLISH", "evidence": []}, MACRO: AppError("no figures", code="DATA_STALE")}
    )
    debate = FakeDebate({**OUTCOME, "argument": ARGUMENT})
    ticking = TickingClock(clock.now())
    layers = NodeLayers(repository=repository, clock=ticking)
    orchestrator = LangGraphResearchOrchestrator(research, debate, judge, layers=layers)
    sessions = Sessions(orchestrator, repository=repository, clock=ticking)
    service = ResearchOrchestrationService(
        orchestrator, repository=repository, clock=ticking, sessions=sessions
    )
    contesting = ContestService(
        sessions, repository, lambda debate, _moves, _in: {**debate, "argument": STRUCK}
    )
    first = await service.execute({"symbol": "900001.DEMO", "experts": [TECHNICAL, MACRO]})
    parent = next(session for session in repository.sessions.values() if not session.contest)

    judge._answer = AppError("no judge today")
    found = await contesting.contest(parent.id, [STRIKE], workspace="default")
    assert (found.after.verdict_status, found.after.action, found.before.action) == ("failed", None, "BUY")
    assert found.reason is not None and "no judge today" in found.reason
    judge._answer = FakeJudge()._answer
    again = await service.retry(found.after.session_id)

    assert again.expert_results == first.expert_results
    assert again.overall_status == "partial"
    assert len(debate.calls) == 1
    assert len(research.calls) == 2
    assert judge.ruled == [
        ((TECHNICAL, MACRO), {MACRO}, None),
        ((TECHNICAL, MACRO), {MACRO}, "rubric"),
        ((TECHNICAL, MACRO), {MACRO}, "rubric"),
    ]
    retried = repository.sessions[next(id_ for id_ in repository.sessions if str(id_) == again.session_id)]
    assert (retried.trigger_source, retried.contest, retried.retry_count) == ("contest", [STRIKE], 1)
    told = f"这是会话 {found.after.session_id} 的假设推演，不是研究台得出的结论：剔除 technical.rsi。"
    assert again.notices[0] == told and told not in first.notices


def test_what_a_process_that_died_leaves_behind_is_the_same_question(clock):
    session = a_session(status="partial", previous=None, holder={"holding": True})
    nodes = [
        a_node(session.id, result_data={"signal": "BULLISH"}),
        a_node(session.id, node_type=MACRO, status="failed", error_type="DATA_STALE", error_message="old"),
        a_node(session.id, node_type="debate", result_data={"argument": ARGUMENT}),
    ]
    asked = request_what_if(Past(session, nodes), [STRIKE], {"argument": STRUCK, "evidence": []})
    opened = a_session(**asked.pick_asked() | {"id": uuid4(), "selected_experts": asked.experts})
    resumed = request_of(opened, list(copy_reused(asked, opened.id, clock.now())))
    assert resumed.model_dump() == asked.model_dump()
    assert asked.panel == [TECHNICAL, MACRO]
