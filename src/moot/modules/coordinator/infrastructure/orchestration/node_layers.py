"""A node is an onion. Outermost first: isolation, watch, journal, policy, retry, timeout; inside them the work."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import structlog

from moot.modules.coordinator.application.node_results import apart, whole
from moot.modules.coordinator.application.research_run import (
    NodeEvent,
    current_node,
    current_run,
)
from moot.modules.coordinator.domain.exceptions import Abstention, NodeTimeout, RecordedFailure
from moot.modules.coordinator.domain.model.session import NodeExecution
from moot.modules.coordinator.domain.ports.permission import AllowAll, NodePolicy
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.orchestration.graph_state import ResearchGraphState
from moot.modules.coordinator.infrastructure.orchestration.nodes import (
    DEBATE,
    JUDGE,
    Node,
    StateUpdate,
    failure_of,
    result_of,
    update_of,
)
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.infrastructure.execution_context import (
    count_audit_gap,
    current_execution_ctx,
    current_feedback,
)
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NodeLayers:
    """What every node of a desk is wrapped in; without a repository there is no journal."""

    repository: IResearchSessionRepository | None = None
    policy: NodePolicy = field(default_factory=AllowAll)
    timeout: float = 60.0
    clock: Clock = field(default_factory=SystemClock)

    def around(self, node_type: str, work: Node) -> Node:
        node = retried(work, node_type, self.policy, self.timeout)
        node = authorised(node, node_type, self.policy)
        if self.repository is not None:
            node = persist_node_execution(node, node_type, self.repository, clock=self.clock)
        return isolated(watched(node, node_type), node_type)


def isolated(node: Node, node_type: str) -> Node:
    async def isolated_node(state: ResearchGraphState) -> StateUpdate:
        try:
            return await node(state)
        except Exception as e:  # noqa: BLE001  # bulkhead: one node must never take the others down
            current_run().failures[node_type] = e
            log = logger.info if isinstance(e, Abstention) else logger.warning
            log("node failed", node=node_type, symbol=state["symbol"], error=str(e), exc_info=True)
            return failure_of(node_type, error_text(e, _locale()))

    return isolated_node


def watched(node: Node, node_type: str) -> Node:
    """Tells whoever watches the run when the node starts and how it ends."""

    async def watched_node(state: ResearchGraphState) -> StateUpdate:
        current_node.set(node_type)  # each node is a task of its own
        tell, started = current_run().tell, time.perf_counter()
        tell(NodeEvent(node_type, "started"))
        try:
            update = await node(state)
        except Exception as e:
            tell(NodeEvent(node_type, "failed", _ms_since(started), error=error_text(e, _locale())))
            raise
        result = result_of(node_type, update)
        tell(NodeEvent(node_type, "finished" if result else "skipped", _ms_since(started), result=result))
        return update

    return watched_node


def persist_node_execution(
    node_fn: Node, node_type: str, session_repo: IResearchSessionRepository, *, clock: Clock | None = None
) -> Node:
    """Journals each run of the node, success or failure, in a transaction of its own, before the graph goes on.

    What the journal has already, from before a crash, is not run again: it ends the way it ended then.
    """
    clock = clock or SystemClock()

    async def persisted_node(state: ResearchGraphState) -> StateUpdate:
        context = current_execution_ctx.get()
        if context is None or not context.session_id:
            return await node_fn(state)
        if recorded := current_run().recorded.get(node_type):
            return _as_recorded(recorded)
        current_run().note("node_started", node=node_type)
        session_id, started_at, started = UUID(context.session_id), clock.now(), time.perf_counter()

        async def journal(outcome: dict[str, Any]) -> None:
            took = {"started_at": started_at, "completed_at": clock.now(), "duration_ms": _ms_since(started)}
            tried = {"attempts": max(1, current_run().attempts[node_type])}
            row = {"session_id": session_id, "node_type": node_type, **tried, **took, **outcome}
            await _save(session_repo, row)

        try:
            update = await node_fn(state)
        except Exception as e:
            await journal(_failure(e, context.locale))
            raise
        await journal(_success(result_of(node_type, update)))
        return update

    return persisted_node


def authorised(node: Node, node_type: str, policy: NodePolicy) -> Node:
    """Asks the rules before and after; they may change what the node is asked, and what it came to."""

    async def authorised_node(state: ResearchGraphState) -> StateUpdate:
        asked = state["options"].get(node_type, {})
        allowed = await policy.authorise(node_type, state["symbol"], asked)
        if allowed is not None and allowed != asked:
            state = {**state, "options": {**state["options"], node_type: allowed}}
        result = result_of(node_type, await node(state))
        return update_of(node_type, await policy.review(node_type, result) if result else result)

    return authorised_node


def retried(node: Node, node_type: str, policy: NodePolicy, seconds: float) -> Node:
    """Tries again where the error is one that passes, and once more with what went wrong told to the agent.

    All attempts together have `seconds`.
    """

    async def retried_node(state: ResearchGraphState) -> StateUpdate:
        run, ends, told = current_run(), time.monotonic() + seconds, False
        await policy.node_begins(node_type)
        while True:
            run.attempts[node_type] += 1
            try:
                update = await within_time(node, node_type, seconds, ends)(state)
            except Exception as e:
                after = await policy.after_error(node_type, e)
                if after.action == "skip" and node_type in (DEBATE, JUDGE):
                    return update_of(node_type, {})
                again = after.action == "retry" or (after.action == "feedback" and not told)
                if not again or time.monotonic() + after.delay >= ends or isinstance(e, NodeTimeout):
                    raise
                told = told or after.action == "feedback"
                run.retrying(run.attempts[node_type] + 1, error_text(e, _locale()))
                current_feedback.set(after.feedback)
                await asyncio.sleep(after.delay)
            else:
                await policy.node_ends(node_type, result_of(node_type, update))
                return update

    return retried_node


def within_time(node: Node, node_type: str, seconds: float, ends: float | None = None) -> Node:
    """`seconds` in all, of which there is left what lies before `ends`."""

    async def timed_node(state: ResearchGraphState) -> StateUpdate:
        left = seconds if ends is None else ends - time.monotonic()
        try:
            async with asyncio.timeout(left) as deadline:
                return await node(state)
        except TimeoutError as e:
            if not deadline.expired():  # somebody else's: the work's own business
                raise
            raise NodeTimeout(node_type, seconds) from e

    return timed_node


def _failure(error: Exception, locale: Locale) -> dict[str, Any]:
    return {
        "status": "failed",
        "error_type": type(error).__name__,
        "error_message": error_text(error, locale),
    }


def _success(result: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", **apart(result)} if result else {"status": "skipped"}


def _as_recorded(node: NodeExecution) -> StateUpdate:
    if node.status == "failed":
        kind = Abstention if node.error_type == Abstention.__name__ else RecordedFailure
        raise kind(node.error_message or "")
    return update_of(node.node_type, whole(node) if node.status == "success" else {})


async def _save(repository: IResearchSessionRepository, row: dict[str, Any]) -> None:
    log = current_run().events
    try:
        node = NodeExecution(id=uuid4(), **row)
        await repository.save_node_execution(node, events=log.of_node(node) if log else ())
    except Exception:  # bulkhead: the record must never stop the research
        count_audit_gap()
        logger.error("node not stored", node=row["node_type"], exc_info=True)


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


def _locale() -> Locale:
    context = current_execution_ctx.get()
    return context.locale if context else DEFAULT_LOCALE
