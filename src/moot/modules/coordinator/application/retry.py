"""A retry: a session of its own that runs again what failed in another one and reuses what did not."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from moot.modules.coordinator.application.node_results import apart, whole
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.exceptions import SessionNotFound, SessionNotRetryable, SessionRunning
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import Unavailable


class Past(NamedTuple):
    """A session that ended, and what its nodes left behind."""

    session: ResearchSession
    nodes: Sequence[NodeExecution]


async def past_session(
    repository: IResearchSessionRepository | None, session_id: UUID, workspace: str
) -> Past:
    if repository is None:
        raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")
    session = await repository.get_session_by_id(session_id, workspace)
    if session is None:
        raise SessionNotFound(session_id)
    if not session.ended:
        raise SessionRunning(session_id)
    return Past(session, await repository.get_node_executions_by_session(session_id))


def request_again(past: Past, *, skip_debate: bool, trigger_source: str) -> ResearchRequest:
    """The same question, as of the same moment, to those who owe an answer: failed, or never heard of again.

    Debate and judge always run again, and alone when all experts had answered but no verdict could be reached.
    """
    session = past.session
    reused = dict(answers(past.nodes))
    owing = [ExpertType(name) for name in session.selected_experts if name not in reused]
    no_verdict = session.verdict_status == "failed" and bool(reused)
    if not owing and (skip_debate or not no_verdict):
        raise SessionNotRetryable(session.id, only_verdict_failed=no_verdict)
    return ResearchRequest(
        symbol=session.symbol,
        experts=owing,
        options=session.options,
        skip_debate=skip_debate,
        max_cost=session.max_cost,
        as_of=session.as_of,
        locale=session.locale,
        trigger_source=trigger_source,
        workspace=session.workspace_id,
        pre_populated_results=reused,
        parent_session_id=session.id,
        retry_count=session.retry_count + 1,
    )


def reused_nodes(request: ResearchRequest, session_id: UUID, now: datetime) -> Iterator[NodeExecution]:
    """Reused results as rows of the session that reuses them, so that it can be retried without its parents."""
    for expert, result in (request.pre_populated_results or {}).items():
        yield NodeExecution(
            id=uuid4(),
            session_id=session_id,
            node_type=expert,
            status="success",
            reused=True,
            started_at=now,
            completed_at=now,
            duration_ms=0,
            **apart(result),
        )


def answers(nodes: Sequence[NodeExecution]) -> Iterator[tuple[str, dict[str, Any]]]:
    """In the order of the desk, not of the clock: the debate must not depend on who was quicker."""
    stored = {node.node_type: node for node in nodes if node.status == "success" and node.result_data}
    for expert in ExpertType:
        if expert in stored:
            yield expert.value, whole(stored[expert])
