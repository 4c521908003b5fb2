"""A run: one session under way in this process, what it tells on the way, and how it is stopped."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import structlog

from moot.modules.coordinator.application.results import summarise
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.exceptions import (
    ApprovalNeeded,
    SessionCancelled,
    SessionInterrupted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import (
    EventType,
    NodeExecution,
    ResearchSession,
    SessionEvent,
    Told,
)
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.execution_context import (
    ExecutionContext,
    LeaseLost,
    Tally,
)

logger = structlog.get_logger(__name__)

Watch = Callable[[SessionEvent], None]
Reason = Literal["cancelled", "interrupted", "taken over"]
STOPPED: dict[Reason, type[SessionCancelled | SessionInterrupted | SessionTakenOver]] = {
    "cancelled": SessionCancelled,
    "interrupted": SessionInterrupted,
    "taken over": SessionTakenOver,
}


@dataclass(eq=False)
class Run:
    """Of a session that is opened here, or was by a process that died: then `recorded` is what its nodes did there.

    It may run while it is being stored: what follows is stored after it. `told` counts its events.
    """

    session_id: UUID
    repository: IResearchSessionRepository
    clock: Clock
    watch: Watch | None = None
    session: ResearchSession = field(init=False)
    request: ResearchRequest = field(init=False)
    lease_token: int | None = None
    recorded: Mapping[str, NodeExecution] | None = None
    tally: Tally = field(default_factory=Tally)
    told: int = 0
    storing: asyncio.Task[bool] | None = None
    task: asyncio.Task[ResearchResult] | None = None
    stopped: Reason | None = None
    on_begun: Callable[[], None] | None = None
    """Called when the first node has started."""
    on_progress: Callable[[], None] | None = None
    """Called when a node has ended."""

    def context(self) -> ExecutionContext:
        session = self.session
        return ExecutionContext(
            session_id=str(session.id) if self.repository.lasting else "",
            as_of=session.as_of,
            locale=session.locale,
            workspace=session.workspace_id,
            experts=tuple(self.request.panel),
            max_cost=session.max_cost,
            caller=session.requested_by or "",
            began_at=session.created_at,
            answers="live" if self.recorded is None else "resume",
            lease_token=self.lease_token,
            run=self,
            tally=self.tally,
        )

    def note(self, kind: EventType, **data: Any) -> None:
        """Tell something that is not part of a row, and have it stored soon."""
        if kind == "node_started" and self.on_begun is not None:
            self.on_begun()
        for event in self.events([(kind, data)]):
            self.repository.note_event(self.session_id, event)
            self.tell([event])

    def events(self, told: Iterable[Told]) -> list[SessionEvent]:
        """The next ones, for somebody who stores and tells them; none where nobody would hear them."""
        if self.watch is None and not self.repository.lasting:
            return []
        now, first = self.clock.now(), self.told + 1
        events = [
            SessionEvent(seq=n, type=kind, at=now, data=data) for n, (kind, data) in enumerate(told, first)
        ]
        self.told += len(events)
        return events

    @property
    def unfinished(self) -> bool:
        """Whether there are nodes that the record knows nothing of."""
        return not set(self.session.node_types) <= set(self.recorded or ())

    def tell(self, events: Iterable[SessionEvent]) -> None:
        for event in events:
            if event.type in ("node_finished", "node_failed") and self.on_progress is not None:
                self.on_progress()
            if self.watch is not None:
                show(self.watch, event)

    async def wait_until_stored(self) -> None:
        """Return when the session is, or cannot be, stored."""
        if self.storing is not None:
            await asyncio.wait([self.storing])

    async def result(self) -> ResearchResult:
        """What the run comes to; who is cancelled while waiting for it cancels it."""
        assert self.task is not None
        try:
            return await self.task
        except asyncio.CancelledError:
            if self.stopped is None:
                raise
            raise STOPPED[self.stopped](self.session_id) from None
        except LeaseLost:
            raise SessionTakenOver(self.session_id) from None
        except SessionStopped as e:
            raise e.error from None
        except ApprovalNeeded as e:
            raise SessionWaiting(self.session_id, e) from None

    def stop(self, reason: Reason) -> None:
        if self.stopped is None and self.task is not None and not self.task.done():
            self.stopped = reason
            self.task.cancel()


def show(watch: Watch, event: SessionEvent) -> None:
    try:
        watch(event)
    except Exception:  # bulkhead: whoever watches must not change what is watched
        logger.warning("watcher failed", event_type=event.type, exc_info=True)


OWN_EVENTS: Mapping[str, tuple[EventType, str, tuple[str, ...]]] = {
    "debate": ("debate", "direction", ()),
    "judge": ("verdict", "action", ("position_percent",)),
}
"""What these two come to is told by itself too: as what, which way it points, and what else of it."""


def tell_start(session: ResearchSession, *, resumed: bool = False) -> dict[str, Any]:
    told = {"status", "symbol", "locale", "skip_debate", "experts"}
    return session.model_dump(include=told, by_alias=False) | {"resumed": resumed}


def tell_node(node: NodeExecution) -> Iterator[Told]:
    """How a node ended, and which way it points."""
    known = {"node": node.node_type, "duration_ms": node.duration_ms}
    if node.status == "failed":
        yield "node_failed", known | {"error": node.error_message}
        return
    known |= {"status": node.status, "reused": node.reused}
    result = node.result_data
    if not result or node.node_type not in OWN_EVENTS:
        yield "node_finished", known | _view(node.node_type, result or {})
        return
    kind, signal, others = OWN_EVENTS[node.node_type]
    sure = {"confidence": result.get("confidence")}
    yield "node_finished", known | {"signal": result.get(signal)} | sure
    yield kind, {name: result.get(name) for name in (signal, *others)} | sure


def tell_end(session: ResearchSession) -> dict[str, Any]:
    return session.model_dump(include={"status", "verdict_status", "verdict_action", "reason"})


def _view(node_type: str, result: dict[str, Any]) -> dict[str, Any]:
    """What an expert sees, and how sure they are of it."""
    try:
        summary = summarise(ExpertType(node_type), result)
    except (KeyError, TypeError, ValueError):  # whoever reads the result will say what is missing in it
        return {}
    return {"signal": summary.signal, "confidence": summary.confidence}
