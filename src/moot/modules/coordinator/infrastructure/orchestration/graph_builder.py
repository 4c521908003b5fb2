"""The research graph: selected experts in parallel, then the aggregator, the debate and the judge.

A node is an onion. Outermost first: isolation, journal, policy, retry within its time; inside them the work.
"""

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import structlog
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from moot.modules.coordinator.application.results import from_columns, to_columns
from moot.modules.coordinator.application.run import Run, tell_node
from moot.modules.coordinator.domain.exceptions import Abstention, NodeTimeout
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, SessionEvent
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.permission import NodePolicy
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.infrastructure.orchestration.graph_state import (
    DEBATE,
    JUDGE,
    Node,
    ResearchGraphState,
    StateUpdate,
)
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import (
    ExecutionContext,
    current_context,
    current_execution_ctx,
    tell_retry,
)
from moot.shared.infrastructure.redaction import REDACT, error_text
from moot.shared.infrastructure.working_time import WorkingTime

logger = structlog.get_logger(__name__)

OWN_WORK = 60.0
"""Seconds a node may take for all that is not a model call."""
OUTCOMES = {DEBATE: "debate_outcome", JUDGE: "verdict"}
"""Where in the state these two leave what they produced; the experts share `results`."""
INPUTS = {DEBATE: "results", JUDGE: "debate_outcome"}
"""Where in the state these two find what they work on; an expert has its options."""


def node_name(node_type: str) -> str:
    return f"{node_type}_node"


ResearchGraph = CompiledStateGraph[ResearchGraphState, Any, ResearchGraphState, ResearchGraphState]
AGGREGATOR = node_name("aggregator")


def build_research_graph(
    gateway: IResearchExpertGateway,
    debate_gateway: IDebateGateway | None = None,
    judge_gateway: IJudgeGateway | None = None,
    *,
    layers: "NodeLayers | None" = None,
) -> ResearchGraph:
    """Compile one of three shapes: experts only, with debate, or with debate and judge. No debate, no judge."""
    around = (layers or NodeLayers()).around
    graph = StateGraph(ResearchGraphState)
    for expert in ExpertType:
        graph.add_node(node_name(expert), around(expert, create_expert_node(expert, gateway)))
        graph.add_edge(node_name(expert), AGGREGATOR)
    graph.add_conditional_edges(START, route_to_experts, [*map(node_name, ExpertType), AGGREGATOR])
    graph.add_node(AGGREGATOR, aggregator_node)
    last = AGGREGATOR
    if debate_gateway is not None:
        graph.add_node(node_name(DEBATE), around(DEBATE, create_debate_node(debate_gateway)))
        graph.add_edge(last, last := node_name(DEBATE))
        if judge_gateway is not None:
            graph.add_node(node_name(JUDGE), around(JUDGE, create_judge_node(judge_gateway)))
            graph.add_edge(last, last := node_name(JUDGE))
    graph.add_edge(last, END)
    return graph.compile()


async def route_to_experts(state: ResearchGraphState) -> list[Send] | str:
    """One `Send` per selected expert; with none left to ask, straight on to the aggregator.

    LangGraph runs a function that is not async in a thread, which takes longer than the function.
    """
    return [Send(node_name(expert), state) for expert in state["selected_experts"]] or AGGREGATOR


def create_expert_node(expert: ExpertType, gateway: IResearchExpertGateway) -> Node:
    """Asks one expert; it sees its own options only."""

    async def expert_node(state: ResearchGraphState) -> StateUpdate:
        own_options = state["options"].get(expert, {})
        return {"results": {expert.value: await gateway.run_expert(expert, state["symbol"], own_options)}}

    return expert_node


def create_debate_node(gateway: IDebateGateway) -> Node:
    """Lets bull and bear argue over what the experts found; without a single finding there is no debate."""

    async def debate_node(state: ResearchGraphState) -> StateUpdate:
        if not _has_work(DEBATE, state):
            return {"debate_outcome": {}}
        return {"debate_outcome": await gateway.run_debate(state["symbol"], state["results"])}

    return debate_node


def create_judge_node(gateway: IJudgeGateway) -> Node:
    """Asks for a verdict on the debate; without a debate there is none."""

    async def judge_node(state: ResearchGraphState) -> StateUpdate:
        debate = state["debate_outcome"]
        return {"verdict": await gateway.run_verdict(state["symbol"], debate) if debate else {}}

    return judge_node


async def aggregator_node(state: ResearchGraphState) -> StateUpdate:
    """Says how the experts fared and leaves what they said untouched."""
    if not state["results"]:
        return {"overall_status": "failed"}
    return {"overall_status": "partial" if state["errors"] else "completed"}


@dataclass(frozen=True)
class NodeLayers:
    """What every node of a desk is wrapped in."""

    repository: IResearchSessionRepository = field(default_factory=IResearchSessionRepository)
    policy: NodePolicy = field(default_factory=NodePolicy)
    timeout: float | None = None
    clock: Clock = field(default_factory=SystemClock)

    def around(self, node_type: str, work: Node) -> Node:
        """In all that a function reaches LangGraph would look for other graphs: not in what is called for one."""
        node = retry(work, node_type, self.policy, self.timeout)
        node = authorise(node, node_type, self.policy)
        node = persist_node_execution(node, node_type, self.repository, clock=self.clock)
        return partial(isolate(node, node_type, self.policy))


def isolate(node: Node, node_type: str, policy: NodePolicy) -> Node:
    """Keeps what is raised inside; tells what the node is given and what it comes to, now or before a crash."""

    async def isolated_node(state: ResearchGraphState) -> StateUpdate:
        context = current_context()
        try:
            await policy.node_begins(node_type, _inputs(node_type, state))
            update = await node(state)
            await policy.node_ends(node_type, _result(node_type, update))
            return update
        except Exception as e:  # noqa: BLE001  # bulkhead: one node must never take the others down
            await policy.node_ends(node_type, None)
            context.tally.failures[node_type] = e
            log = logger.error if node_type in OUTCOMES else logger.warning
            log = logger.info if isinstance(e, Abstention) else log
            defect = not isinstance(e, AppError)  # one of ours says all there is to say
            log("node failed", node=node_type, symbol=state["symbol"], error=str(e), exc_info=defect)
            said = {node_type: error_text(e, context.locale)}
            return _update(node_type, {}) if node_type in OUTCOMES else {"errors": said}

    return isolated_node


def persist_node_execution(
    node_fn: Node, node_type: str, session_repo: IResearchSessionRepository, *, clock: Clock | None = None
) -> Node:
    """Journals each run of the node, success or failure, in a transaction of its own, before the graph goes on; and
    tells whoever watches.

    What the journal has already, from before a crash, is not run again: it ends the way it ended then.
    """
    clock = clock or SystemClock()

    async def persisted_node(state: ResearchGraphState) -> StateUpdate:
        context = current_context().model_copy(update={"node": node_type, "feedback": None})
        run: Run | None = context.run
        if run is not None and (recorded := (run.recorded or {}).get(node_type)):
            return _repeat(recorded)
        if node_type == DEBATE and state["debate_outcome"]:  # held in the session that is retried
            return _update(DEBATE, state["debate_outcome"])
        current_execution_ctx.set(context)  # each node is a task of its own
        if run is not None:
            run.note("node_started", node=node_type)
        started_at, started = clock.now(), time.perf_counter()

        async def journal(outcome: dict[str, Any]) -> None:
            if context.session_id or (run and run.watch):
                took = round((time.perf_counter() - started) * 1000)
                times = {"started_at": started_at, "completed_at": clock.now(), "duration_ms": took}
                tried = max(1, context.tally.attempts[node_type])
                await _save(session_repo, context, {"attempts": tried, **times, **outcome})

        try:
            update = await node_fn(state)
        except Exception as e:
            kind = e.code if isinstance(e, AppError) else type(e).__name__
            said = error_text(e, context.locale)
            await journal({"status": "failed", "error_type": kind, "error_message": said})
            raise
        result = REDACT(_result(node_type, update))  # whoever reads it live reads what is on the record
        await journal({"status": "success", **to_columns(result)} if result else {"status": "skipped"})
        return _update(node_type, result)

    return persisted_node


def authorise(node: Node, node_type: str, policy: NodePolicy) -> Node:
    """Asks the rules before and after; they may change what the node is asked, and what it came to."""

    async def authorised_node(state: ResearchGraphState) -> StateUpdate:
        if not _has_work(node_type, state):
            return await node(state)
        asked = state["options"].get(node_type, {})
        allowed = await policy.authorise(node_type, state["symbol"], asked)
        if allowed is not None and allowed != asked:
            state = {**state, "options": {**state["options"], node_type: allowed}}
        result = _result(node_type, await node(state))
        return _update(node_type, await policy.review(node_type, result) if result else result)

    return authorised_node


def retry(node: Node, node_type: str, policy: NodePolicy, seconds: float | None = None) -> Node:
    """Tries again where the error is one that passes, and once more with what went wrong told to the agent.

    All attempts together have `seconds`, with everything; or else `OWN_WORK` beside their model calls.
    """

    async def retried_node(state: ResearchGraphState) -> StateUpdate:
        time_for_it = WorkingTime(seconds or OWN_WORK, strict=seconds is not None)
        context, told = current_context(), False
        attempts = context.tally.attempts
        while True:
            attempts[node_type] += 1
            try:
                async with time_for_it:
                    return await node(state)
            except Exception as e:
                # a timeout that is somebody else's is the work's own business
                error = NodeTimeout(node_type, seconds or OWN_WORK) if time_for_it.expired else e
                after = await policy.after_error(node_type, error)
                if after.action == "skip":
                    return _update(node_type, {})
                again = after.action == "retry" or (after.action == "feedback" and not told)
                if not again or after.delay >= time_for_it.left:
                    if error is e:
                        raise
                    raise error from e
                told = told or after.action == "feedback"
                tell_retry(attempts[node_type] + 1, error_text(e, context.locale))
                current_execution_ctx.set(context.model_copy(update={"feedback": after.feedback}))
                await asyncio.sleep(after.delay)

    return retried_node


def _inputs(node_type: str, state: ResearchGraphState) -> dict[str, Any]:
    place = INPUTS.get(node_type)
    given = {place: dict(state)[place]} if place else {"options": state["options"].get(node_type, {})}
    return {"symbol": state["symbol"], **given}


def _has_work(node_type: str, state: ResearchGraphState) -> bool:
    """Without a finding there is nothing to debate, and without a debate nothing to judge."""
    if node_type == DEBATE:
        return state["overall_status"] != "failed"
    return node_type != JUDGE or bool(state["debate_outcome"])


def _result(node_type: str, update: StateUpdate) -> dict[str, Any]:
    """What a node produced; empty when it skipped its work."""
    place = OUTCOMES.get(node_type)
    return dict(update[place] if place else update["results"].get(node_type, {}))


def _update(node_type: str, result: dict[str, Any]) -> StateUpdate:
    """What a node that produced `result` leaves in the state; an expert that was skipped, nothing."""
    place = OUTCOMES.get(node_type)
    return {place: result} if place else {"results": {node_type: result} if result else {}}


def _repeat(node: NodeExecution) -> StateUpdate:
    if node.status == "failed":
        kind = Abstention if node.error_type == Abstention.code else AppError
        raise kind(node.error_message or "", code=node.error_type)
    return _update(node.node_type, from_columns(node) if node.status == "success" else {})


async def _save(
    repository: IResearchSessionRepository, context: ExecutionContext, row: dict[str, Any]
) -> None:
    run: Run | None = context.run
    events: list[SessionEvent] = []
    try:
        session_id = UUID(context.session_id) if context.session_id else uuid4()
        node = NodeExecution(id=uuid4(), session_id=session_id, node_type=context.node, **row)
        events = run.events(tell_node(node)) if run else []
        if context.session_id:
            await repository.save_node_execution(node, events=events)
    except Exception:  # bulkhead: the record must never stop the research
        context.tally.audit_gaps += 1
        logger.error("node not stored", node=context.node, exc_info=True)
    if run:
        run.tell(events)
