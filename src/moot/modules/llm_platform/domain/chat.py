"""A conversation with a language model: what is asked, what comes back, and the port to whatever answers."""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from moot.modules.llm_platform.domain.model_config import LLMConfig


class Frozen(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What is said stays said."""


class ToolCall(Frozen):
    """`arguments` is JSON as the model wrote it, which may be malformed."""

    id: str
    name: str
    arguments: str


class ChatMessage(Frozen):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None


class Tool(Frozen):
    """`parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ResponseSchema(Frozen):
    """The JSON object an answer must be. Models that cannot be held to it read it in the prompt."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    json_schema: dict[str, Any]


class ChatRequest(Frozen):
    """`max_tokens` bounds the answer, and with it the cost."""

    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[Tool] = []
    response_schema: ResponseSchema | None = None
    temperature: float = Field(default=0.7, ge=0, le=2)
    max_tokens: int = Field(default=4096, ge=1)


class Usage(Frozen):
    """None where the vendor did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class ModelReply(Frozen):
    """One answer as it came over the wire. `model` is the name the vendor answered with; thoughts are kept apart."""

    content: str
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()
    model: str
    finish_reason: str = "stop"


class ChatResult(ModelReply):
    """A reply, whose it is, what it cost, and whether it was given now or taken from the record.

    `knowledge_cutoff` is the day up to which its model knows the world, where that was said.
    """

    alias: str
    vendor: str
    cost: float | None = None
    knowledge_cutoff: date | None = None
    origin: Literal["live", "record"] = "live"
    call_id: UUID | None = None


Complete = Callable[[LLMConfig, ChatRequest], Awaitable[ModelReply]]
"""Whatever speaks to a model. One call is one request over the wire: no retry, no failover, no record.

What goes wrong is `ModelTrouble`; cancellation passes.
"""


def compose(prompt: str, system_message: str | None = None) -> list[ChatMessage]:
    system = [ChatMessage(role="system", content=system_message)] if system_message else []
    return [*system, ChatMessage(role="user", content=prompt)]
