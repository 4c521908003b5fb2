"""`IResearchOrchestrationPort` on LangGraph. Each shape of the graph is compiled once."""

from typing import cast

from moot.modules.coordinator.application.results import conclude
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import (
    NodeLayers,
    ResearchGraph,
    build_research_graph,
)
from moot.modules.coordinator.infrastructure.orchestration.graph_state import (
    ResearchGraphState,
    initial_state,
)
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import current_context


class LangGraphResearchOrchestrator(IResearchOrchestrationPort):
    def __init__(
        self,
        gateway: IResearchExpertGateway,
        debate_gateway: IDebateGateway | None = None,
        judge_gateway: IJudgeGateway | None = None,
        *,
        layers: NodeLayers | None = None,
    ) -> None:
        self._gateway, self._after, self._layers = gateway, (debate_gateway, judge_gateway), layers
        self._graphs: dict[bool, ResearchGraph] = {}

    async def run(self, request: ResearchRequest) -> ResearchResult:
        if request.skip_debate not in self._graphs:  # whoever skips the debate skips the judge
            after = (None, None) if request.skip_debate else self._after
            graph = build_research_graph(self._gateway, *after, layers=self._layers)
            self._graphs[request.skip_debate] = graph
        with current_context().active() as context:
            for name, why in (request.failures or {}).items():
                context.tally.failures[name] = AppError(why["error_message"] or "", code=why["error_type"])
            final = await self._graphs[request.skip_debate].ainvoke(initial_state(request))
            return conclude(request, cast(ResearchGraphState, final), context.tally.failures)
