"""Puts the session's questions to governance: the request, each node and the verdict are decisions on its record."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.results import from_columns
from moot.modules.coordinator.application.session_history import Progress, progress_of
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.exceptions import ApprovalNeeded, SessionNotFound, SessionStopped
from moot.modules.coordinator.domain.ports.permission import AfterError, NodePolicy
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.modules.coordinator.infrastructure.adapters.share_facts import (
    find_grave_facts,
    lead_with_grave,
    read_trading,
)
from moot.modules.debate.application.debate_service import lean_unaided
from moot.modules.governance.application.coordinator_agent import (
    CoordinatorAgent,
    Decision,
    DecisionRecord,
    DecisionRequest,
)
from moot.modules.governance.application.decision_log import explain
from moot.modules.governance.application.error_handler import ErrorHandlingAction
from moot.modules.governance.application.execution_monitor import (
    ErrorEntry,
    NodeState,
    WorkflowExecution,
    WorkflowJournal,
    current_workflow_id,
)
from moot.modules.judge.application.judge_service import restate
from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import DecisionRejected
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.execution_context import ExecutionContext, current_context

REQUESTER = "coordinator"
ASKED = {"symbol", "experts", "options", "skip_debate", "max_cost", "locale", "trigger_source"}
CHANGEABLE = {"experts", "options", "skip_debate", "max_cost"}
Payload = dict[str, Any]
"""What may be done, and what was said about it: a person's reason, where one was asked."""


class GovernanceAdapter(NodePolicy):
    """What was decided before a process died stands: it is not decided again."""

    def __init__(self, agent: CoordinatorAgent, clock: Clock, market: MarketData | None = None) -> None:
        self._agent, self._clock, self._market = agent, clock, market

    async def admit(self, request: ResearchRequest) -> ResearchRequest:
        asked = request.model_dump(mode="json", include=ASKED)
        allowed, _ = await self._ask_rules("research_request", asked, request.symbol)
        changed = {name: allowed[name] for name in CHANGEABLE if allowed.get(name) != asked[name]}
        return ResearchRequest.model_validate(request.model_dump() | changed) if changed else request

    async def authorise(self, node_type: str, symbol: str, options: Payload) -> Payload:
        asked = {"node": node_type, "symbol": symbol, "options": options}
        allowed, _ = await self._ask_rules("node", asked, symbol, node_type)
        return dict(allowed["options"])

    async def review(self, node_type: str, result: Payload) -> Payload:
        if node_type != "judge":
            return result
        allowed, record = await self._ask_rules("verdict", result, result["symbol"])
        locale = current_context().locale
        changed = {name for name in allowed if allowed[name] != result.get(name)} - {"warnings"}
        if record is None or not changed:
            notes = record.result.notes if record else ()
            noted = {**allowed, "warnings": [*allowed.get("warnings", []), *notes]} if notes else allowed
            return lead_with_grave(noted, record.context if record else {}, locale)
        holder = getattr(current_context().asked, "holder", None)
        verdict = lead_with_grave(restate(result, allowed, locale, holder), record.context, locale)
        advice = [v.suggestion for v in record.result.violations if v.corrected and v.suggestion]
        warning = SAY("changed_by_rules", how=explain(record), why=" ".join(dict.fromkeys(advice)))
        return {**verdict, "warnings": [*verdict["warnings"], warning.in_locale(locale).strip()]}

    async def waits_for(self, session_id: UUID, workspace: str) -> ApprovalNeeded | None:
        found = await self._agent.escalations.find_waiting(session_id, workspace)
        return ApprovalNeeded(" ".join(found.why), found.id) if found else None

    async def is_answered(self, needed: ApprovalNeeded, workspace: str) -> bool:
        asked = await self._agent.escalations.get(needed.escalation_id, workspace)
        return asked.status != "pending"

    async def session_begins(self, nodes: Sequence[str]) -> None:
        monitor, workflow_id, run = self._agent.monitor, current_workflow_id(), current_context().run
        reused = run.request.pre_populated_results or {}
        await monitor.on_workflow_start(workflow_id, [*reused, *nodes])
        for node_type, result in reused.items():
            await monitor.on_node_complete(workflow_id, node_type, result)

    async def node_begins(self, node_type: str, inputs: Payload) -> None:
        if workflow := self._watched():
            await self._agent.monitor.on_node_start(workflow.workflow_id, node_type, inputs)

    async def node_ends(self, node_type: str, outputs: Payload | None) -> None:
        workflow = self._watched()
        if workflow and outputs:
            await self._agent.monitor.on_node_complete(workflow.workflow_id, node_type, outputs)
        elif workflow:
            workflow.place(node_type, "failed" if outputs is None else "skipped")

    async def after_error(self, node_type: str, error: Exception) -> AfterError:
        context = current_context()
        if context.answers == "replay":
            return AfterError("abort")
        after = await self._agent.monitor.react(current_workflow_id(), node_type, error)
        if after.action == "escalate":
            asked: ResearchRequest = context.run.request
            options = asked.options.get(node_type)
            decision = await self._agent.escalate(node_type, error, symbol=asked.symbol, options=options)
            if decision is not None:
                _tell(decision, f"error:{node_type}", context)
        return AfterError(after.action.value, after.delay, after.feedback)

    async def session_ends(self) -> None:
        await self._agent.monitor.on_workflow_complete(current_workflow_id())

    def _watched(self) -> WorkflowExecution | None:
        """As it stands, with what its model calls took so far. A replay is not watched."""
        monitor, tally = self._agent.monitor, current_context().tally
        if workflow := monitor.get_context(current_workflow_id()):
            monitor.set_usage(workflow.workflow_id, tally.tokens, tally.cost)
        return workflow

    async def upkeep(self) -> None:
        """Sessions that wait for an answer that will not come any more are told."""
        await self._agent.escalations.sweep()

    async def _ask_rules(
        self, kind: str, asked: Payload, symbol: str, about: str = ""
    ) -> tuple[Payload, DecisionRecord | None]:
        """`asked` as the rules allow it, and their decision; what was decided already is not asked again."""
        decision_id = f"{kind}:{about}" if about else kind
        context = current_context()
        if context.answers != "live" and (known := await self._find_decision(context, decision_id)):
            if known.status in ("approved", "modified"):
                return known.result.modified_payload or asked, known
            raise _refusal(known, context)
        if context.answers == "replay":
            return asked, None
        request = DecisionRequest(
            decision_id,
            kind,
            asked,
            await self._facts(context, Symbol.parse(symbol), kind),
            context.caller or REQUESTER,
            self._clock.now(),
        )
        session_id = UUID(context.session_id) if context.session_id else None
        decision = await self._agent.decide(request, session_id=session_id, workspace=context.workspace)
        _tell(decision, decision_id, context)
        if decision.result.may_proceed:
            return dict(decision.result.payload), decision.record
        if decision.escalation is not None:
            raise ApprovalNeeded(explain(decision.record), decision.escalation.id)
        raise _refusal(decision.record, context)

    async def _find_decision(self, context: ExecutionContext, decision_id: str) -> DecisionRecord | None:
        if not context.session_id:
            return None
        made = await self._agent.log.of_session(UUID(context.session_id), context.workspace)
        mine = [record for record in made if record.decision_id == decision_id]
        return mine[-1] if mine and mine[-1].status != "escalated" else None

    async def _facts(self, context: ExecutionContext, asked: Symbol, kind: str) -> Payload:
        """What the desk knows by itself; of a verdict also how the share trades, which no source is asked for before
        the experts have asked. Trading facts that cannot be had are missing: rules say what follows."""
        known: Payload = {
            "workspace": context.workspace,
            "locale": context.locale,
            "market": asked.market.value,
            "is_demo": asked.synthetic,
            "experts_asked": len(context.experts),
            "experts_heard": len([name for name in context.experts if name not in context.tally.failures]),
        }
        if kind == "verdict":
            state = await read_trading(self._market, asked)
            known |= state.model_dump(exclude_none=True) if state else {}
            workflow = self._agent.monitor.get_context(current_workflow_id())
            debate = workflow.node_outputs.get("debate", {}) if workflow else {}
            known |= await find_grave_facts(self._market, asked, debate, known)
            if argument := debate.get("argument"):
                known["unaided_lean"] = lean_unaided(argument)
        return known


def _refusal(record: DecisionRecord, context: ExecutionContext) -> DecisionRejected | SessionStopped:
    rejection = DecisionRejected(
        SAY("decision_rejected", why=explain(record)),
        violations=[asdict(violation) for violation in record.result.violations],
        suggestions=list(record.result.suggestions),
        session_id=context.session_id,
    )
    return SessionStopped(rejection) if record.result.terminates else rejection


def _tell(decision: Decision, decision_id: str, context: ExecutionContext) -> None:
    """What needs no word is not told: that a node may do what it always does."""
    record = decision.record
    if context.run is None or (record.status == "approved" and not record.result.violations):
        return
    context.run.note(
        "decision",
        decision=decision_id,
        decision_id=str(record.id),
        status=record.status.value,
        reason=explain(record).in_locale(context.locale),
        **({"escalation_id": str(decision.escalation.id)} if decision.escalation else {}),
    )


class SessionWorkflows(WorkflowJournal):
    """A session as governance sees it: a workflow, its nodes where the events say they are."""

    def __init__(self, repository: IResearchSessionRepository) -> None:
        self._repository = repository

    async def load(self, workflow_id: str) -> WorkflowExecution | None:
        try:
            session = await self._repository.require_session(UUID(workflow_id), None)
        except (ValueError, SessionNotFound):
            return None
        workflow = WorkflowExecution(
            str(session.id), session.created_at, locale=session.locale, workspace=session.workspace_id
        )
        for step in progress_of(session, await self._repository.events_after(session.id, 0)):
            workflow.place(step.node, PLACES[step.status])
        for node in await self._repository.get_node_executions_by_session(session.id):
            if node.status == "failed":
                failure = ErrorEntry(
                    node_id=node.node_type,
                    error_type=node.error_type or "",
                    error_message=node.error_message or "",
                    timestamp=node.completed_at or node.started_at,
                    attempt=node.attempts,
                    action_taken=ErrorHandlingAction.ABORT,
                )
                workflow.error_log.append(failure)
            elif node.status == "success":
                workflow.node_outputs[node.node_type] = from_columns(node)
        workflow.status = session.status
        workflow.metrics.total_time_ms = session.duration_ms or 0
        return workflow


PLACES: dict[Progress, NodeState] = {
    "waiting": "pending",
    "running": "running",
    "retrying": "running",
    "failed": "failed",
    "success": "executed",
    "skipped": "skipped",
}
