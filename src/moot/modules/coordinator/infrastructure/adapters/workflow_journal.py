"""A session as governance sees it: a workflow, its nodes where the journal and the events say they are."""

from uuid import UUID

from moot.modules.coordinator.application.session_events import NodeProgress, progress_of
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.governance.application.error_handler import ErrorHandlingAction
from moot.modules.governance.application.execution_monitor import (
    ErrorEntry,
    NodeState,
    WorkflowExecution,
    WorkflowJournal,
)

PLACES: dict[str, NodeState] = {
    "waiting": "pending",
    "running": "running",
    "retrying": "running",
    "success": "executed",
    "failed": "failed",
    "skipped": "skipped",
}


class SessionWorkflows(WorkflowJournal):
    def __init__(self, repository: IResearchSessionRepository) -> None:
        self._repository = repository

    async def load(self, workflow_id: str) -> WorkflowExecution | None:
        try:
            session_id = UUID(workflow_id)
        except ValueError:
            return None
        session = await self._repository.get_session_by_id(session_id, None)
        if session is None:
            return None
        nodes = await self._repository.get_node_executions_by_session(session_id)
        events = await self._repository.events_after(session_id, 0)
        return _workflow(session, progress_of(session, events), nodes)


def _workflow(
    session: ResearchSession, progress: list[NodeProgress], nodes: list[NodeExecution]
) -> WorkflowExecution:
    workflow = WorkflowExecution(str(session.id), session.created_at, locale=session.locale)
    recorded = {node.node_type: node for node in nodes}
    for step in progress:
        row = recorded.get(step.node)
        workflow.place(step.node, PLACES[row.status if row else step.status])
    for node in nodes:
        if node.status == "failed":
            workflow.error_log.append(_error(node))
    workflow.status = session.status
    workflow.metrics.total_time_ms = session.duration_ms or 0
    return workflow


def _error(node: NodeExecution) -> ErrorEntry:
    return ErrorEntry(
        node_id=node.node_type,
        error_type=node.error_type or "",
        error_message=node.error_message or "",
        timestamp=node.completed_at or node.started_at,
        attempt=node.attempts,
        action_taken=ErrorHandlingAction.ABORT,
    )
