"""A run in progress: what its nodes report, to whoever watches and to the one who concludes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NodeEvent:
    """Something a node did. `result` comes with `finished`, `error` with `failed`."""

    node_type: str
    phase: Literal["started", "finished", "failed", "skipped"]
    duration_ms: int | None = None
    result: dict[str, Any] | None = None
    error: str | None = None


Watch = Callable[[NodeEvent], None]


@dataclass
class ResearchRun:
    """`failures` keeps the exceptions the graph's state has no room for; `audit_gaps` the rows not written."""

    watch: Watch | None = None
    failures: dict[str, Exception] = field(default_factory=dict)
    audit_gaps: int = 0

    def tell(self, event: NodeEvent) -> None:
        if self.watch is None:
            return
        try:
            self.watch(event)
        except Exception:  # bulkhead: whoever watches must not change what is watched
            logger.warning("watcher failed", node=event.node_type, phase=event.phase, exc_info=True)


_current_run: ContextVar[ResearchRun | None] = ContextVar("current_run", default=None)


@contextmanager
def research_run(watch: Watch | None = None) -> Iterator[ResearchRun]:
    """The run under way here, or else a new one for the length of the block."""
    running = _current_run.get()
    if running is not None:
        yield running
        return
    token = _current_run.set(ResearchRun(watch))
    try:
        yield current_run()
    finally:
        _current_run.reset(token)


def current_run() -> ResearchRun:
    """The run a node belongs to; one that nobody watches when the node is called by itself."""
    return _current_run.get() or ResearchRun()
