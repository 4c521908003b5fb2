"""What the nodes of the research graph do. They raise freely: the layers around them deal with it."""

from typing import Any, Protocol

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.infrastructure.orchestration.graph_state import ResearchGraphState

StateUpdate = dict[str, Any]

DEBATE = "debate"
JUDGE = "judge"


class Node(Protocol):
    async def __call__(self, state: ResearchGraphState) -> StateUpdate: ...


def node_name(node_type: str) -> str:
    return f"{node_type}_node"


def create_expert_node(expert: ExpertType, gateway: IResearchExpertGateway) -> Node:
    """Asks one expert; it sees its own options only."""

    async def expert_node(state: ResearchGraphState) -> StateUpdate:
        own_options = state["options"].get(expert, {})
        return {"results": {expert.value: await gateway.run_expert(expert, state["symbol"], own_options)}}

    return expert_node


def create_debate_node(gateway: IDebateGateway) -> Node:
    """Lets bull and bear argue over what the experts found; without a single finding there is no debate."""

    async def debate_node(state: ResearchGraphState) -> StateUpdate:
        if state["overall_status"] == "failed":
            return {"debate_outcome": {}}
        return {"debate_outcome": await gateway.run_debate(state["symbol"], state["results"])}

    return debate_node


def create_judge_node(gateway: IJudgeGateway) -> Node:
    """Asks for a verdict on the debate; without a debate there is none."""

    async def judge_node(state: ResearchGraphState) -> StateUpdate:
        if not state.get("debate_outcome"):
            return {"verdict": {}}
        return {"verdict": await gateway.run_verdict(state["symbol"], state["debate_outcome"])}

    return judge_node


async def aggregator_node(state: ResearchGraphState) -> StateUpdate:
    """Says how the experts fared and leaves what they said untouched."""
    if not state["results"]:
        return {"overall_status": "failed"}
    return {"overall_status": "partial" if state["errors"] else "completed"}


OUTCOMES = {DEBATE: "debate_outcome", JUDGE: "verdict"}
"""Where in the state these two leave what they produced; the experts share `results`."""


def result_of(node_type: str, update: StateUpdate) -> dict[str, Any]:
    """What a node produced; empty when it skipped its work."""
    place = OUTCOMES.get(node_type)
    return dict(update[place] if place else update["results"][node_type])


def update_of(node_type: str, result: dict[str, Any]) -> StateUpdate:
    """What a node that produced `result` leaves in the state."""
    place = OUTCOMES.get(node_type)
    return {place: result} if place else {"results": {node_type: result}}


def failure_of(node_type: str, said: str) -> StateUpdate:
    """What a node leaves in the state when it failed: an expert its error, debate and judge nothing."""
    return update_of(node_type, {}) if node_type in OUTCOMES else {"errors": {node_type: said}}
