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
from moot.modules.coordinator.infrastructure.adapters.session_record_adapter import SessionRecordAdapter
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.orchestration.node_layers import NodeLayers
from moot.modules.coordinator.infrastructure.persistence.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.debate.container import DebateContainer
from moot.modules.judge.container import JudgeContainer
from moot.modules.llm_platform.container import LLMPlatformContainer
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.audit_trail import AuditTrail


class CoordinatorContainer:
    """`trail` None means that nothing is stored. The factories get the session of the call they serve."""

    def __init__(
        self,
        *,
        trail: AuditTrail | None,
        market_data: MarketData,
        research: Callable[[AsyncSession | None], ResearchContainer],
        debate: Callable[[AsyncSession | None], DebateContainer],
        judge: Callable[[AsyncSession | None], JudgeContainer],
        llm_platform: LLMPlatformContainer | None = None,
        clock: Clock,
        node_timeout: float,
        currency: str = "",
        policy: NodePolicy | None = None,
    ) -> None:
        sessions: SessionFactory = trail.database.session if trail else nullcontext
        self._repository = SqlResearchSessionRepository(trail) if trail else None
        self._record = _record(trail, llm_platform)
        self._directory = market_data
        self._clock, self._currency = clock, currency
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
            currency=self._currency,
        )

    def session_history(self) -> SessionHistory:
        return SessionHistory(self._repository, self._record, self._currency)


def _record(trail: AuditTrail | None, platform: LLMPlatformContainer | None) -> SessionRecordAdapter | None:
    llm, external = (platform.llm_call_logs(), platform.external_call_logs()) if platform else (None, None)
    return SessionRecordAdapter(trail, llm, external) if trail and llm and external else None
