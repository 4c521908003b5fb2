"""The state of the research graph. Parallel experts each write their own key; the reducer loses none of them."""

from typing import Annotated, Any, Literal, Protocol, TypedDict

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest


def merge_dicts(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, **right}


class ResearchGraphState(TypedDict):
    symbol: str
    selected_experts: list[str]
    options: dict[str, dict[str, Any]]
    results: Annotated[dict[str, Any], merge_dicts]
    errors: Annotated[dict[str, str], merge_dicts]
    overall_status: Literal["completed", "partial", "failed"]
    debate_outcome: dict[str, Any]
    verdict: dict[str, Any]


def initial_state(request: ResearchRequest) -> ResearchGraphState:
    """Where a run starts. `overall_status` is the aggregator's to decide; until then nothing has succeeded."""
    return {
        "symbol": request.symbol,
        "selected_experts": [expert.value for expert in request.experts],
        "options": request.options,
        "results": dict(request.pre_populated_results or {}),
        "errors": {},
        "overall_status": "failed",
        "debate_outcome": request.debate_outcome or {},
        "verdict": {},
    }


StateUpdate = dict[str, Any]

DEBATE = "debate"
JUDGE = "judge"


class Node(Protocol):
    async def __call__(self, state: ResearchGraphState) -> StateUpdate: ...


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
