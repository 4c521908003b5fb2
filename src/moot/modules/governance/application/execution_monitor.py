"""Watches workflows: where each node stands, what it was given and gave, what went wrong, what it all took."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import structlog

from moot.modules.governance.application.error_handler import ErrorHandler
from moot.modules.governance.domain.workflow import (
    ErrorEntry,
    ErrorHandlingAction,
    NodeState,
    WorkflowExecution,
    WorkflowJournal,
)
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.execution_context import current_context
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


class Reaction(NamedTuple):
    """What follows an error: again after `delay` seconds, again knowing `feedback`, or not."""

    action: ErrorHandlingAction
    delay: float = 0.0
    feedback: dict[str, Any] | None = None


def current_workflow_id() -> str:
    """That of the session or turn under way; one that is not stored has no id, and is one of a kind all the same."""
    return current_context().session_id or f"run-{id(current_context().tally)}"


class ExecutionMonitor:
    """Memory is a cache of the journal: what has ended is dropped when `MOST_KEPT` others have ended later."""

    def __init__(
        self, error_handler: ErrorHandler, clock: Clock, *, journal: WorkflowJournal | None = None
    ) -> None:
        self._handler, self._clock, self._journal = error_handler, clock, journal
        self._workflows: dict[str, WorkflowExecution] = {}
        self._ended: dict[str, None] = {}

    def __contains__(self, workflow_id: str) -> bool:
        return workflow_id in self._workflows

    async def on_workflow_start(self, workflow_id: str, node_ids: Iterable[str]) -> None:
        """Begins anew where a workflow of this id was known before. Language and workspace are those at work here."""
        self._forget(workflow_id)
        here = current_context()
        workflow = WorkflowExecution(
            workflow_id, self._clock.now(), locale=here.locale, workspace=here.workspace
        )
        workflow.pending_nodes = list(dict.fromkeys(node_ids))
        workflow.metrics.total_nodes = len(workflow.pending_nodes)
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

    async def react(
        self, workflow_id: str, node_id: str, error: Exception, *, node_type: str | None = None
    ) -> Reaction:
        """As `on_node_error`, with what is needed to do it."""
        action = await self.on_node_error(workflow_id, node_id, error, node_type=node_type)
        if action is ErrorHandlingAction.RETRY:
            attempt = self._handler.failures_of(workflow_id, node_id)
            again = self._handler.create_retry_context(node_id, attempt, error)
            return Reaction(action, again["delay_seconds"])
        workflow = self.get_context(workflow_id)
        if action is ErrorHandlingAction.FEEDBACK and workflow is not None:
            return Reaction(action, feedback=self._handler.create_feedback_message(node_id, error, workflow))
        return Reaction(action)

    async def on_workflow_complete(self, workflow_id: str) -> None:
        """Its status is what the nodes come to. A node broken off before its end has yet to run."""
        if workflow := self._under_way(workflow_id):
            for node_id in list(workflow.running_nodes):
                workflow.place(node_id, "pending")
            self._measure(workflow)
            workflow.status = workflow.outcome
            self._handler.forget(workflow_id)
            self._ended[workflow_id] = None
            if len(self._ended) > MOST_KEPT:
                self._forget(next(iter(self._ended)))

    def facts(self) -> dict[str, Any]:
        """What rules may ask about what is under way here; nothing is spent where that is no workflow.

        `running` are the other workflows of this process.
        """
        tally, workflow = current_context().tally, self.get_context(current_workflow_id())
        took = workflow.metrics.total_time_ms / 1000 if workflow else 0.0
        return {
            "iteration_count": max(tally.attempts.values(), default=0),
            "token_used": tally.tokens,
            "cost": tally.cost,
            "execution_time": max(0.0, took - tally.waiting.seconds),
            "consecutive_failures": workflow.consecutive_failures if workflow else 0,
            "running": self.count_active()
            - (workflow is not None and workflow.workflow_id not in self._ended),
        }

    def set_usage(self, workflow_id: str, tokens: int, cost: float) -> None:
        """As the audit has counted until now."""
        if workflow := self._under_way(workflow_id):
            workflow.metrics.total_tokens, workflow.metrics.total_cost = tokens, cost

    def get_context(self, workflow_id: str) -> WorkflowExecution | None:
        """The workflow as it is at this moment, if memory has it."""
        workflow = self._workflows.get(workflow_id)
        if workflow is not None and workflow_id not in self._ended:  # what has ended stays as it was
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
        return list(filter(None, map(self.get_context, self._workflows)))

    def count_active(self, workspace: str | None = None) -> int:
        """Those under way in this process, of one workspace or of all."""
        if workspace is None:  # every decision asks
            return len(self._workflows) - len(self._ended)
        active = (each for name, each in self._workflows.items() if name not in self._ended)
        return sum(workspace == workflow.workspace for workflow in active)

    def get_progress(self, workflow_id: str) -> dict[str, float] | None:
        workflow = self.get_context(workflow_id)
        return workflow.progress() if workflow else None

    def _under_way(self, workflow_id: str) -> WorkflowExecution | None:
        if workflow_id in self._workflows and workflow_id not in self._ended:
            return self._workflows[workflow_id]
        logger.warning("no such workflow under way", workflow_id=workflow_id)
        return None

    def _measure(self, workflow: WorkflowExecution) -> None:
        took = self._clock.now() - workflow.started_at
        workflow.metrics.total_time_ms = round(took.total_seconds() * 1000)

    def _forget(self, workflow_id: str) -> None:
        self._ended.pop(workflow_id, None)
        self._workflows.pop(workflow_id, None)
        self._handler.forget(workflow_id)
