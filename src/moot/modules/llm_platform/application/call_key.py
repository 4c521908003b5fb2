"""Which call of a session this is: the key under which its answer is recorded, and found again."""

import difflib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moot.modules.llm_platform.domain.call_record import CallIntent, RecordedCall
from moot.modules.llm_platform.domain.chat import ChatRequest
from moot.modules.llm_platform.domain.exceptions import ReplayMismatch
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.infrastructure.execution_context import current_execution_ctx


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
        context = current_execution_ctx.get()
        if context is None or not context.session_id:
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

    def intent(self, config: LLMConfig, request: ChatRequest, attempt: int) -> CallIntent:
        return CallIntent(
            **self._asked(request),
            model_name=config.model_name,
            vendor=config.vendor,
            alias=config.alias,
            attempt=attempt,
            request_digest=self.digest(config.model_name, request),
        )

    def intent_of(self, recorded: RecordedCall, request: ChatRequest) -> CallIntent:
        """That this question was answered by the record."""
        return CallIntent(
            **self._asked(request),
            model_name=recorded.model_name,
            vendor=recorded.vendor,
            alias=recorded.alias,
            attempt=1,
            request_digest=recorded.request_digest,
            origin="record",
        )

    def _asked(self, request: ChatRequest) -> dict[str, Any]:
        system, prompt = texts(request)
        return {
            "caller_module": self.module,
            "caller_agent": self.agent,
            "prompt_text": prompt,
            "system_message": system,
            "temperature": request.temperature,
            "ordinal": self.ordinal,
        }


def texts(request: ChatRequest) -> tuple[str | None, str]:
    """The system message, and the rest: a single message as it is, a conversation as JSON."""
    system = "\n\n".join(m.content for m in request.messages if m.role == "system") or None
    others = [m for m in request.messages if m.role != "system"]
    if len(others) == 1 and others[0].role == "user":
        return system, others[0].content
    spoken = [m.model_dump(mode="json", exclude_defaults=True) for m in others]
    return system, json.dumps(spoken, ensure_ascii=False, indent=1)


def mismatch(key: CallKey, request: ChatRequest, answered: Sequence[RecordedCall]) -> ReplayMismatch:
    """Says whose prompt is no longer the recorded one, and where it begins to differ."""
    said: dict[str, Any] = {"agent": key.agent or key.module, "ordinal": key.ordinal + 1}
    if not answered:
        return ReplayMismatch(SAY("llm.not_on_record", **said), **said, difference=[])
    recorded = answered[-1]
    system, prompt = texts(request)
    before = f"{recorded.system_message or ''}\n{recorded.prompt_text}".splitlines()
    after = f"{system or ''}\n{prompt}".splitlines()
    changed = [
        line
        for line in difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    shown = changed[:20] or ["parameters, tools or schema differ"]
    return ReplayMismatch(SAY("llm.prompt_changed", **said, first=shown[0][:200]), **said, difference=shown)
