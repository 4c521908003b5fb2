"""Going on with a session whose process died: the request, the nodes and the spending are those of its record."""

from collections.abc import Iterable
from typing import Any

from moot.modules.coordinator.application.event_log import EventLog
from moot.modules.coordinator.application.research_run import tally_of
from moot.modules.coordinator.application.retry import answers
from moot.modules.coordinator.application.session_recorder import Opened
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.ports.session_leases import Lease
from moot.modules.coordinator.domain.ports.session_record import SessionRecord
from moot.shared.domain.clock import Clock


async def reopened(
    session: ResearchSession,
    lease: Lease,
    repository: IResearchSessionRepository,
    record: SessionRecord | None,
    clock: Clock,
) -> Opened:
    """A session as its record leaves it; calls that were under way when the process died are closed."""
    nodes = await repository.get_node_executions_by_session(session.id)
    told = await repository.events_after(session.id, 0)
    calls: list[dict[str, Any]] = []
    if record is not None:
        await record.close_calls(session.id)
        calls = await record.llm_calls(session.id, include_text=False)
    events = EventLog(repository, session.id, clock, last=told[-1].seq if told else 0)
    opened = Opened(
        session.model_copy(update={"status": "running"}),
        request_of(session, nodes),
        events=events,
        lease_token=lease.token,
        recorded={node.node_type: node for node in nodes if not node.reused},
        tally=tally_of(calls),
    )
    repository.note_event(session.id, events.opening(opened.session, resumed=bool(nodes or calls)))
    return opened


def request_of(session: ResearchSession, nodes: Iterable[NodeExecution]) -> ResearchRequest:
    """What the session was asked."""
    reused = dict(answers([node for node in nodes if node.reused]))
    return ResearchRequest(
        symbol=session.symbol,
        experts=[ExpertType(name) for name in session.selected_experts],
        options=session.options,
        skip_debate=session.skip_debate,
        as_of=session.as_of,
        locale=session.locale,
        trigger_source=session.trigger_source,
        requested_by=session.requested_by,
        workspace=session.workspace_id,
        max_cost=session.max_cost,
        pre_populated_results=reused or None,
        parent_session_id=session.parent_session_id,
        retry_count=session.retry_count,
    )
