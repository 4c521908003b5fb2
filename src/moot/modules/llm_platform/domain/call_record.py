"""A model call on the record: the intent, written before; the outcome, written after; and how to find it again."""

from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict

from moot.modules.llm_platform.domain.chat import ModelReply


class CallIntent(BaseModel):
    """One request about to be sent. `ordinal` counts an agent's calls within its session, `attempt` its requests.

    `request_digest` is of session, agent, ordinal, model, messages and parameters: the same question has the same.
    """

    model_config = ConfigDict(frozen=True)

    caller_module: str
    caller_agent: str | None
    model_name: str
    vendor: str
    alias: str
    prompt_text: str
    system_message: str | None
    temperature: float
    ordinal: int
    attempt: int
    request_digest: str
    origin: Literal["live", "record"] = "live"


class CallOutcome(BaseModel):
    model_config = ConfigDict(frozen=True)

    status: Literal["success", "failed", "unknown"]
    latency_ms: int
    reply: ModelReply | None = None
    cost: float | None = None
    error_message: str | None = None


class RecordedCall(BaseModel):
    """A call that was answered once."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    alias: str
    vendor: str
    model_name: str
    cost: float | None
    reply: ModelReply
    prompt_text: str
    system_message: str | None
    request_digest: str


class CallJournal(Protocol):
    """Keeps model calls. Redacts secrets; in best-effort mode it never raises, in strict mode `begin` may."""

    async def begin(self, intent: CallIntent) -> UUID | None:
        """Commit the intent; None when it could not be kept."""

    async def end(self, call_id: UUID | None, outcome: CallOutcome) -> None: ...

    async def answered(self, session_id: str, agent: str | None, ordinal: int) -> list[RecordedCall]:
        """The successful calls on record at that place of the session, newest last."""


class CallLogItem(BaseModel):
    """A model call as its readers see it. A listing without texts has none of the four."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    session_id: UUID | None
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
    cost: float | None
    ordinal: int
    attempt: int
    origin: str
    request_digest: str | None
    latency_ms: int | None
    status: str
    error_message: str | None
    created_at: AwareDatetime


class ExternalCallItem(BaseModel):
    """A call to an outside service as its readers see it. A listing without texts has no `response_data`."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    session_id: UUID | None
    service_name: str
    operation: str
    request_params: dict[str, Any]
    response_data: str | None = None
    status_code: int | None
    latency_ms: int | None
    status: str
    error_message: str | None
    attempt: int
    origin: str
    request_digest: str | None
    cost: float | None
    created_at: AwareDatetime


class CallLogReader(Protocol):
    """Finds the calls of a session, oldest first. Texts that are not wanted are not read."""

    async def model_calls(self, session_id: UUID, *, include_text: bool) -> list[CallLogItem]: ...

    async def external_calls(self, session_id: UUID, *, include_text: bool) -> list[ExternalCallItem]: ...
