"""Assembles the coordinator: the gateways to the other contexts, the engine, the record and the services."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from moot.modules.coordinator.application.replay import ReplayService
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import SessionHistory
from moot.modules.coordinator.application.session_pack import PackVerification, SessionPacks, check_pack
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.ports.research_session_repository import (
    NOTHING_KEPT,
    IResearchSessionRepository,
    refuse,
)
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import (
    GovernanceAdapter,
    SessionWorkflows,
)
from moot.modules.coordinator.infrastructure.adapters.research_gateway_adapter import (
    DebateGatewayAdapter,
    JudgeGatewayAdapter,
    ResearchGatewayAdapter,
    SessionFactory,
)
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.orchestration.node_layers import NodeLayers
from moot.modules.coordinator.infrastructure.records import SessionPruning, SqlSessionRecord, examine_record
from moot.modules.coordinator.infrastructure.session_repository import SqlResearchSessionRepository
from moot.modules.debate.container import DebateContainer
from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.execution_monitor import WorkflowJournal
from moot.modules.judge.container import JudgeContainer
from moot.modules.llm_platform.container import LLMPlatformContainer
from moot.modules.market_data.application.market_data import MarketData, TradingStates
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.audit import Seal
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.settings import Settings


class CoordinatorContainer:
    """`trail` None means that nothing is stored. The factories make a container for one call."""

    def __init__(
        self,
        *,
        trail: AuditTrail | None,
        market_data: MarketData,
        research: Callable[[SessionFactory], ResearchContainer],
        debate: Callable[[SessionFactory], DebateContainer],
        judge: Callable[[SessionFactory], JudgeContainer],
        llm_platform: LLMPlatformContainer,
        clock: Clock,
        settings: Settings,
        governance: CoordinatorAgent,
        trading: TradingStates,
    ) -> None:
        sessions: SessionFactory = trail.database.session if trail else nullcontext
        self._repository = _repository(trail, llm_platform)
        self._trail = trail
        self._directory = market_data
        self._clock, self._currency = clock, settings.currency
        gateways = (
            ResearchGatewayAdapter(sessions, research),
            DebateGatewayAdapter(sessions, debate),
            JudgeGatewayAdapter(sessions, judge),
        )
        policy = GovernanceAdapter(governance, clock, trading)
        layers = NodeLayers(policy=policy, timeout=settings.node_timeout, clock=clock)

        def engine(repository: IResearchSessionRepository) -> LangGraphResearchOrchestrator:
            return LangGraphResearchOrchestrator(*gateways, layers=replace(layers, repository=repository))

        self._engine, self._orchestrator = engine, engine(self._repository)
        self.sessions = Sessions(
            self._orchestrator,
            repository=self._repository,
            clock=clock,
            currency=settings.currency,
            lease_seconds=settings.lease_seconds,
            at_once=settings.max_sessions,
            waiting=settings.max_waiting,
            policy=policy,
        )

    def research_orchestration_service(self) -> ResearchOrchestrationService:
        return ResearchOrchestrationService(
            self._orchestrator,
            directory=self._directory,
            repository=self._repository,
            clock=self._clock,
            sessions=self.sessions,
        )

    def replay_service(self) -> ReplayService:
        return ReplayService(self._engine, self._repository)

    def session_history(self) -> SessionHistory:
        return SessionHistory(self._repository, self._currency)

    def session_packs(self) -> SessionPacks:
        return SessionPacks(self._repository, self._currency, examine_record)

    def session_pruning(self) -> SessionPruning:
        if self._trail is None:
            refuse()
        return SessionPruning(self._trail, self._clock)


def workflow_journal(trail: AuditTrail) -> WorkflowJournal:
    """Sessions as governance knows them: workflows, read from their record."""
    return SessionWorkflows(SqlResearchSessionRepository(trail))


def check_session_pack(data: bytes, locale: Locale, key: str = "") -> PackVerification:
    """Needs no desk: a pack is examined wherever it is, its signature with the desk's `key`. Raises `BrokenPack`."""
    return check_pack(data, partial(examine_record, seal=Seal(key) if key else None), locale)


def _repository(trail: AuditTrail | None, platform: LLMPlatformContainer) -> IResearchSessionRepository:
    llm, external = platform.llm_call_logs(), platform.external_call_logs()
    if not (trail and llm and external):
        return NOTHING_KEPT
    return SqlSessionRecord(trail, llm, external, platform.close_calls_of)
