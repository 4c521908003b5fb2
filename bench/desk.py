"""The coordinator with experts, debate and judge that only take their time."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from bench.gateways import TimedDebate, TimedJudge, TimedResearch
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_queue import SessionQueue
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.session_repository import SqlResearchSessionRepository
from moot.modules.governance.container import GovernanceContainer
from moot.shared.domain.clock import SystemClock
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database

QUESTION = {"symbol": "900001.DEMO", "experts": [expert.value for expert in ExpertType]}
TURNS_ON_THE_CRITICAL_PATH = 4  # slowest expert, two turns of the debate, judge


def desk_of_stubs(latency: float, database: Database | None = None) -> ResearchOrchestrationService:
    """Every step is put to the shipped rules. With a database: sessions under lease, journal, decisions, events and
    chain, as a desk keeps them."""
    return stub_desk(latency, AuditTrail(database) if database else None).service


class Silent(SqlResearchSessionRepository):
    """The record of a desk whose experts call nobody."""

    async def calls(self, session_id: UUID, to: str, *, include_text: bool) -> list[dict[str, Any]]:
        return []

    async def close_calls(self, session_id: UUID) -> None:
        return None


class StubDesk(NamedTuple):
    sessions: Sessions
    service: ResearchOrchestrationService


def stub_desk(
    latency: float, trail: AuditTrail | None, queue: Callable[[], SessionQueue] | None = None
) -> StubDesk:
    repository = Silent(trail) if trail else IResearchSessionRepository()
    clock = SystemClock()
    policy = GovernanceAdapter(GovernanceContainer(trail=trail, clock=clock).agent, clock)
    engine = LangGraphResearchOrchestrator(
        TimedResearch(latency),
        TimedDebate(latency),
        TimedJudge(latency),
        layers=NodeLayers(repository=repository, policy=policy),
    )
    sessions = Sessions(engine, repository=repository, policy=policy, queue=queue)
    return StubDesk(sessions, ResearchOrchestrationService(engine, repository=repository, sessions=sessions))
