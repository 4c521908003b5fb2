"""The port's behaviour, on LangGraph and on a second engine that shares nothing with it but the nodes."""

import asyncio
from itertools import combinations
from typing import Any

import pytest

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.exceptions import Abstention
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.infrastructure.orchestration import langgraph_orchestrator
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx
from tests.fakes.asyncio_orchestrator import AsyncioResearchOrchestrator
from tests.fakes.clock import PATIENCE, leap, settle
from tests.fakes.coordinator import (
    CATALYST,
    FINANCIAL,
    MACRO,
    OUTCOME,
    TECHNICAL,
    VALUATION,
    VERDICT,
    FakeDebate,
    FakeJudge,
    FakeResearch,
)

ENGINES = [LangGraphResearchOrchestrator, AsyncioResearchOrchestrator]
pytestmark = pytest.mark.accepts("A0-29", "A1N-34")


@pytest.fixture(params=ENGINES, ids=["langgraph", "asyncio"])
def engine(request: pytest.FixtureRequest) -> type[LangGraphResearchOrchestrator]:
    return request.param


def asking(*experts: ExpertType, **more: Any) -> ResearchRequest:
    return ResearchRequest(symbol="000001.SZ", experts=list(experts), **more)


def error_of(result: ResearchResult, expert: ExpertType) -> str | None:
    return next(item.error for item in result.expert_results.values() if item.expert_type == expert)


@pytest.mark.accepts("A0-25", "A1S-17", "A1S-68", "A1N-11")
async def test_only_the_experts_that_were_asked_for_are_called(engine):
    research = FakeResearch()
    await engine(research).run(asking(MACRO, CATALYST))
    assert research.asked == {MACRO, CATALYST}


@pytest.mark.accepts("A1S-18", "A1S-21")
async def test_a_single_expert_runs_and_is_the_only_result(engine):
    result = await engine(FakeResearch({VALUATION: {"valuation_verdict": "Fair"}})).run(asking(VALUATION))
    assert [(i.expert_type, i.data) for i in result.expert_results.values()] == [
        (VALUATION, {"valuation_verdict": "Fair"})
    ]
    assert result.overall_status == "completed"


@pytest.mark.accepts("A1N-10")
@pytest.mark.parametrize(
    "chosen",
    [chosen for count in range(1, 6) for chosen in combinations(ExpertType, count)],
    ids=lambda chosen: "+".join(expert.value.split("_")[0] for expert in chosen),
)
async def test_every_selection_is_asked_and_answered_and_nobody_else_is(engine, chosen):
    research, debate = FakeResearch(), FakeDebate()
    result = await engine(research, debate).run(asking(*chosen))
    assert research.asked == set(chosen)
    assert list(result.expert_results) == list(chosen)
    assert set(debate.calls[0][1]) == {expert.value for expert in chosen}
    assert result.overall_status == "completed"


@pytest.mark.accepts("A1S-19", "A1S-15")
async def test_all_five_are_called_and_returned(engine):
    research = FakeResearch()
    result = await engine(research).run(asking(*ExpertType))
    assert research.asked == set(ExpertType)
    assert [i.expert_type for i in result.expert_results.values()] == list(ExpertType)
    assert {i.status for i in result.expert_results.values()} == {"success"}
    assert result.overall_status == "completed"


@pytest.mark.accepts("A0-26", "A1S-16", "A1S-22", "A1S-69", "A0-13", "A1N-13", "W1")
async def test_one_failing_expert_leaves_the_others_standing(engine):
    """An expert's exception neither ends the run nor loses what the others found."""
    research = FakeResearch({TECHNICAL: {"signal": "BULLISH"}, VALUATION: AppError("no financials")})
    result = await engine(research).run(asking(TECHNICAL, VALUATION, MACRO))
    assert result.overall_status == "partial"
    assert error_of(result, VALUATION) == "no financials"
    assert [i.data for i in result.expert_results.values() if i.status == "success"] == [
        {"signal": "BULLISH"},
        {"said": "macro_intelligence"},
    ]


@pytest.mark.accepts("A1S-23", "A1S-70", "A0-14")
async def test_when_all_experts_fail_every_error_is_kept(engine):
    research = FakeResearch({e: RuntimeError(f"{e.value} broke") for e in ExpertType})
    debate, judge = FakeDebate(), FakeJudge()
    result = await engine(research, debate, judge).run(asking(*ExpertType))
    assert result.overall_status == "failed"
    assert {i.expert_type: i.error for i in result.expert_results.values()} == {
        e: f"{e.value} broke" for e in ExpertType
    }
    assert (result.verdict, result.verdict_status) == (None, "failed")
    assert debate.calls == judge.calls == []


@pytest.mark.accepts("A1S-45", "A1S-59", "A1S-62")
async def test_debate_gets_the_results_and_the_judge_gets_the_debate(engine):
    debate, judge = FakeDebate(), FakeJudge()
    result = await engine(FakeResearch(), debate, judge).run(asking(TECHNICAL))
    assert debate.calls == [("000001.SZ", {"technical_analyst": {"said": "technical_analyst"}})]
    assert judge.calls == [("000001.SZ", OUTCOME)]
    assert (result.debate_outcome, result.verdict, result.verdict_status) == (OUTCOME, VERDICT, "judged")


@pytest.mark.accepts("A1S-12", "A1S-60", "A1N-06", "A1N-07")
async def test_skipping_the_debate_skips_the_judge(engine):
    debate, judge = FakeDebate(), FakeJudge()
    result = await engine(FakeResearch(), debate, judge).run(asking(TECHNICAL, skip_debate=True))
    assert (result.debate_outcome, result.verdict) == (None, None)
    assert debate.calls == judge.calls == []
    assert (result.verdict_status, result.overall_status) == ("skipped", "completed")


@pytest.mark.accepts("A1S-13", "A1S-44", "A1S-46", "A1N-06", "A1N-07")
async def test_a_failing_debate_costs_the_verdict_and_nothing_else(engine):
    judge = FakeJudge()
    result = await engine(FakeResearch(), FakeDebate(AppError("unreadable answer")), judge).run(asking(MACRO))
    assert (result.debate_outcome, result.verdict, judge.calls) == (None, None, [])
    assert (result.overall_status, result.verdict_status) == ("completed", "failed")
    assert result.reason == "辩论失败：unreadable answer"


@pytest.mark.accepts("A1S-14", "A1S-47", "A1S-60", "A1N-07")
async def test_a_failing_judge_costs_the_verdict_only(engine):
    result = await engine(FakeResearch(), FakeDebate(), FakeJudge(AppError("no answer"))).run(asking(MACRO))
    assert (result.debate_outcome, result.verdict) == (OUTCOME, None)
    assert (result.overall_status, result.verdict_status) == ("completed", "failed")


async def test_a_judge_that_abstains_is_not_a_failure_and_not_a_rating(engine):
    judge = FakeJudge(Abstention("only one of five experts was heard"))
    result = await engine(FakeResearch(), FakeDebate(), judge).run(asking(MACRO))
    assert (result.verdict, result.verdict_status) == (None, "abstained")
    assert result.reason == "only one of five experts was heard"


@pytest.mark.accepts("A1S-63")
async def test_an_empty_verdict_is_no_verdict(engine):
    result = await engine(FakeResearch(), FakeDebate(), FakeJudge({})).run(asking(MACRO))
    assert result.verdict is None


@pytest.mark.accepts("A0-12", "A1S-06", "W3")
async def test_an_expert_sees_its_own_options_only(engine):
    research = FakeResearch()
    options = {"technical_analyst": {"analysis_date": "2026-02-13"}, "financial_auditor": {"limit": 8}}
    await engine(research).run(asking(TECHNICAL, FINANCIAL, MACRO, options=options))
    assert {expert: given for expert, _, given in research.calls} == {
        TECHNICAL: {"analysis_date": "2026-02-13"},
        FINANCIAL: {"limit": 8},
        MACRO: {},
    }


@pytest.mark.accepts("A0-15")
async def test_what_an_expert_said_reaches_the_caller_untouched(engine):
    said = {"nested": {"list": [1, {"x": None}]}, "text": "全文"}
    result = await engine(FakeResearch({MACRO: said})).run(asking(MACRO))
    assert result.expert_results["macro_intelligence"].data == said


async def test_results_known_beforehand_are_not_asked_for_again(engine):
    research = FakeResearch()
    request = asking(MACRO, pre_populated_results={"technical_analyst": {"signal": "BULLISH"}}, retry_count=1)
    result = await engine(research).run(request)
    assert research.asked == {MACRO}
    assert [i.expert_type for i in result.expert_results.values()] == [TECHNICAL, MACRO]
    assert (result.overall_status, result.retry_count) == ("completed", 1)


class Barrier(IResearchExpertGateway):
    """Opens when as many experts are inside as were selected; a sequential engine would wait forever."""

    def __init__(self, parties: int) -> None:
        self._barrier = asyncio.Barrier(parties)
        self.contexts: list[str | None] = []
        self.cancelled = 0

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        context = current_execution_ctx.get()
        self.contexts.append(context.session_id if context else None)
        try:
            await self._barrier.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {"met": True}


@pytest.mark.accepts("A1S-20", "A0-03", "A1N-12")
@pytest.mark.parametrize("count", [3, 5])
async def test_selected_experts_are_all_inside_at_once(engine, count):
    result = await asyncio.wait_for(engine(Barrier(count)).run(asking(*list(ExpertType)[:count])), PATIENCE)
    assert [i.data for i in result.expert_results.values()] == [{"met": True}] * count


@pytest.mark.accepts("A2-09")
async def test_the_session_reaches_all_five_and_runs_do_not_mix(engine):
    async def run(session_id: str) -> list[str | None]:
        token = current_execution_ctx.set(ExecutionContext(session_id=session_id))
        try:
            gateway = Barrier(5)
            await engine(gateway).run(asking(*ExpertType))
            return gateway.contexts
        finally:
            current_execution_ctx.reset(token)

    one, two = await asyncio.wait_for(asyncio.gather(run("one"), run("two")), PATIENCE)
    assert (one, two) == (["one"] * 5, ["two"] * 5)


async def test_cancellation_reaches_all_five(engine):
    gateway = Barrier(6)
    task = asyncio.create_task(engine(gateway).run(asking(*ExpertType)))
    while len(gateway.contexts) < 5:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gateway.cancelled == 5


@pytest.mark.accepts("A0-17")
@pytest.mark.parametrize("skip_debate", [False, True])
@pytest.mark.parametrize("broken", [[], [VALUATION], list(ExpertType)])
async def test_both_engines_give_equal_results(broken, skip_debate):
    async def result_of(kind):
        research = FakeResearch({e: AppError(f"{e} broke") for e in broken})
        return await kind(research, FakeDebate(), FakeJudge()).run(
            asking(*ExpertType, skip_debate=skip_debate)
        )

    langgraph, plain = [await result_of(kind) for kind in ENGINES]
    assert langgraph == plain


@pytest.mark.accepts("A1S-61", "A1S-62", "A1N-31", "W26")
@pytest.mark.parametrize(("skip_debate", "expected"), [(True, (None, None)), (False, ("debate", "judge"))])
async def test_the_graph_is_built_with_the_gateways_of_the_request(monkeypatch, skip_debate, expected):
    built, real = [], langgraph_orchestrator.build_research_graph
    debate, judge = FakeDebate(), FakeJudge()
    names = {None: None, debate: "debate", judge: "judge"}

    def spy(gateway, debate_gateway=None, judge_gateway=None, **more):
        built.append((names[debate_gateway], names[judge_gateway]))
        return real(gateway, debate_gateway, judge_gateway, **more)

    monkeypatch.setattr(langgraph_orchestrator, "build_research_graph", spy)
    orchestrator = LangGraphResearchOrchestrator(FakeResearch(), debate, judge)
    for _ in range(3):
        await orchestrator.run(asking(MACRO, skip_debate=skip_debate))
    assert built == [expected], "each shape is compiled once"


@pytest.mark.accepts("A1N-13", "W26")
async def test_an_expert_that_takes_too_long_fails_by_itself(engine):
    class Slow(FakeResearch):
        async def run_expert(self, expert_type, symbol, options=None):
            if expert_type is TECHNICAL:
                await settle()  # the other has its answer meanwhile
                leap(60)
                await asyncio.Event().wait()
            return await super().run_expert(expert_type, symbol, options)

    result = await engine(Slow(), layers=NodeLayers(timeout=60)).run(asking(TECHNICAL, MACRO))
    assert result.overall_status == "partial"
    assert error_of(result, TECHNICAL) == "技术分析师在 60 秒内没有给出结果。要多给时间：MOOT_NODE_TIMEOUT。"
