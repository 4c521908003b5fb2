"""A run: what its nodes report while it lasts, and the answer it ends in, whatever engine ran it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import structlog

from moot.modules.coordinator.application.event_log import EventLog
from moot.modules.coordinator.domain.dtos.research_dtos import (
    ExpertResultItem,
    ModelUsage,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.exceptions import Abstention
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.events import EventType
from moot.modules.coordinator.domain.model.session import NodeExecution, VerdictStatus
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.texts import SAY as COMMON
from moot.shared.infrastructure.execution_context import Tally
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NodeEvent:
    """Something a node did. `result` comes with `finished`, `error` with `failed` and `retrying`."""

    node_type: str
    phase: Literal["started", "retrying", "finished", "failed", "skipped"]
    duration_ms: int | None = None
    result: dict[str, Any] | None = None
    error: str | None = None


Watch = Callable[[NodeEvent], None]


@dataclass
class ResearchRun:
    """`failures` keeps the exceptions the graph's state has no room for.

    `recorded` nodes have run already, before their process died; `events` is where the run is told from.
    """

    watch: Watch | None = None
    events: EventLog | None = None
    recorded: Mapping[str, NodeExecution] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)

    def tell(self, event: NodeEvent) -> None:
        if self.watch is None:
            return
        try:
            self.watch(event)
        except Exception:  # bulkhead: whoever watches must not change what is watched
            logger.warning("watcher failed", node=event.node_type, phase=event.phase, exc_info=True)

    def note(self, kind: EventType, **data: Any) -> None:
        if self.events is not None:
            self.events.note(kind, **data)

    def retrying(self, attempt: int, why: str) -> None:
        """The node under way here tries something again."""
        node = current_node.get()
        if node is not None:
            self.tell(NodeEvent(node, "retrying", error=why))
            self.note("node_retrying", node=node, attempt=attempt, reason=why)


current_node: ContextVar[str | None] = ContextVar("current_node", default=None)
_current_run: ContextVar[ResearchRun | None] = ContextVar("current_run", default=None)


@contextmanager
def research_run(watch: Watch | None = None, **more: Any) -> Iterator[ResearchRun]:
    """The run under way here, or else a new one for the length of the block."""
    running = _current_run.get()
    if running is not None:
        yield running
        return
    token = _current_run.set(ResearchRun(watch, **more))
    try:
        yield current_run()
    finally:
        _current_run.reset(token)


def current_run() -> ResearchRun:
    """The run a node belongs to; one that nobody watches when the node is called by itself."""
    return _current_run.get() or ResearchRun()


def conclude(
    request: ResearchRequest, state: Mapping[str, Any], failures: Mapping[str, Exception]
) -> ResearchResult:
    ending = _ending(request, state, failures)
    return ResearchResult(
        symbol=request.symbol,
        overall_status=state["overall_status"],
        expert_results=_expert_results(request, state),
        debate_outcome=state.get("debate_outcome") or None,
        verdict=state.get("verdict") or None,
        verdict_status=ending.status,
        reason=ending.reason.in_locale(request.locale) if ending.reason else None,
        retry_count=request.retry_count,
    )


def tally_of(calls: Iterable[Mapping[str, Any]]) -> Tally:
    """What the calls took that were really made; an answer from the record costs nothing again."""
    live = [call for call in calls if call["origin"] == "live"]
    return Tally(
        requests=len(live),
        tokens=sum(call["total_tokens"] or 0 for call in live),
        cost=sum(call["cost"] or 0.0 for call in live),
        unpriced=sum(call["status"] == "success" and call["cost"] is None for call in live),
    )


def nodes_of(request: ResearchRequest) -> list[str]:
    """The nodes that a run of `request` has to go through."""
    return [
        *(expert.value for expert in request.experts),
        *([] if request.skip_debate else ["debate", "judge"]),
    ]


def usage(tally: Tally, currency: str) -> ModelUsage:
    cost = None if tally.unpriced else tally.cost
    return ModelUsage(requests=tally.requests, tokens=tally.tokens, cost=cost, currency=currency)


def notices(symbol: str, locale: Locale) -> list[str]:
    """What a reader must know whatever the result says."""
    about = [COMMON("synthetic")] if Symbol.parse(symbol).synthetic else []
    return [message.in_locale(locale) for message in (*about, COMMON("not_advice"))]


def _expert_results(request: ResearchRequest, state: Mapping[str, Any]) -> list[ExpertResultItem]:
    reused = [ExpertType(name) for name in request.pre_populated_results or {}]
    return [
        ExpertResultItem(expert_type=expert, status="success", data=state["results"][expert])
        if expert in state["results"]
        else ExpertResultItem(expert_type=expert, status="failed", error=state["errors"][expert])
        for expert in dict.fromkeys([*reused, *request.experts])
    ]


class _Ending(NamedTuple):
    status: VerdictStatus
    reason: Message | None


def _ending(request: ResearchRequest, state: Mapping[str, Any], failures: Mapping[str, Exception]) -> _Ending:
    if state.get("verdict"):
        return _Ending("judged", None)
    if state["overall_status"] == "failed":
        return _Ending("failed", SAY("no_verdict.no_expert"))
    if request.skip_debate:
        return _Ending("skipped", SAY("no_verdict.skip_debate"))
    for node in ("debate", "judge"):
        if node in failures:
            return _of_failure(node, failures[node], request.locale)
    return _Ending("skipped", SAY("no_verdict.no_debate"))


def _of_failure(node: str, error: Exception, locale: Locale) -> _Ending:
    why = error_text(error, locale)
    if isinstance(error, Abstention):
        return _Ending("abstained", SAY("no_verdict.abstained", why=why))
    return _Ending("failed", SAY("no_verdict.failed", node=SAY(f"node.{node}"), why=why))
