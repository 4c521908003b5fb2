"""The graph itself: its three shapes, its state, its fan-out."""

import inspect
from typing import get_type_hints

import pytest
from langgraph.types import Send

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import (
    aggregator_node,
    build_research_graph,
    create_debate_node,
    create_judge_node,
    route_to_experts,
)
from moot.modules.coordinator.infrastructure.orchestration.graph_state import (
    ResearchGraphState,
    initial_state,
    merge_dicts,
)
from tests.fakes.coordinator import OUTCOME, FakeDebate, FakeJudge, FakeResearch

EXPERT_NODES = {f"{expert.value}_node" for expert in ExpertType}


def state(**changes) -> ResearchGraphState:
    start = initial_state(ResearchRequest(symbol="000001.SZ", experts=list(ExpertType)))
    return {**start, **changes}


def edges(graph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.get_graph().edges}


def after_the_experts(graph) -> list[str]:
    """The nodes a run passes after the experts, in order."""
    following = {a: b for a, b in edges(graph) if a in {"aggregator_node", "debate_node", "judge_node"}}
    path = ["aggregator_node"]
    while path[-1] in following:
        path.append(following[path[-1]])
    return path


@pytest.mark.accepts("A1S-40", "A0-02", "A0-11", "A0-30")
def test_with_both_gateways_debate_and_judge_follow_the_aggregator():
    graph = build_research_graph(FakeResearch(), FakeDebate(), FakeJudge())
    assert after_the_experts(graph) == ["aggregator_node", "debate_node", "judge_node", "__end__"]
    assert {("__start__", node) for node in EXPERT_NODES} <= edges(graph)
    assert {(node, "aggregator_node") for node in EXPERT_NODES} <= edges(graph)


@pytest.mark.accepts("A1S-41")
def test_with_a_debate_only_there_is_no_judge():
    graph = build_research_graph(FakeResearch(), FakeDebate())
    assert after_the_experts(graph) == ["aggregator_node", "debate_node", "__end__"]


@pytest.mark.accepts("A1S-42")
@pytest.mark.parametrize("judge", [None, FakeJudge()])
def test_without_a_debate_the_aggregator_is_the_end(judge):
    graph = build_research_graph(FakeResearch(), None, judge)
    assert after_the_experts(graph) == ["aggregator_node", "__end__"]
    assert set(graph.get_graph().nodes) == EXPERT_NODES | {"__start__", "aggregator_node", "__end__"}


@pytest.mark.accepts("A1N-24")
def test_the_builder_takes_the_documented_parameters():
    parameters = inspect.signature(build_research_graph).parameters.values()
    documented = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [(p.name, p.default) for p in documented] == [
        ("gateway", inspect.Parameter.empty),
        ("debate_gateway", None),
        ("judge_gateway", None),
    ]


@pytest.mark.accepts("A0-02", "A0-03", "A1N-12")
async def test_the_router_sends_one_message_per_selected_expert_and_is_no_node():
    selected = state(selected_experts=["macro_intelligence", "catalyst_detective"])
    sends = await route_to_experts(selected)
    assert [send.node for send in sends] == ["macro_intelligence_node", "catalyst_detective_node"]
    assert all(isinstance(send, Send) for send in sends)
    whole = build_research_graph(FakeResearch(), FakeDebate(), FakeJudge())
    steps = {"aggregator_node", "debate_node", "judge_node"}
    assert set(whole.get_graph().nodes) == EXPERT_NODES | steps | {"__start__", "__end__"}
    reached = {node for source, node in edges(whole) if source == "__start__"}
    assert reached == EXPERT_NODES | {"aggregator_node"}, "straight from the start, by an edge"


async def test_with_nobody_left_to_ask_the_router_goes_on_to_the_aggregator():
    assert await route_to_experts(state(selected_experts=[])) == "aggregator_node"


@pytest.mark.accepts("A0-04", "A1S-48", "A1S-49", "A1N-27")
def test_the_state_has_exactly_the_eight_documented_fields():
    assert set(get_type_hints(ResearchGraphState)) == {
        "symbol",
        "selected_experts",
        "options",
        "results",
        "errors",
        "overall_status",
        "debate_outcome",
        "verdict",
    }
    hints = get_type_hints(ResearchGraphState, include_extras=True)
    assert [hints[name].__metadata__ for name in ("results", "errors")] == [(merge_dicts,), (merge_dicts,)]
    assert str(hints["debate_outcome"]) == str(hints["verdict"]) == "dict[str, typing.Any]"


@pytest.mark.accepts("A0-05")
async def test_parallel_writes_are_merged_without_loss():
    assert merge_dicts({"a": 1, "b": 1}, {"b": 2, "c": 3}) == {"a": 1, "b": 2, "c": 3}
    final = await build_research_graph(FakeResearch()).ainvoke(state())
    assert set(final["results"]) == {expert.value for expert in ExpertType}


@pytest.mark.accepts("A0-14", "A0-15", "A1N-04")
@pytest.mark.parametrize(
    ("results", "errors", "status"),
    [
        ({}, {"x": "broke"}, "failed"),
        ({}, {}, "failed"),
        ({"y": {}}, {"x": "broke"}, "partial"),
        ({"y": {}}, {}, "completed"),
    ],
)
async def test_the_aggregator_says_how_the_experts_fared_and_changes_nothing_else(results, errors, status):
    assert await aggregator_node(state(results=results, errors=errors)) == {"overall_status": status}


@pytest.mark.accepts("A1S-43", "A1N-25")
async def test_without_a_single_success_there_is_no_debate():
    debate = FakeDebate()
    assert await create_debate_node(debate)(state(overall_status="failed")) == {"debate_outcome": {}}
    assert debate.calls == []


@pytest.mark.accepts("A1N-25", "A1N-26", "A1S-45")
async def test_debate_and_judge_read_only_what_they_are_documented_to_read():
    results = {"macro_intelligence": {"x": 1}}
    debated = await create_debate_node(FakeDebate())(
        {"symbol": "S", "results": results, "overall_status": "partial"}  # type: ignore[typeddict-item]
    )
    assert debated == {"debate_outcome": OUTCOME}
    judge = FakeJudge()
    await create_judge_node(judge)({"symbol": "S", "debate_outcome": OUTCOME})  # type: ignore[typeddict-item]
    assert judge.calls == [("S", OUTCOME)]


@pytest.mark.accepts("A1S-46")
@pytest.mark.parametrize("outcome", [{}, None])
async def test_without_a_debate_the_judge_is_not_called(outcome):
    judge = FakeJudge()
    assert await create_judge_node(judge)(state(debate_outcome=outcome)) == {"verdict": {}}
    assert judge.calls == []
