"""A workflow under way: where each node stands, what went wrong in it, and what is done about errors."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from pydantic import Field

from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.validation import Strict
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

WorkflowStatus = Literal["queued", "running", "waiting", "completed", "partial", "failed", "cancelled"]
NodeState = Literal["pending", "running", "executed", "failed", "skipped"]


class ErrorHandlingAction(StrEnum):
    """`retry`: the same again. `feedback`: its agent is told and plans anew. `escalate`: a person has to look."""

    RETRY = "retry"
    SKIP = "skip"
    FEEDBACK = "feedback"
    ESCALATE = "escalate"
    ABORT = "abort"


class ErrorHandlingPolicy(Strict):
    """What is done about errors, and when."""

    max_retries: int = Field(default=3, ge=0, le=20)
    retry_delay_seconds: float = Field(default=1.0, ge=0)
    backoff_factor: float = Field(default=2.0, ge=1, le=10)
    max_delay_seconds: float = Field(default=30.0, ge=0)
    """Where doubling ends. A service that asks for a longer pause gets it."""
    jitter: float = Field(default=0.0, ge=0, le=1)
    """The share of a delay that chance may add to it, so that those who failed together do not return together."""
    skippable_node_types: tuple[str, ...] = ()
    feedback_after_retries: int = Field(default=2, ge=0)
    retryable_errors: tuple[str, ...] = ("TimeoutError", "ConnectionError", "RateLimitError")
    """As the documents name them; any other is an exception of Python's own. An error that lasts is not among them,
    whatever it is a kind of, unless its own class is named."""


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """`attempt` counts the node's failures in its workflow, from 1."""

    node_id: str
    error_type: str
    error_message: str
    timestamp: datetime
    attempt: int
    action_taken: ErrorHandlingAction


@dataclass(slots=True)
class ExecutionMetrics:
    """Tokens and cost are those of the audit. A retry is no failed node."""

    total_nodes: int = 0
    completed_nodes: int = 0
    failed_nodes: int = 0
    total_time_ms: int = 0
    total_tokens: int = 0
    total_cost: float = 0.0


@dataclass(slots=True)
class WorkflowExecution:
    """Every node is in exactly one of the five lists. `workflow_id` is the id of the session, or of the turn.

    `consecutive_failures` are nodes that failed one after another, with none that succeeded since.
    """

    workflow_id: str
    started_at: datetime
    executed_nodes: list[str] = field(default_factory=list)
    running_nodes: list[str] = field(default_factory=list)
    pending_nodes: list[str] = field(default_factory=list)
    failed_nodes: list[str] = field(default_factory=list)
    skipped_nodes: list[str] = field(default_factory=list)
    node_inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    node_outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    error_log: list[ErrorEntry] = field(default_factory=list)
    metrics: ExecutionMetrics = field(default_factory=ExecutionMetrics)
    status: WorkflowStatus = "running"
    locale: Locale = DEFAULT_LOCALE
    workspace: str = DEFAULT_WORKSPACE
    consecutive_failures: int = 0

    def place(self, node_id: str, state: NodeState) -> None:
        """Take the node out of the list it is in and put it at the end of another."""
        lists = self._lists()
        if state == "executed":
            self.consecutive_failures = 0
        elif state == "failed" and node_id not in self.failed_nodes:
            self.consecutive_failures += 1
        for nodes in lists.values():
            if node_id in nodes:
                nodes.remove(node_id)
        lists[state].append(node_id)
        self.metrics.total_nodes = sum(map(len, lists.values()))
        self.metrics.completed_nodes = len(self.executed_nodes)
        self.metrics.failed_nodes = len(self.failed_nodes)

    @property
    def outcome(self) -> WorkflowStatus:
        """What the nodes come to, once no more of them will run."""
        if not self.failed_nodes:
            return "completed"
        return "partial" if self.executed_nodes else "failed"

    def progress(self) -> dict[str, float]:
        """Failed and skipped nodes are over too: a workflow without anything left to do is at 100 percent."""
        counts: dict[str, float] = {state: len(nodes) for state, nodes in self._lists().items()}
        total, left = sum(counts.values()), counts["running"] + counts["pending"]
        over = round(100 * (total - left) / total, 1) if total else 0.0
        return {"total": total, "completed": counts.pop("executed"), **counts, "percentage": over}

    def _lists(self) -> dict[NodeState, list[str]]:
        return {
            "executed": self.executed_nodes,
            "running": self.running_nodes,
            "pending": self.pending_nodes,
            "failed": self.failed_nodes,
            "skipped": self.skipped_nodes,
        }


class WorkflowJournal(Protocol):
    async def load(self, workflow_id: str) -> WorkflowExecution | None:
        """The workflow as its record tells it; None when there is none."""
