"""Model calls in `llm_call_logs`: the intent committed before the call, the outcome after it."""

from typing import Any
from uuid import UUID

from sqlalchemy import select

from moot.modules.llm_platform.domain.call_record import CallIntent, CallOutcome, RecordedCall
from moot.modules.llm_platform.domain.chat import ModelReply, ToolCall, Usage
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.call_audit import INTENT, OUTCOME, Bodies, CallAudit
from moot.shared.infrastructure.transactions import transaction

ASKED = tuple(name for name in CallIntent.model_fields if name not in INTENT)
ANSWERED = (
    "completion_text",
    "reasoning_text",
    "tool_calls",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cost",
)
MODEL_CALL = Kind("model_call", LLMCallLog, (*INTENT, *ASKED))
MODEL_ANSWER = Kind("model_answer", LLMCallLog, (*OUTCOME, *ANSWERED))
MODEL_BODIES = Bodies.of(
    "pruned_model_call",
    (MODEL_CALL, MODEL_ANSWER),
    prompt_text="",
    system_message=None,
    completion_text=None,
    reasoning_text=None,
    tool_calls=None,
)
MODEL_KINDS = (MODEL_CALL, MODEL_ANSWER, MODEL_BODIES.kind)


class SqlCallJournal:
    def __init__(self, audit: CallAudit, trail: AuditTrail) -> None:
        self._audit, self._database = audit, trail.database
        trail.vouches_for(*MODEL_KINDS)

    async def begin(self, intent: CallIntent) -> UUID | None:
        return await self._audit.begin(MODEL_CALL, intent.model_dump())

    async def end(self, call_id: UUID | None, outcome: CallOutcome) -> None:
        row = outcome.model_dump(include={*OUTCOME, "cost"}) | _answer(outcome.reply)
        await self._audit.end(MODEL_ANSWER, call_id, row)

    async def answered(self, session_id: str, agent: str | None, ordinal: int) -> list[RecordedCall]:
        found = (
            select(LLMCallLog)
            .where(
                LLMCallLog.session_id == UUID(session_id),
                LLMCallLog.caller_agent == agent,
                LLMCallLog.ordinal == ordinal,
                LLMCallLog.status == "success",
                LLMCallLog.origin == "live",
            )
            .order_by(LLMCallLog.created_at)
        )
        async with transaction(self._database.session) as db:
            return [_recorded(row) for row in await db.scalars(found)]


class NoJournal:
    """Keeps nothing, for a desk without persistence."""

    async def begin(self, intent: CallIntent) -> UUID | None:
        return None

    async def end(self, call_id: UUID | None, outcome: CallOutcome) -> None:
        return None

    async def answered(self, session_id: str, agent: str | None, ordinal: int) -> list[RecordedCall]:
        return []


def _answer(reply: ModelReply | None) -> dict[str, Any]:
    if reply is None:
        return dict.fromkeys(ANSWERED)
    return {
        "completion_text": reply.content,
        "reasoning_text": reply.reasoning or None,
        "tool_calls": [call.model_dump() for call in reply.tool_calls] or None,
        "finish_reason": reply.finish_reason[:50],
        **reply.usage.model_dump(),
    }


def _recorded(row: LLMCallLog) -> RecordedCall:
    reply = ModelReply(
        content=row.completion_text or "",
        reasoning=row.reasoning_text or "",
        tool_calls=[ToolCall.model_validate(call) for call in row.tool_calls or []],
        usage=Usage(
            prompt_tokens=row.prompt_tokens,
            completion_tokens=row.completion_tokens,
            total_tokens=row.total_tokens,
        ),
        model=row.model_name,
        finish_reason=row.finish_reason or "stop",
    )
    return RecordedCall(
        id=row.id,
        alias=row.alias or "",
        vendor=row.vendor,
        model_name=row.model_name,
        cost=row.cost,
        reply=reply,
        prompt_text=row.prompt_text,
        system_message=row.system_message,
        request_digest=row.request_digest or "",
    )
