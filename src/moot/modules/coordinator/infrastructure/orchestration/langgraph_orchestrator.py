"""`IResearchOrchestrationPort` on LangGraph. Each shape of the graph is compiled once."""

from typing import cast

from moot.modules.coordinator.application.results import conclude
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import (
    ResearchGraph,
    build_research_graph,
)
from moot.modules.coordinator.infrastructure.orchestration.graph_state import (
    ResearchGraphState,
    initial_state,
)
from moot.modules.coordinator.infrastructure.orchestration.node_layers import NodeLayers
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
        self._gateway = gateway
        self._debate_gateway = debate_gateway
        self._judge_gateway = judge_gateway
        self._layers = layers
        self._graphs: dict[bool, ResearchGraph] = {}

    async def run(self, request: ResearchRequest) -> ResearchResult:
        graph = self._graph(skip_debate=request.skip_debate)
        with current_context().active() as context:
            final = await graph.ainvoke(initial_state(request))
            return conclude(request, cast(ResearchGraphState, final), context.tally.failures)

    def _graph(self, *, skip_debate: bool) -> ResearchGraph:
        """Whoever skips the debate skips the judge."""
        if skip_debate not in self._graphs:
            debate, judge = (None, None) if skip_debate else (self._debate_gateway, self._judge_gateway)
            self._graphs[skip_debate] = build_research_graph(
                self._gateway, debate, judge, layers=self._layers
            )
        return self._graphs[skip_debate]
