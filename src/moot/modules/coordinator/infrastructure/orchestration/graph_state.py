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
        "errors": {name: why["error_message"] or "" for name, why in (request.failures or {}).items()},
        "overall_status": "failed",
        "debate_outcome": request.debate_outcome or {},
        "verdict": {},
    }


StateUpdate = dict[str, Any]

DEBATE = "debate"
JUDGE = "judge"


class Node(Protocol):
    async def __call__(self, state: ResearchGraphState) -> StateUpdate: ...
