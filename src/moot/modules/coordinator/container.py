"""Assembles the coordinator: the gateways to the other contexts, the engine, the record and the services.

The graph and the experts take most of a start: they are loaded when a session is to run, not to look back at one.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from moot.modules.coordinator.application.contest import ContestService
from moot.modules.coordinator.application.replay import ReplayService
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import SessionHistory
from moot.modules.coordinator.application.session_pack import PackVerification, SessionPacks, check_pack
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import (
    IResearchSessionRepository,
    refuse,
)
from moot.modules.coordinator.infrastructure.records import SessionPruning, SqlSessionRecord, examine_record
from moot.modules.coordinator.infrastructure.session_repository import SqlResearchSessionRepository
from moot.shared.domain.audit import Seal

if TYPE_CHECKING:
    from collections.abc import Callable

    from moot.modules.coordinator.application.session_queue import SessionQueue
    from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
    from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
    from moot.modules.coordinator.infrastructure.adapters.research_gateway_adapter import (
        DebateGatewayAdapter,
        JudgeGatewayAdapter,
        ResearchGatewayAdapter,
        SessionFactory,
    )
    from moot.modules.debate.container import DebateContainer
    from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
    from moot.modules.governance.application.execution_monitor import WorkflowJournal
    from moot.modules.judge.container import JudgeContainer
    from moot.modules.llm_platform.container import LLMPlatformContainer
    from moot.modules.market_data.application.market_data import MarketData
    from moot.modules.research.container import ResearchContainer
    from moot.shared.domain.clock import Clock
    from moot.shared.domain.messages import Locale
    from moot.shared.infrastructure.audit_trail import AuditTrail
    from moot.shared.infrastructure.settings import Settings


@dataclass(frozen=True)
class Neighbours:
    """Who is needed to run a session. The factories make a container for one call."""

    market_data: MarketData
    governance: CoordinatorAgent
    research: Callable[[SessionFactory], ResearchContainer]
    debate: Callable[[SessionFactory], DebateContainer]
    judge: Callable[[SessionFactory], JudgeContainer]


class Late(IResearchOrchestrationPort):
    """The engine, from the first session that is to run."""

    def __init__(self, container: CoordinatorContainer) -> None:
        self._container = container

    async def run(self, request: ResearchRequest) -> ResearchResult:
        return await (await self._container.engine()).run(request)


class CoordinatorContainer:
    """`trail` None means that nothing is stored."""

    def __init__(
        self,
        *,
        trail: AuditTrail | None,
        neighbours: Callable[[], Neighbours],
        llm_platform: LLMPlatformContainer,
        clock: Clock,
        settings: Settings,
        queue: Callable[[], SessionQueue] | None = None,
        lease_clock: Clock | None = None,
    ) -> None:
        llm, external = llm_platform.llm_call_logs(), llm_platform.external_call_logs()
        self._repository = IResearchSessionRepository()
        if trail and llm and external:
            self._repository = SqlSessionRecord(trail, llm, external, llm_platform.close_calls_of)
        self._trail, self._find_neighbours = trail, neighbours
        self._clock, self._settings, self._queue = clock, settings, queue
        self._lease_clock = lease_clock

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(
            Late(self),
            repository=self._repository,
            queue=self._queue,
            clock=self._clock,
            lease_clock=self._lease_clock,
            currency=self._settings.currency,
            lease_seconds=self._settings.lease_seconds,
            at_once=self._settings.max_sessions,
            waiting=self._settings.max_waiting,
            policy=self._policy,
        )

    @cached_property
    def _neighbours(self) -> Neighbours:
        return self._find_neighbours()

    @cached_property
    def _policy(self) -> GovernanceAdapter:
        from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter

        return GovernanceAdapter(self._neighbours.governance, self._clock, self._neighbours.market_data)

    @cached_property
    def _orchestrator(self) -> IResearchOrchestrationPort:
        return self._engine(self._repository)

    async def engine(self) -> IResearchOrchestrationPort:
        """Loaded in a thread: it takes a second or two, in which everybody else goes on."""
        if "_orchestrator" not in vars(self):
            await asyncio.to_thread(lambda: self._orchestrator)
        return self._orchestrator

    def _engine(self, repository: IResearchSessionRepository) -> IResearchOrchestrationPort:
        from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
        from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
            LangGraphResearchOrchestrator,
        )

        return LangGraphResearchOrchestrator(
            *self.gateways(),
            layers=NodeLayers(
                policy=self._policy,
                timeout=self._settings.node_timeout,
                clock=self._clock,
                repository=repository,
            ),
        )

    def gateways(self) -> tuple[ResearchGatewayAdapter, DebateGatewayAdapter, JudgeGatewayAdapter]:
        """Experts, debate and judge as a session reaches them; its moment and language are the context's."""
        from moot.modules.coordinator.infrastructure.adapters import research_gateway_adapter as adapters

        sessions: SessionFactory = self._trail.database.session if self._trail else nullcontext
        near = self._neighbours
        return (
            adapters.ResearchGatewayAdapter(sessions, near.research),
            adapters.DebateGatewayAdapter(sessions, near.debate),
            adapters.JudgeGatewayAdapter(sessions, near.judge).on_exchange(near.market_data),
        )

    async def close(self, *, grace: float = 0.0) -> None:
        if "sessions" in vars(self):
            await self.sessions.close(grace=grace)

    def research_orchestration_service(self) -> ResearchOrchestrationService:
        return ResearchOrchestrationService(
            Late(self),
            directory=self._neighbours.market_data,
            repository=self._repository,
            clock=self._clock,
            sessions=self.sessions,
        )

    def contest_service(self) -> ContestService:
        from moot.modules.debate.application.debate_service import contest

        return ContestService(self.sessions, self._repository, contest)

    def replay_service(self) -> ReplayService:
        return ReplayService(self._engine, self._repository)

    def session_history(self) -> SessionHistory:
        return SessionHistory(
            self._repository,
            self._settings.currency,
            lambda: self._policy,
            lambda: self._neighbours.market_data,
        )

    def session_packs(self) -> SessionPacks:
        return SessionPacks(self._repository, self._settings.currency, examine_record)

    def session_pruning(self) -> SessionPruning:
        if self._trail is None:
            refuse()
        return SessionPruning(self._trail, self._clock)


def workflow_journal(trail: AuditTrail) -> WorkflowJournal:
    """Sessions as governance knows them: workflows, read from their record."""
    from moot.modules.coordinator.infrastructure.adapters.governance_adapter import SessionWorkflows

    return SessionWorkflows(SqlResearchSessionRepository(trail))


def check_session_pack(data: bytes, locale: Locale, key: str = "") -> PackVerification:
    """Needs no desk: a pack is examined wherever it is, its signature with the desk's `key`. Raises `BrokenPack`."""
    return check_pack(data, partial(examine_record, seal=Seal(key) if key else None), locale)
