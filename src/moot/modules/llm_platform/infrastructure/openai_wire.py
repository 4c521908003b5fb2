"""The chat-completions format: a request as JSON, an answer read strictly, a refusal told without secrets."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, BeforeValidator, Field

from moot.modules.llm_platform.domain.chat import ChatMessage, ChatRequest, ModelReply, ToolCall, Usage
from moot.modules.llm_platform.domain.exceptions import ModelTrouble
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.messages import Message, shorten
from moot.shared.infrastructure.redaction import REDACT, make_storable

MOST_TOKENS = 2**31
EXCERPT = 300
FILTER, REFUSED = "content_filter", "refusal"
PASSING = {408, 409, 425, 429}
HINTS = {401: "client.hint.key", 403: "client.hint.key", 404: "client.hint.address"}
FEATURES = {  # what a request may ask for, and the words by which a vendor says that it does not know it
    "response_format": ("json_schema", ("response_format", "json_schema")),
    "tools": ("tools", ("tools", "functions", "tool use", "tool call", "tool choice", "function call")),
}
PARAMETERS = ("temperature", "max_tokens")
"""Every request has them, and a complaint may be about their value."""
DENIALS = ("unsupported", "not support", "instead")


def chat_body(config: LLMConfig, request: ChatRequest) -> dict[str, Any]:
    newer = config.vendor.lower() == "openai" or config.capabilities.max_tokens is False
    body: dict[str, Any] = {
        "model": config.model_name,
        "messages": [_message(message) for message in request.messages],
        "max_completion_tokens" if newer else "max_tokens": request.max_tokens,
    }
    if config.capabilities.temperature is not False:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in request.tools]
    if request.response_schema and config.capabilities.json_schema is not False:
        schema = request.response_schema
        held = {"name": schema.name, "schema": schema.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": held}
    return body


def _text(value: Any) -> str:
    return make_storable(value) if isinstance(value, str) else ""


def _content(value: Any) -> Any:
    return _text(value) if isinstance(value, str | None) else value


def _arguments(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else _text(value)


def _count(said: Any) -> Usage:
    counted = said if isinstance(said, dict) else {}
    known = {name: counted.get(name) for name in Usage.model_fields}
    return Usage(**{n: c for n, c in known.items() if type(c) is int and 0 <= c < MOST_TOKENS})


Text = Annotated[str, BeforeValidator(_text)]


class WireFunction(BaseModel):
    name: Text = ""
    arguments: Annotated[str, BeforeValidator(_arguments)] = ""


class WireCall(BaseModel):
    id: Text = ""
    function: WireFunction


class WireMessage(BaseModel):
    content: Annotated[str, BeforeValidator(_content)] = ""
    refusal: Text = ""
    reasoning_content: Text = ""
    reasoning: Text = ""
    tool_calls: list[WireCall] | None = None


class WireAnswer(BaseModel):
    """What is read of a completion: its first message; nonsense around it is left out."""

    message: WireMessage = Field(validation_alias=AliasPath("choices", 0, "message"))
    finish_reason: Text = Field(default="", validation_alias=AliasPath("choices", 0, "finish_reason"))
    model: Text = ""
    usage: Annotated[Usage, BeforeValidator(_count)] = Usage()


def read_answer(config: LLMConfig, sent: Mapping[str, Any], body: bytes) -> ModelReply:
    """What a vendor sent in reply to `sent`; `ModelTrouble` where it is no answer.

    Raised outside `except`: the errors of a reader hold what was read, and that may quote the key.
    """
    answer = found = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(body.decode("utf-8-sig"))
        found = WireAnswer.model_validate(answer)
    if isinstance(answer, dict) and answer.get("error"):
        raise _make_reported(config, sent, answer["error"])
    if found is None:
        page = body.lstrip()[:1] == b"<"
        why = "html" if page else "not_json" if answer is None else "shape"
        said = SAY("client.not_an_answer", **who(config), why=SAY(f"client.unreadable.{why}"))
        # what is cut off or garbled may come whole the next time; a web page is a wrong address
        raise ModelTrouble(said, passing=why == "not_json", billed=True, outage=why != "html")
    message = found.message
    calls = [
        ToolCall(id=call.id or f"call_{n}", **REDACT(dict(call.function)))
        for n, call in enumerate(message.tool_calls or [])
    ]
    refused = bool(message.refusal) and not message.content and not calls
    return ModelReply(
        # a model may say what it was told in confidence
        content=REDACT(message.refusal if refused else message.content),
        reasoning=REDACT(message.reasoning_content or message.reasoning),
        tool_calls=calls,
        usage=found.usage,
        model=found.model or config.model_name,
        finish_reason=REFUSED if refused else found.finish_reason or ("tool_calls" if calls else "stop"),
    )


def make_refusal(
    config: LLMConfig, sent: Mapping[str, Any], status: int, body: bytes, retry_after: float | None = None
) -> ModelTrouble:
    complaint = body.decode("utf-8", "replace")
    hint = SAY(HINTS[status]) if status in HINTS else ""
    hint = SAY("client.hint.filter") if FILTER in complaint else hint
    return ModelTrouble(
        SAY("client.refused", **who(config), status=status, said=_excerpt(complaint), hint=hint),
        passing=status in PASSING or status >= 500,
        retry_after=retry_after,
        outage=status >= 500,
        unsupported=_find_unsupported(sent, complaint.lower()) if status in {400, 422} else None,
    )


def who(config: LLMConfig) -> dict[str, Any]:
    return {"vendor": config.vendor, "model": config.model_name}


def _message(message: ChatMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": make_storable(message.content)}
    if message.tool_calls:
        said["content"] = said["content"] or None
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    return said


def _make_reported(config: LLMConfig, sent: Mapping[str, Any], error: Any) -> ModelTrouble:
    """The status said success, the answer an error; its `code` is often the status it should have had."""
    body = json.dumps({"error": error}, ensure_ascii=False)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and 400 <= code < 600:
        return make_refusal(config, sent, code, body.encode(errors="replace"))
    said = SAY("client.reported", **who(config), said=_excerpt(body))
    return ModelTrouble(said, passing=True, outage=True)


def _excerpt(body: str) -> str | Message:
    """The vendor's own words, cut short after the secrets are out: half a key is still a secret."""
    message: Any = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(body)
        error = answer.get("error", answer) if isinstance(answer, dict) else answer
        message = error.get("message") if isinstance(error, dict) else error
    told = message if isinstance(message, str) else body
    words = " ".join(REDACT.text(make_storable(told)).split())
    return shorten(words, EXCERPT) or SAY("client.no_words")


def _find_unsupported(sent: Mapping[str, Any], complaint: str) -> str | None:
    """What was asked for and is named in the complaint; a prompt too long also counts the tokens of its tools."""
    if "context" in complaint and "length" in complaint:
        return None
    asked = [FEATURES[field] for field in FEATURES if field in sent]
    if any(denial in complaint for denial in DENIALS):
        asked += [(name, (name,)) for name in PARAMETERS if name in sent]
    return next((name for name, words in asked if any(word in complaint for word in words)), None)
