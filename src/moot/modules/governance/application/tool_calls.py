"""Tools that are called for people: as the rules allow it, and on the record before anything runs."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple
from uuid import uuid4

from moot.modules.governance.application.coordinator_agent import (
    CoordinatorAgent,
    Decision,
    DecisionRequest,
    Escalation,
)
from moot.modules.governance.application.decision_log import DecisionRecord, explained, recorded
from moot.modules.governance.domain.decisions import ValidationStatus
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Conflict, DecisionRejected
from moot.shared.domain.messages import Message


class PersonAsked(Conflict):
    """A person has to decide. Once one has approved, the same call goes on."""

    code = "APPROVAL_NEEDED"

    def __init__(self, escalation: Escalation) -> None:
        said = SAY("tool_calls.person_asked", why=escalation.why, id=escalation.id)
        super().__init__(said, escalation_id=str(escalation.id))


class Allowed(NamedTuple):
    """`notice` says what the rules changed, or warn of."""

    args: Mapping[str, Any]
    notice: Message | None


class ToolCalls:
    def __init__(self, agent: CoordinatorAgent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock

    async def allowed(
        self,
        tool: str,
        args: Mapping[str, Any],
        context: Mapping[str, Any],
        *,
        requester: str,
        workspace: str,
    ) -> Allowed:
        """The arguments to call `tool` with. Raises `DecisionRejected` for no, `PersonAsked` for not yet."""
        request = DecisionRequest(
            str(uuid4()),
            "tool_call",
            {"tool": tool, "args": args},
            {**context, "workspace": workspace},
            requester,
            self._clock.now(),
        )
        decision = await self._agent.decide(request, workspace=workspace)
        record = _record(decision, workspace)
        if decision.may_proceed:
            return Allowed(decision.payload["args"], _notice(record))
        if decision.escalation is not None:
            raise PersonAsked(decision.escalation)
        raise _refusal(record)


def _record(decision: Decision, workspace: str) -> DecisionRecord:
    """As it is kept, or would be."""
    asked = decision.result.original_request
    return decision.record or recorded(asked, decision.result, session_id=None, workspace=workspace)


def _notice(record: DecisionRecord) -> Message | None:
    enforced = any(violation.mode == "enforce" for violation in record.result.violations)
    return explained(record) if enforced or record.status is ValidationStatus.MODIFIED else None


def _refusal(record: DecisionRecord) -> DecisionRejected:
    result = record.result
    return DecisionRejected(
        SAY("tool_calls.refused", why=explained(record), advice=" ".join(result.suggestions)),
        violations=[asdict(violation) for violation in result.violations],
        suggestions=list(result.suggestions),
        approved_instead=result.approved_instead,
        record_id=str(record.id),
    )
