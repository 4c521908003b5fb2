"""The coordinator with experts, debate and judge that only take their time."""

from bench.gateways import TimedDebate, TimedJudge, TimedResearch
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_runs import SessionRuns
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.orchestration.node_layers import NodeLayers
from moot.modules.coordinator.infrastructure.persistence.leases import SqlSessionLeases
from moot.modules.coordinator.infrastructure.persistence.session_repository import (
    SqlResearchSessionRepository,
)
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database

QUESTION = {"symbol": "900001.DEMO", "experts": [expert.value for expert in ExpertType]}
TURNS_ON_THE_CRITICAL_PATH = 4  # slowest expert, two turns of the debate, judge


def desk_of_stubs(latency: float, database: Database | None = None) -> ResearchOrchestrationService:
    """With a database: sessions under lease, journal, events and chain, as a desk keeps them."""
    trail = AuditTrail(database) if database else None
    repository = SqlResearchSessionRepository(trail) if trail else None
    engine = LangGraphResearchOrchestrator(
        TimedResearch(latency),
        TimedDebate(latency),
        TimedJudge(latency),
        layers=NodeLayers(repository=repository),
    )
    leases = SqlSessionLeases(trail) if trail else None
    runs = SessionRuns(engine, repository=repository, leases=leases)
    return ResearchOrchestrationService(engine, repository=repository, runs=runs)
