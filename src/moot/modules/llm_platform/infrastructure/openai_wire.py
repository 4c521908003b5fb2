"""The chat-completions format: a request as JSON, an answer read strictly, a streamed answer put together."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn

from moot.modules.llm_platform.domain.chat import ChatMessage, ChatRequest, ModelReply, Tool, ToolCall, Usage
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.openai_trouble import reported, unreadable
from moot.shared.infrastructure.redaction import storable

MOST_TOKENS = 2**31
TOOL_CHOICES = {"none", "required"}


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
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice != "auto" and config.capabilities.tool_choice is not False:
            body["tool_choice"] = _choice(request.tool_choice)
    if request.response_schema and config.capabilities.json_schema is not False:
        schema = request.response_schema
        held = {"name": schema.name, "schema": schema.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": held}
    return body


def _message(message: ChatMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": storable(message.content)}
    if message.tool_calls:
        said["content"] = said["content"] or None
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    return said


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _choice(choice: str) -> str | dict[str, Any]:
    return choice if choice in TOOL_CHOICES else {"type": "function", "function": {"name": choice}}


class Answer:
    """What a vendor sent in reply to `sent`, whole or in pieces, until it is a `ModelReply`."""

    def __init__(self, config: LLMConfig, sent: Mapping[str, Any]) -> None:
        self._config, self._sent = config, sent
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[Any, _Call] = {}
        self._usage = Usage()
        self._model = ""
        self._finish_reason = ""
        self._answered = self._done = False

    def read(self, body: bytes) -> ModelReply:
        """A whole answer."""
        self._take(self._parsed(body), "message")
        self._done = True
        return self.reply()

    def add(self, event: bytes) -> str:
        """An event of a stream; returns its piece of the content."""
        if event == b"[DONE]":
            self._done = True
            return ""
        before = len(self._content)
        self._take(self._parsed(event), "delta")
        self._done = self._done or bool(self._finish_reason)
        return "".join(self._content[before:])

    def reply(self) -> ModelReply:
        """All that was read or added; a stream must have come to its end."""
        if not self._done:
            raise unreadable(self._config, "cut_off", passing=True)
        if not self._answered:
            raise unreadable(self._config, "no_choices")
        return ModelReply(
            content="".join(self._content),
            reasoning="".join(self._reasoning),
            tool_calls=[call.done(f"call_{n}") for n, call in enumerate(self._calls.values())],
            usage=self._usage,
            model=self._model or self._config.model_name,
            finish_reason=self._finish_reason or ("tool_calls" if self._calls else "stop"),
        )

    def _take(self, answer: Any, part: str) -> None:
        if not isinstance(answer, dict):
            raise unreadable(self._config, "shape")
        if answer.get("error"):
            trouble = reported(self._config, self._sent, answer)
            trouble.billed = self._answered
            raise trouble
        self._model = _text(answer.get("model")) or self._model
        if isinstance(answer.get("usage"), dict):
            self._usage = _usage(answer["usage"])
        match answer.get("choices"):
            case [dict() as choice, *_] if isinstance(choice.get(part), dict):
                self._answered = True
                self._finish_reason = _text(choice.get("finish_reason")) or self._finish_reason
                self._hear(choice[part])
            case None | []:
                pass
            case _:
                raise unreadable(self._config, "shape")

    def _hear(self, said: dict[str, Any]) -> None:
        content, calls = said.get("content"), said.get("tool_calls")
        if not isinstance(content, str | None) or not isinstance(calls, list | None):
            raise unreadable(self._config, "shape")
        self._content.append(_text(content))
        self._reasoning.append(_text(said.get("reasoning_content")) or _text(said.get("reasoning")))
        for call in calls or []:
            self._hear_call(call)

    def _hear_call(self, said: Any) -> None:
        if not isinstance(said, dict) or not isinstance(said.get("function"), dict):
            raise unreadable(self._config, "shape")
        self._call_of(said).add(_text(said.get("id")), said["function"])

    def _call_of(self, said: Mapping[str, Any]) -> "_Call":
        """Parts of one call share an index; without any, an id begins a new one."""
        index = said.get("index")
        if isinstance(index, int):
            return self._calls.setdefault(index, _Call())
        if said.get("id") or not self._calls:
            return self._calls.setdefault(f"after {len(self._calls)}", _Call())
        return next(reversed(self._calls.values()))

    def _parsed(self, body: bytes) -> Any:
        try:
            return STRICT.decode(body.decode("utf-8-sig"))
        except _NotStrict as e:
            why = e.why
        except (ValueError, RecursionError):
            why = _kind(body)
        raise unreadable(self._config, why, passing=why != "html")


class _Call:
    """A tool call that may come in parts."""

    def __init__(self) -> None:
        self._id, self._name, self._arguments = "", "", ""

    def add(self, call_id: str, function: Mapping[str, Any]) -> None:
        self._id = self._id or call_id
        self._name = self._name or _text(function.get("name"))
        arguments = function.get("arguments")
        self._arguments += json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments)

    def done(self, default_id: str) -> ToolCall:
        return ToolCall(id=self._id or default_id, name=self._name, arguments=self._arguments)


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event; vendors write one line each."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if rest.startswith(b"data:"):
        yield rest[5:].strip()


class _NotStrict(ValueError):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _NotStrict("duplicate_keys")
    return members


def _no_constant(_: str) -> NoReturn:
    raise _NotStrict("not_a_number")


STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


def _kind(body: bytes) -> str:
    start = body.lstrip()[:1]
    return {b"": "empty", b"<": "html", b"{": "cut_off"}.get(start, "not_json")


def _usage(said: Mapping[str, Any]) -> Usage:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return Usage(**{name: _count(said.get(name)) for name in names})


def _count(value: Any) -> int | None:
    counted = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS
    return value if counted else None


def _text(value: Any) -> str:
    return storable(value) if isinstance(value, str) else ""
