"""Watches workflows: where each node stands, what it was given and gave, what went wrong, what it all took."""

from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from moot.modules.governance.application.error_handler import ErrorHandler
from moot.modules.governance.domain.workflow import (
    ErrorEntry,
    ErrorHandlingAction,
    NodeState,
    WorkflowExecution,
    WorkflowJournal,
    WorkflowProgress,
    WorkflowStatus,
)
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.infrastructure.redaction import error_text

__all__ = ["ErrorEntry", "ExecutionContext", "NodeState", "WorkflowExecution", "WorkflowJournal"]

logger = structlog.get_logger(__name__)

ExecutionContext = WorkflowExecution

MOST_KEPT = 256
PLACES: dict[ErrorHandlingAction, NodeState] = {
    ErrorHandlingAction.RETRY: "running",
    ErrorHandlingAction.SKIP: "skipped",
}
"""Where a node stands after an error; after anything else, it has failed."""


class ExecutionMonitor:
    """Memory is a cache of the journal: what has ended is dropped when `keep` others have ended later."""

    def __init__(
        self,
        error_handler: ErrorHandler,
        clock: Clock,
        *,
        journal: WorkflowJournal | None = None,
        keep: int = MOST_KEPT,
    ) -> None:
        self._handler, self._clock, self._journal = error_handler, clock, journal
        self._keep = keep
        self._workflows: dict[str, WorkflowExecution] = {}
        self._ended: dict[str, None] = {}

    async def on_workflow_start(
        self, workflow_id: str, node_ids: Iterable[str], *, locale: Locale = DEFAULT_LOCALE
    ) -> None:
        """Begins anew where a workflow of this id was known before."""
        self._forget(workflow_id)
        workflow = WorkflowExecution(workflow_id, self._clock.now(), locale=locale)
        for node_id in dict.fromkeys(node_ids):
            workflow.place(node_id, "pending")
        self._workflows[workflow_id] = workflow

    async def on_node_start(self, workflow_id: str, node_id: str, inputs: Mapping[str, Any]) -> None:
        if workflow := self._under_way(workflow_id):
            workflow.node_inputs[node_id] = dict(inputs)
            workflow.place(node_id, "running")

    async def on_node_complete(self, workflow_id: str, node_id: str, outputs: Mapping[str, Any]) -> None:
        if workflow := self._under_way(workflow_id):
            workflow.node_outputs[node_id] = dict(outputs)
            workflow.place(node_id, "executed")
            self._handler.forget(workflow_id, node_id)

    async def on_node_error(
        self, workflow_id: str, node_id: str, error: Exception, *, node_type: str | None = None
    ) -> ErrorHandlingAction:
        """What to do now. A node that is tried again is still running; `node_type` is the node's id by default."""
        workflow = self._under_way(workflow_id)
        if workflow is None:
            return ErrorHandlingAction.ABORT
        action = self._handler.determine_action(node_id, node_type or node_id, error, workflow)
        said, attempt = error_text(error, workflow.locale), self._handler.failures_of(workflow_id, node_id)
        entry = ErrorEntry(node_id, type(error).__name__, said, self._clock.now(), attempt, action)
        workflow.error_log.append(entry)
        workflow.place(node_id, PLACES.get(action, "failed"))
        return action

    async def on_workflow_complete(self, workflow_id: str, status: WorkflowStatus | None = None) -> None:
        """`status` is what the nodes come to, unless given. A node broken off before its end has yet to run."""
        if workflow := self._under_way(workflow_id):
            for node_id in list(workflow.running_nodes):
                workflow.place(node_id, "pending")
            self._measure(workflow)
            workflow.status = status or workflow.outcome
            self._handler.forget(workflow_id)
            self._ended[workflow_id] = None
            if len(self._ended) > self._keep:
                self._forget(next(iter(self._ended)))

    def set_usage(self, workflow_id: str, tokens: int, cost: float) -> None:
        """As the audit has counted until now."""
        if workflow := self._under_way(workflow_id):
            workflow.metrics.total_tokens, workflow.metrics.total_cost = tokens, cost

    def get_context(self, workflow_id: str) -> WorkflowExecution | None:
        """The workflow as it is at this moment, if memory has it."""
        workflow = self._workflows.get(workflow_id)
        if workflow is not None:
            self._measure(workflow)
        return workflow

    async def context_of(self, workflow_id: str) -> WorkflowExecution | None:
        """The workflow from memory, else from its record."""
        workflow = self.get_context(workflow_id)
        if workflow is None and self._journal is not None:
            return await self._journal.load(workflow_id)
        return workflow

    def get_all_workflows(self) -> list[WorkflowExecution]:
        """Those in memory, in the order in which they started."""
        for workflow in self._workflows.values():
            self._measure(workflow)
        return list(self._workflows.values())

    @property
    def active_workflows(self) -> int:
        return len(self._workflows) - len(self._ended)

    def get_progress(self, workflow_id: str) -> WorkflowProgress | None:
        workflow = self.get_context(workflow_id)
        return workflow.progress() if workflow else None

    def _under_way(self, workflow_id: str) -> WorkflowExecution | None:
        if workflow_id in self._workflows and workflow_id not in self._ended:
            return self._workflows[workflow_id]
        logger.warning("no such workflow under way", workflow_id=workflow_id)
        return None

    def _measure(self, workflow: WorkflowExecution) -> None:
        """Bring the time up to date; what has ended stays as it was."""
        if workflow.workflow_id in self._ended:
            return
        took = self._clock.now() - workflow.started_at
        workflow.metrics.total_time_ms = round(took.total_seconds() * 1000)

    def _forget(self, workflow_id: str) -> None:
        self._ended.pop(workflow_id, None)
        self._workflows.pop(workflow_id, None)
        self._handler.forget(workflow_id)
