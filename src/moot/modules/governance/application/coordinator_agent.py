"""The one door to governance: decisions, what runs, what follows an error, and what is broken."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import structlog
from pydantic import BaseModel, Field

from moot.modules.governance.application.circuit_breaker import BreakerReport, Breakers
from moot.modules.governance.application.decision_log import explain, make_record
from moot.modules.governance.application.decision_validator import DecisionValidator, reader_of
from moot.modules.governance.application.error_handler import ErrorHandler
from moot.modules.governance.application.escalations import EscalationService
from moot.modules.governance.application.execution_monitor import ExecutionMonitor, current_workflow_id
from moot.modules.governance.application.goal_alignment_checker import OpinionOnAlignment
from moot.modules.governance.domain.decisions import (
    BY_A_PERSON,
    Change,
    DecisionLog,
    DecisionRecord,
    DecisionRequest,
    DecisionStatistics,
    KnownType,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
)
from moot.modules.governance.domain.escalations import Escalation
from moot.modules.governance.domain.rules import RuleAction
from moot.modules.governance.domain.rulesets import Active, RulesetUnusable
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, Conflict, DecisionRejected
from moot.shared.domain.messages import LOG_LOCALE, Locale, Message
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, current_context
from moot.shared.infrastructure.redaction import error_text

__all__ = ["DecisionRecord", "DecisionRequest", "Escalation", "KnownType", "ValidationResult"]

T = TypeVar("T")

logger = structlog.get_logger(__name__)

ERROR_POLICY = "error_policy"
"""Who asks for a person, where no rule does."""
RulesInForce = Callable[[str], Awaitable[Active]]
"""The rules that decide in a workspace now."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`record` is as it is kept, or would be; `escalation` is there when a person is asked."""

    result: ValidationResult
    record: DecisionRecord
    escalation: Escalation | None = None


class GovernanceStatus(BaseModel):
    """`circuit_breaker_state` is the worst of all breakers: those of the desk and the workspace's own.

    `rules_problem` says why nothing is decided, where the rules in force cannot be used.
    """

    decision_statistics: DecisionStatistics
    rules_problem: str | None = Field(default=None, exclude_if=lambda said: said is None)
    active_workflows: int
    circuit_breaker_state: str
    circuit_breakers: Sequence[BreakerReport]


@dataclass
class CoordinatorAgent:
    """Without `alignment` the words say how well an action serves its goal."""

    validator: DecisionValidator
    monitor: ExecutionMonitor
    error_handler: ErrorHandler
    breakers: Breakers
    rules: RulesInForce
    log: DecisionLog
    escalations: EscalationService
    alignment: OpinionOnAlignment | None

    async def decide(
        self,
        request: DecisionRequest,
        *,
        session_id: UUID | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        aside: Executor | None = None,
    ) -> Decision:
        """What may be done, on the record before anybody does it. What a person has approved already goes on.

        The work of judging is done in `aside`; None: here, which is quickest for what is small.
        """
        request = self._inform(request, workspace)
        active = await self.rules(workspace)
        if self.alignment is not None:
            request = await self.alignment.add_to(request, active, workspace)
        result = await _work(aside, self.validator.validate_by, active, request)
        if result.status is ValidationStatus.ESCALATED:
            result = await self._apply_answer(active, request, result, session_id, workspace)
        return await self._record(request, result, session_id, workspace, aside)

    async def escalate(
        self, node_id: str, error: Exception, *, symbol: str, options: Mapping[str, Any] | None = None
    ) -> Decision | None:
        """Put a node of the workflow under way before a person that failed, and that trying again would not mend.

        None: nothing is kept there, or it could not be, which must not stop the work.
        """
        context, workflow = current_context(), self.monitor.get_context(current_workflow_id())
        if not context.session_id or workflow is None:
            return None
        locale, workspace = workflow.locale, context.workspace
        payload = {"node": node_id, "symbol": symbol, "options": options or {}}
        facts = {**self.monitor.facts(), "workspace": workspace, "locale": locale}
        request = DecisionRequest(f"error:{node_id}", "node", payload, facts, context.caller or ERROR_POLICY)
        name = SAY("execution.escalated").in_locale(locale)
        told = RuleViolation(ERROR_POLICY, name, RuleAction.REJECT, error_text(error, locale), escalates=True)
        result = ValidationResult(ValidationStatus.ESCALATED, request, None, (told,), (), request.timestamp)
        try:
            return await self._record(request, result, UUID(context.session_id), workspace)
        except AppError as e:
            logger.warning("nobody asked about a failed node", node=node_id, error=str(e))
            return None

    async def validate(
        self,
        request: DecisionRequest,
        workspace: str = DEFAULT_WORKSPACE,
        *,
        waived: bool = False,
        aside: Executor | None = None,
    ) -> ValidationResult:
        """What the rules would say; nothing is kept and nobody is asked, neither a person nor a model."""
        judge = partial(self.validator.validate_by, waived=waived)
        return await _work(aside, judge, await self.rules(workspace), self._inform(request, workspace))

    async def status(
        self, workspace: str = DEFAULT_WORKSPACE, reader: Locale = LOG_LOCALE
    ) -> GovernanceStatus:
        counted, problem = await self.log.statistics(workspace), None
        try:
            await self.rules(workspace)
        except RulesetUnusable as e:
            problem = e.in_locale(reader)
        return GovernanceStatus(
            decision_statistics=counted,
            rules_problem=problem,
            active_workflows=self.monitor.count_active(workspace),
            circuit_breaker_state=self.breakers.worst(workspace).value,
            circuit_breakers=self.breakers.reports(workspace),
        )

    async def _record(
        self,
        request: DecisionRequest,
        result: ValidationResult,
        session_id: UUID | None,
        workspace: str,
        aside: Executor | None = None,
    ) -> Decision:
        make = partial(make_record, session_id=session_id, workspace=workspace)
        record = await _work(aside, make, request, result)
        await self.log.write(record)
        asked = result.status is ValidationStatus.ESCALATED
        return Decision(result, record, await self.escalations.open(request, record) if asked else None)

    async def _apply_answer(
        self,
        active: Active,
        request: DecisionRequest,
        result: ValidationResult,
        session_id: UUID | None,
        workspace: str,
    ) -> ValidationResult:
        """With what a person has said about this very decision, if anybody has."""
        here: dict[str, Any] = {"session_id": session_id, "workspace": workspace}
        used = await self.escalations.use(request, **here)
        if used is not None:
            approved = request.payload if used.approved_payload is None else used.approved_payload
            again = self.validator.validate_by(active, replace(request, payload=approved), waived=True)
            return _with_reason(_as_approved(again, request, approved), used)
        standing = await self.escalations.find_standing(request, **here)
        if standing is not None and standing.status in ("rejected", "expired"):
            refused = replace(result, status=ValidationStatus.REJECTED, changes=(), approved_instead=None)
            return _with_reason(refused, standing)
        return result

    def _inform(self, request: DecisionRequest, workspace: str) -> DecisionRequest:
        """With what the desk knows and the one who asks need not."""
        known = self.monitor.facts() if current_workflow_id() in self.monitor else {}
        broken = self.breakers.open_names(workspace)
        if broken or request.decision_type == "tool_call":
            known["open_breakers"] = broken
        return replace(request, context={**known, **request.context}) if known else request


async def _work(aside: Executor | None, work: Callable[..., T], *given: Any) -> T:
    if aside is None:
        return work(*given)
    return await asyncio.get_running_loop().run_in_executor(aside, work, *given)


def _as_approved(
    result: ValidationResult, request: DecisionRequest, approved: Mapping[str, Any]
) -> ValidationResult:
    """Told of the request as it came: what a person wrote instead is a change to it."""
    result = replace(result, original_request=request)
    if not result.may_proceed or approved == request.payload:
        return result
    edited = Change("replace", "", BY_A_PERSON, dict(approved), dict(request.payload))
    return replace(
        result,
        status=ValidationStatus.MODIFIED,
        modified_payload=result.modified_payload or dict(approved),
        changes=(edited, *result.changes),
    )


def _with_reason(result: ValidationResult, answer: Escalation) -> ValidationResult:
    """Whoever waited is told what the person said."""
    if not answer.reason:
        return result
    said = SAY("decisions.person_said", by=answer.decided_by, reason=answer.reason)
    return replace(result, notes=(*result.notes, said.in_locale(reader_of(result.original_request))))


class PersonAsked(Conflict, code="APPROVAL_NEEDED"):
    """A person has to decide. Once one has approved, the same call goes on."""

    def __init__(self, escalation: Escalation) -> None:
        said = SAY("tool_calls.person_asked", why=escalation.why, id=escalation.id)
        reason = " ".join(escalation.why)
        super().__init__(said, escalation_id=str(escalation.id), reason=reason)


Args = Mapping[str, Any]


class Allowed(NamedTuple):
    """`notice` says what the rules changed, or warn of."""

    args: Args
    notice: Message | None


class ToolCalls:
    def __init__(self, agent: CoordinatorAgent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock

    async def allow(self, tool: str, args: Args, context: Args, *, requester: str, workspace: str) -> Allowed:
        """The arguments to call `tool` with. Raises `DecisionRejected` for no, `PersonAsked` for not yet."""
        request = DecisionRequest(
            str(uuid4()),
            "tool_call",
            {"tool": tool, "args": args},
            {**self._agent.monitor.facts(), **context, "workspace": workspace},
            requester,
            self._clock.now(),
        )
        decision = await self._agent.decide(request, workspace=workspace)
        record, result = decision.record, decision.record.result
        if decision.result.may_proceed:
            enforced = any(violation.mode == "enforce" for violation in result.violations)
            told = enforced or record.status is ValidationStatus.MODIFIED
            return Allowed(decision.result.payload["args"], explain(record) if told else None)
        if decision.escalation is not None:
            raise PersonAsked(decision.escalation)
        raise DecisionRejected(
            SAY("tool_calls.refused", why=explain(record), advice=" ".join(result.suggestions)),
            violations=[asdict(violation) for violation in result.violations],
            suggestions=list(result.suggestions),
            approved_instead=result.approved_instead,
            record_id=str(record.id),
        )
