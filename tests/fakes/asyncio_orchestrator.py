"""`IResearchOrchestrationPort` without LangGraph: the same nodes, driven by plain asyncio."""

import asyncio

from moot.modules.coordinator.application.results import conclude
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import (
    NodeLayers,
    aggregator_node,
    create_debate_node,
    create_expert_node,
    create_judge_node,
)
from moot.modules.coordinator.infrastructure.orchestration.graph_state import (
    Node,
    ResearchGraphState,
    StateUpdate,
    initial_state,
    merge_dicts,
)
from moot.shared.infrastructure.execution_context import current_context


class AsyncioResearchOrchestrator(IResearchOrchestrationPort):
    def __init__(
        self,
        gateway: IResearchExpertGateway,
        debate_gateway: IDebateGateway | None = None,
        judge_gateway: IJudgeGateway | None = None,
        *,
        layers: NodeLayers | None = None,
    ) -> None:
        around = (layers or NodeLayers()).around
        self._experts = {e: around(e, create_expert_node(e, gateway)) for e in ExpertType}
        self._after: list[Node] = []
        if debate_gateway is not None:
            self._after.append(around("debate", create_debate_node(debate_gateway)))
            if judge_gateway is not None:
                self._after.append(around("judge", create_judge_node(judge_gateway)))

    async def run(self, request: ResearchRequest) -> ResearchResult:
        state = initial_state(request)
        with current_context().active() as context:
            for update in await asyncio.gather(*(self._experts[e](state) for e in request.experts)):
                state = _applied(state, update)
            for node in [aggregator_node, *([] if request.skip_debate else self._after)]:
                state = _applied(state, await node(state))
            return conclude(request, state, context.tally.failures)


def _applied(state: ResearchGraphState, update: StateUpdate) -> ResearchGraphState:
    merged = {key: merge_dicts(state[key], update[key]) for key in ("results", "errors") if key in update}
    return {**state, **update, **merged}  # type: ignore[typeddict-item]
