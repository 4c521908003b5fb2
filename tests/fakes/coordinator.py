"""Stand-ins for what the coordinator talks to, one per port."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import (
    IdempotencyKey,
    NodeExecution,
    ResearchSession,
    SessionEvent,
    SessionFilter,
    SessionPage,
)
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.shared.domain.leases import Lease

TECHNICAL = ExpertType.TECHNICAL_ANALYST
FINANCIAL = ExpertType.FINANCIAL_AUDITOR
VALUATION = ExpertType.VALUATION_MODELER
MACRO = ExpertType.MACRO_INTELLIGENCE
CATALYST = ExpertType.CATALYST_DETECTIVE

OUTCOME = {
    "direction": "BULLISH",
    "confidence": 0.7,
    "bull_case": {"core_thesis": "cheap", "supporting_arguments": ["pe 9"], "acknowledged_risks": ["debt"]},
    "bear_case": {
        "core_thesis": "slow",
        "supporting_arguments": ["pmi 48"],
        "acknowledged_strengths": ["roe"],
    },
    "risk_matrix": [],
    "key_disagreements": [],
    "conflict_resolution": "value outweighs growth",
    "narrative_report": "the debate in words",
}
VERDICT = {
    "action": "BUY",
    "position_percent": 0.2,
    "confidence": 0.66,
    "entry_strategy": "10.0",
    "stop_loss": "9.0",
    "take_profit": "12.0",
    "time_horizon": "months",
    "risk_warnings": ["debt", "pmi"],
    "reasoning": "cheap enough",
    "narrative_report": "the verdict in words",
}

Answer = Mapping[str, Any] | Exception


async def _give(answer: Answer | None, default: Mapping[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    if isinstance(answer, Exception):
        raise answer
    return dict(default if answer is None else answer)


class FakeResearch(IResearchExpertGateway):
    """Answers as told, by expert; an expert it was told nothing about says so."""

    def __init__(self, answers: Mapping[ExpertType, Answer] | None = None) -> None:
        self._answers = answers or {}
        self.calls: list[tuple[ExpertType, str, dict[str, Any] | None]] = []

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self.calls.append((expert_type, symbol, options))
        return await _give(self._answers.get(expert_type), {"said": expert_type.value})

    @property
    def asked(self) -> set[ExpertType]:
        return {expert for expert, _, _ in self.calls}


class FakeDebate(IDebateGateway):
    def __init__(self, answer: Answer = OUTCOME) -> None:
        self._answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((symbol, expert_results))
        return await _give(self._answer, OUTCOME)


class FakeJudge(IJudgeGateway):
    def __init__(self, answer: Answer = VERDICT) -> None:
        self._answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((symbol, debate_outcome))
        return await _give(self._answer, VERDICT)


class FakeSessions(IResearchSessionRepository):
    """Keeps sessions in memory; `broken` makes every write fail, as a full disk would."""

    lasting = True

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.sessions: dict[UUID, ResearchSession] = {}
        self.nodes: list[NodeExecution] = []
        self.events: list[SessionEvent] = []

    async def save_session(
        self,
        session: ResearchSession,
        *,
        nodes: Sequence[NodeExecution] = (),
        events: Sequence[SessionEvent] = (),
        lease: Lease | None = None,
        key: IdempotencyKey | None = None,
        at_leisure: bool = False,
    ) -> None:
        self._check()
        self.sessions[session.id] = session
        self.nodes += nodes
        self.events += events

    async def update_session(self, session: ResearchSession, *, events: Sequence[SessionEvent] = ()) -> None:
        self._check()
        self.sessions[session.id] = session
        self.events += events

    async def save_node_execution(self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()) -> None:
        self._check()
        self.nodes.append(node)
        self.events += events

    def note_event(self, session_id: UUID, event: SessionEvent) -> None:
        self.events.append(event)

    async def events_after(self, session_id: UUID, seq: int) -> list[SessionEvent]:
        return [event for event in self.events if event.seq > seq]

    async def wait_for_events(self, session_id: UUID, seconds: float) -> None:
        await asyncio.sleep(0)

    async def get_session_by_key(self, workspace_id: str, key: IdempotencyKey) -> ResearchSession | None:
        return None

    async def get_session_by_id(self, session_id: UUID, workspace_id: str | None) -> ResearchSession | None:
        session = self.sessions.get(session_id)
        return session if session and workspace_id in (None, session.workspace_id) else None

    async def list_sessions(self, wanted: SessionFilter) -> SessionPage:
        items = [s for s in self.sessions.values() if s.workspace_id == wanted.workspace_id]
        return SessionPage(total=len(items), page=wanted.page, page_size=wanted.page_size, items=items)

    async def get_node_executions_by_session(self, session_id: UUID) -> list[NodeExecution]:
        return [node for node in self.nodes if node.session_id == session_id]

    async def close_calls(self, session_id: UUID) -> None:
        """As the record of a desk whose experts call nobody."""

    async def calls(self, session_id: UUID, to: str, *, include_text: bool) -> list[dict[str, Any]]:
        return []

    def node(self, node_type: str) -> NodeExecution:
        (found,) = [node for node in self.nodes if node.node_type == node_type]
        return found

    @property
    def only_session(self) -> ResearchSession:
        (session,) = self.sessions.values()
        return session

    def _check(self) -> None:
        if self.broken:
            raise OSError("no space left on device")
