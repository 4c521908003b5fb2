"""A session with everything a record can hold, written the way a run writes it."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from moot.desk import Moot
from moot.modules.coordinator.domain.model.session import ResearchSession, SessionEvent
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.governance.application.decision_log import make_record
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationResult, ValidationStatus
from moot.modules.governance.domain.escalations import Escalation
from moot.modules.governance.infrastructure.persistence.decision_log import SqlDecisionLog, SqlEscalationQueue
from moot.modules.llm_platform.domain.call_record import reply_row
from moot.modules.llm_platform.domain.chat import ModelReply, ToolCall, Usage
from moot.modules.llm_platform.infrastructure.call_journal import SqlCallJournal
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.call_audit import CallAudit, ExternalCalls
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx
from tests.coordinator.test_session_repository import NOON, a_node, a_session
from tests.fakes.clock import FixedClock
from tests.fakes.coordinator import OUTCOME, TECHNICAL, VERDICT

EVIDENCE = [{"id": "technical.rsi", "value": 61.8, "source": "demo", "as_of": "2026-06-29"}]
TECHNICAL_VIEW = {
    "signal": "BULLISH",
    "confidence": 0.1 + 0.2,
    "summary_reasoning": "上升趋势",
    "risk_warning": "<b>none</b>",
    "engine": "llm",
}
PROMPT, ANSWER, RESPONSE = "请判断 900001.DEMO 的走势。", "看多，信心 0.7。", '{"rows": [1, 2.5, null]}'


class Recorder:
    """Writes to the record of a desk, as of a moment."""

    def __init__(self, trail: AuditTrail, now: datetime = NOON) -> None:
        audit = CallAudit(trail, FixedClock(now))
        self.sessions = SqlResearchSessionRepository(trail)
        self._journal = SqlCallJournal(audit)
        self._external = ExternalCalls(audit)
        self._decisions = SqlDecisionLog(trail, strict=True)
        self.escalations = SqlEscalationQueue(trail)

    async def session(self, *, workspace: str = "default", ended: datetime | None = NOON) -> ResearchSession:
        """`ended` None: it is still running."""
        began = (ended or NOON) - timedelta(seconds=3)
        session = a_session(
            workspace_id=workspace, created_at=began, as_of=began, locale="en-US", max_cost=1.5
        )
        await self.sessions.save_session(session)
        await self.calls(session.id, workspace)
        node = {"result_data": TECHNICAL_VIEW, "evidence": EVIDENCE, "duration_ms": 7}
        await self.sessions.save_node_execution(a_node(session.id, node_type=TECHNICAL, **node))
        await self.sessions.save_node_execution(a_node(session.id, node_type="debate", result_data=OUTCOME))
        await self.sessions.save_node_execution(a_node(session.id, node_type="judge", result_data=VERDICT))
        await self.decision(session.id, workspace, began)
        if ended is not None:
            outcome: dict[str, Any] = {"status": "completed", "verdict_status": "judged"}
            outcome |= {"verdict_action": "BUY", "completed_at": ended, "duration_ms": 3000}
            done = SessionEvent(seq=1, type="done", at=ended, data={"status": "completed"})
            await self.sessions.update_session(session.model_copy(update=outcome), events=[done])
        return session

    async def decision(self, session_id: UUID, workspace: str, at: datetime) -> None:
        asked = DecisionRequest(
            "research_request", "research_request", {"symbol": "900001.DEMO"}, {}, "Li", at
        )
        result = ValidationResult(ValidationStatus.APPROVED, asked, None, (), (), at, ruleset="r" * 64)
        record = make_record(asked, result, session_id=session_id, workspace=workspace)
        await self._decisions.write(record)
        known = record.model_dump(
            include={"workspace_id", "session_id", "decision_type", "payload", "context"}
        )
        times = {"requested_at": at, "expires_at": at + timedelta(days=1)}
        why = {"payload_digest": "d" * 64, "why": ["a person is to decide"], "requester": "Li"}
        await self.escalations.add(
            Escalation(id=uuid4(), decision_row_id=record.id, status="pending", **known, **times, **why)
        )

    async def calls(self, session_id: UUID | None, workspace: str = "default") -> None:
        """A call that was answered, one that failed, and a look-up outside."""
        context = ExecutionContext(session_id=str(session_id or ""), workspace=workspace)
        token = current_execution_ctx.set(context)
        try:
            reply = ModelReply(
                content=ANSWER,
                reasoning="because",
                tool_calls=[ToolCall(id="1", name="look_up", arguments="{}")],
                usage=Usage(prompt_tokens=10, completion_tokens=5, total_tokens=15),
                model="careful-1",
                finish_reason="stop",
            )
            first = await self._journal.begin(an_intent(1))
            await self._journal.end(
                first, {"status": "success", "latency_ms": 9, "cost": 0.25, **reply_row(reply)}
            )
            second = await self._journal.begin(an_intent(2))
            await self._journal.end(second, {"status": "failed", "latency_ms": 1, "error_message": "no"})
            third = await self._external.begin("tushare", "daily", {"n": 1, "share": 0.1, "big": 1e22})
            await self._external.end(
                third, status="success", latency_ms=5, status_code=200, response_data=RESPONSE
            )
        finally:
            current_execution_ctx.reset(token)

    async def begun(self, session_id: UUID | None = None) -> None:
        """A call nobody has answered yet."""
        token = current_execution_ctx.set(ExecutionContext(session_id=str(session_id or "")))
        try:
            await self._journal.begin(an_intent(9))
        finally:
            current_execution_ctx.reset(token)


def an_intent(ordinal: int) -> dict[str, Any]:
    return {
        "caller_module": "research",
        "caller_agent": "technical_analyst",
        "model_name": "careful-1",
        "vendor": "test",
        "alias": "default",
        "prompt_text": PROMPT,
        "system_message": "Be careful.",
        "temperature": 0.3,
        "ordinal": ordinal,
        "attempt": 1,
        "request_digest": "d" * 64,
        "origin": "live",
    }


def trail_of(desk: Moot) -> AuditTrail:
    assert desk.trail is not None
    return desk.trail
