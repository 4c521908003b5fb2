"""What a run tells while it lasts, numbered, and stored along with what it tells about."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.expert_summary import summarise
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.events import EventType, SessionEvent
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.shared.domain.clock import Clock

EXPERTS = set(ExpertType)


class EventLog:
    """The events of one session, after the `last` that are stored already. Only its owner adds to them."""

    def __init__(
        self, repository: IResearchSessionRepository, session_id: UUID, clock: Clock, *, last: int = 0
    ) -> None:
        self._repository, self._session_id = repository, session_id
        self._clock, self._last = clock, last

    def event(self, kind: EventType, **data: Any) -> SessionEvent:
        """The next one, for somebody who stores it."""
        self._last += 1
        return SessionEvent(seq=self._last, type=kind, at=self._clock.now(), data=data)

    def note(self, kind: EventType, **data: Any) -> None:
        self._repository.note_event(self._session_id, self.event(kind, **data))

    def opening(self, session: ResearchSession, *, resumed: bool = False) -> SessionEvent:
        return self.event("session", **at_the_start(session, resumed=resumed))

    def of_node(self, node: NodeExecution) -> list[SessionEvent]:
        return [self.event(kind, **data) for kind, data in at_the_end(node)]

    def closing(self, session: ResearchSession) -> SessionEvent:
        return self.event("done", **when_done(session))


def at_the_start(session: ResearchSession, *, resumed: bool = False) -> dict[str, Any]:
    said = session.model_dump(include={"status", "symbol", "locale", "skip_debate"})
    return said | {"experts": session.selected_experts, "resumed": resumed}


def at_the_end(node: NodeExecution) -> Iterator[tuple[EventType, dict[str, Any]]]:
    """How a node ended; what debate and judge came to is told by itself too."""
    known = {"node": node.node_type, "duration_ms": node.duration_ms}
    if node.status == "failed":
        yield "node_failed", known | {"error": node.error_message}
        return
    result = node.result_data or {}
    ended = {"status": node.status, "reused": node.reused}
    yield "node_finished", known | ended | _view(node.node_type, result)
    if result and node.node_type == "debate":
        yield "debate", _some(result, "direction", "confidence")
    if result and node.node_type == "judge":
        yield "verdict", _some(result, "action", "position_percent", "confidence")


def when_done(session: ResearchSession) -> dict[str, Any]:
    return session.model_dump(include={"status", "verdict_status", "verdict_action", "reason"})


def _view(node_type: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """An expert's signal and how sure it is of it."""
    if node_type not in EXPERTS:
        return {}
    try:
        summary = summarise(ExpertType(node_type), dict(result))
    except (KeyError, TypeError):  # whoever reads the result will say what is missing in it
        return {}
    return {"signal": summary.signal, "confidence": summary.confidence}


def _some(result: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: result.get(name) for name in names}
