"""The research graph: selected experts in parallel, then the aggregator, the debate and the judge."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.infrastructure.orchestration.graph_state import (
    DEBATE,
    JUDGE,
    ResearchGraphState,
)
from moot.modules.coordinator.infrastructure.orchestration.node_layers import (
    NodeLayers,
    aggregator_node,
    create_debate_node,
    create_expert_node,
    create_judge_node,
    node_name,
)

ResearchGraph = CompiledStateGraph[ResearchGraphState, Any, ResearchGraphState, ResearchGraphState]
AGGREGATOR = node_name("aggregator")


def build_research_graph(
    gateway: IResearchExpertGateway,
    debate_gateway: IDebateGateway | None = None,
    judge_gateway: IJudgeGateway | None = None,
    *,
    layers: NodeLayers | None = None,
) -> ResearchGraph:
    """Compile one of three shapes: experts only, with debate, or with debate and judge. No debate, no judge."""
    around = (layers or NodeLayers()).around
    graph = StateGraph(ResearchGraphState)
    for expert in ExpertType:
        graph.add_node(node_name(expert), around(expert, create_expert_node(expert, gateway)))
        graph.add_edge(node_name(expert), AGGREGATOR)
    graph.add_conditional_edges(START, route_to_experts, [*map(node_name, ExpertType), AGGREGATOR])
    graph.add_node(AGGREGATOR, aggregator_node)
    last = AGGREGATOR
    if debate_gateway is not None:
        graph.add_node(node_name(DEBATE), around(DEBATE, create_debate_node(debate_gateway)))
        graph.add_edge(last, last := node_name(DEBATE))
        if judge_gateway is not None:
            graph.add_node(node_name(JUDGE), around(JUDGE, create_judge_node(judge_gateway)))
            graph.add_edge(last, last := node_name(JUDGE))
    graph.add_edge(last, END)
    return graph.compile()


async def route_to_experts(state: ResearchGraphState) -> list[Send] | str:
    """One `Send` per selected expert; with none left to ask, straight on to the aggregator.

    LangGraph runs a function that is not async in a thread, which takes longer than the function.
    """
    return [Send(node_name(expert), state) for expert in state["selected_experts"]] or AGGREGATOR
