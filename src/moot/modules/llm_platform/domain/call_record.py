"""A model call on the record: the intent, written before; the outcome, written after; and how to find it again."""

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel

from moot.modules.llm_platform.domain.chat import ChatRequest, ChatResult, ModelReply, ToolCall, Usage
from moot.modules.llm_platform.domain.exceptions import ReplayMismatch
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.infrastructure.execution_context import current_context


class CallItem(BaseModel, frozen=True):
    """What readers see of every call."""

    id: UUID
    session_id: UUID | None
    attempt: int
    origin: str
    request_digest: str | None
    cost: float | None
    latency_ms: int | None
    status: str
    error_message: str | None
    created_at: AwareDatetime


class CallLogItem(CallItem):
    """A model call. A listing without texts has none of the four."""

    caller_module: str
    caller_agent: str | None
    model_name: str
    vendor: str
    alias: str | None
    prompt_text: str | None = None
    system_message: str | None = None
    completion_text: str | None = None
    reasoning_text: str | None = None
    tool_calls: list[dict[str, Any]] | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    temperature: float
    finish_reason: str | None
    ordinal: int

    @property
    def reply(self) -> ModelReply:
        """What the model answered, if it did."""
        return ModelReply(
            content=self.completion_text or "",
            reasoning=self.reasoning_text or "",
            tool_calls=[ToolCall.model_validate(call) for call in self.tool_calls or []],
            usage=Usage(**{name: getattr(self, name) for name in Usage.model_fields}),
            model=self.model_name,
            finish_reason=self.finish_reason or "stop",
        )

    def result(self, *, knowledge_cutoff: date | None) -> ChatResult:
        told = {"alias": self.alias or "", "vendor": self.vendor, "cost": self.cost, "call_id": self.id}
        return ChatResult(
            **self.reply.model_dump(), **told, origin="record", knowledge_cutoff=knowledge_cutoff
        )


def reply_row(reply: ModelReply) -> dict[str, Any]:
    """A reply as its call's row holds it."""
    return {
        "completion_text": reply.content,
        "reasoning_text": reply.reasoning or None,
        "tool_calls": [call.model_dump() for call in reply.tool_calls] or None,
        "finish_reason": reply.finish_reason[:50],
        **dict(reply.usage),
    }


class ExternalCallItem(CallItem):
    """A call to an outside service. A listing without texts has no `response_data`."""

    service_name: str
    operation: str
    request_params: dict[str, Any]
    response_data: str | None = None
    status_code: int | None


class CallJournal:
    """Where model calls are kept. Redacts secrets; in best-effort mode it never raises, in strict mode `begin` may.

    This one is of a desk without persistence, and keeps nothing.
    """

    async def begin(self, intent: Mapping[str, Any]) -> UUID | None:
        """Commit the intent; None when it could not be kept."""
        return None

    async def end(self, call_id: UUID | None, outcome: Mapping[str, Any]) -> None:
        """What `outcome` says nothing of is null."""

    async def find_answered(self, session_id: str, agent: str | None, ordinal: int) -> list[CallLogItem]:
        """The successful live calls on record at that place of the session, newest last."""
        return []


@dataclass(frozen=True)
class CallKey:
    """The `ordinal`-th call of an agent in its session, whatever it asks. Outside of a session there is no order."""

    module: str
    agent: str | None
    session_id: str
    ordinal: int
    answers: Literal["live", "resume", "replay"]

    @classmethod
    def next(cls, module: str, agent: str | None) -> "CallKey":
        context = current_context()
        if not context.session_id:
            return cls(module, agent, "", 0, "live")
        name = f"{module}/{agent}"
        ordinal = context.tally.calls[name]
        context.tally.calls[name] += 1
        return cls(module, agent, context.session_id, ordinal, context.answers)

    def digest(self, model: str, request: ChatRequest) -> str:
        """The same for the same question, asked at the same place of the same session."""
        place = [self.session_id, self.module, self.agent, self.ordinal, model]
        content = json.dumps([place, request.model_dump(mode="json")], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()

    def intent(
        self,
        answers: "LLMConfig | CallLogItem",
        request: ChatRequest,
        *,
        attempt: int = 1,
        origin: str = "live",
    ) -> dict[str, Any]:
        """The row of a request about to be sent.

        `answers`: the model that is asked, or the call on record that is not made again.
        """
        system, prompt = split_texts(request)
        return {
            "caller_module": self.module,
            "caller_agent": self.agent,
            "model_name": answers.model_name,
            "vendor": answers.vendor,
            "alias": answers.alias or "",
            "prompt_text": prompt,
            "system_message": system,
            "temperature": request.temperature,
            "ordinal": self.ordinal,
            "attempt": attempt,
            "request_digest": self.digest(answers.model_name, request),
            "origin": origin,
        }


def split_texts(request: ChatRequest) -> tuple[str | None, str]:
    """The system message, and the rest: a single message as it is, a conversation as JSON."""
    system = "\n\n".join(m.content for m in request.messages if m.role == "system") or None
    others = [m for m in request.messages if m.role != "system"]
    if len(others) == 1 and others[0].role == "user":
        return system, others[0].content
    spoken = [m.model_dump(mode="json", exclude_defaults=True) for m in others]
    return system, json.dumps(spoken, ensure_ascii=False, indent=1)


def mismatch(key: CallKey, request: ChatRequest, answered: Sequence[CallLogItem]) -> ReplayMismatch:
    """Says whose prompt is no longer the recorded one, and where it begins to differ."""
    said: dict[str, Any] = {"agent": key.agent or key.module, "ordinal": key.ordinal + 1}
    if not answered:
        return ReplayMismatch(SAY("llm.not_on_record", **said), **said, difference=[])
    recorded = answered[-1]
    system, prompt = split_texts(request)
    before = f"{recorded.system_message or ''}\n{recorded.prompt_text}".splitlines()
    after = f"{system or ''}\n{prompt}".splitlines()
    changed = [
        line
        for line in difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    shown = changed[:20] or ["parameters, tools or schema differ"]
    return ReplayMismatch(SAY("llm.prompt_changed", **said, first=shown[0][:200]), **said, difference=shown)
