"""Asking a session's question again: the rest of it after a crash, or what failed, in a session of its own."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from moot.modules.coordinator.application.results import from_columns, to_columns
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.exceptions import SessionNotRetryable, SessionRunning
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository


class Past(NamedTuple):
    """A session that ended, and what its nodes left behind."""

    session: ResearchSession
    nodes: Sequence[NodeExecution]


async def past_session(repository: IResearchSessionRepository, session_id: UUID, workspace: str) -> Past:
    """Raises `SessionNotFound`, `SessionRunning`."""
    session = await repository.known_session(session_id, workspace)
    if not session.ended:
        raise SessionRunning(session_id)
    return Past(session, await repository.get_node_executions_by_session(session_id))


def request_of(session: ResearchSession, nodes: Iterable[NodeExecution]) -> ResearchRequest:
    """What the session was asked."""
    reused = dict(_answers(node for node in nodes if node.reused))
    return ResearchRequest(**session.asked(), pre_populated_results=reused or None)


def request_again(past: Past, *, skip_debate: bool) -> ResearchRequest:
    """The same question, as of the same moment, to those who owe an answer: failed, or never heard of again.

    Debate and judge always run again, and alone when all experts had answered but no verdict could be reached.
    """
    session, reused = past.session, dict(_answers(past.nodes))
    owing = [expert for expert in session.experts if expert not in reused]
    no_verdict = session.verdict_status == "failed" and bool(reused)
    if not owing and (skip_debate or not no_verdict):
        raise SessionNotRetryable(session.id, only_verdict_failed=no_verdict)
    return request_of(session, ()).model_copy(
        update={
            "experts": owing,
            "skip_debate": skip_debate,
            "pre_populated_results": reused,
            "parent_session_id": session.id,
            "retry_count": session.retry_count + 1,
        }
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
            **to_columns(result),
        )


def _answers(nodes: Iterable[NodeExecution]) -> Iterator[tuple[str, dict[str, Any]]]:
    """In the order of the desk, not of the clock: the debate must not depend on who was quicker."""
    stored = {node.node_type: node for node in nodes if node.status == "success" and node.result_data}
    for expert in ExpertType:
        if expert in stored:
            yield expert.value, from_columns(stored[expert])
