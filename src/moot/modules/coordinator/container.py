"""Assembles the coordinator: the gateways to the other contexts, the engine, the record and the services."""

from collections.abc import Callable
from contextlib import nullcontext

from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import SessionHistory
from moot.modules.coordinator.domain.ports.permission import AllowAll, NodePolicy
from moot.modules.coordinator.infrastructure.adapters.debate_gateway_adapter import DebateGatewayAdapter
from moot.modules.coordinator.infrastructure.adapters.judge_gateway_adapter import JudgeGatewayAdapter
from moot.modules.coordinator.infrastructure.adapters.research_gateway_adapter import ResearchGatewayAdapter
from moot.modules.coordinator.infrastructure.adapters.session_factory import SessionFactory
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.orchestration.node_layers import NodeLayers
from moot.modules.coordinator.infrastructure.persistence.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.debate.container import DebateContainer
from moot.modules.judge.container import JudgeContainer
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database


class CoordinatorContainer:
    """`database` None means that nothing is stored. The factories get the session of the call they serve."""

    def __init__(
        self,
        *,
        database: Database | None,
        market_data: MarketData,
        research: Callable[[AsyncSession | None], ResearchContainer],
        debate: Callable[[AsyncSession | None], DebateContainer],
        judge: Callable[[AsyncSession | None], JudgeContainer],
        clock: Clock,
        node_timeout: float,
        policy: NodePolicy | None = None,
    ) -> None:
        sessions: SessionFactory = database.session if database else nullcontext
        self._repository = SqlResearchSessionRepository(database) if database else None
        self._directory = market_data
        self._clock = clock
        self._orchestrator = LangGraphResearchOrchestrator(
            ResearchGatewayAdapter(sessions, research),
            DebateGatewayAdapter(sessions, debate),
            JudgeGatewayAdapter(sessions, judge),
            layers=NodeLayers(
                repository=self._repository, policy=policy or AllowAll(), timeout=node_timeout, clock=clock
            ),
        )

    def research_orchestration_service(self) -> ResearchOrchestrationService:
        return ResearchOrchestrationService(
            self._orchestrator,
            directory=self._directory,
            repository=self._repository,
            clock=self._clock,
        )

    def session_history(self) -> SessionHistory:
        return SessionHistory(self._repository)
