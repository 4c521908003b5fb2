"""Stands between the desk and a real model: keeps answers short, counts them, and teaches tools in words.

The template of a small model has no place for tools, so its server drops them without a word. Where `teaches` is on,
the model reads of them in its instructions and is held to the shape of a call or a reply; which one, it decides.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web

MOST_TOKENS = 120
TAUGHT = """

Answer with one JSON object. A call: {{"tool": its name, "arguments": {{...}}}}. Else: {{"reply": your words}}.
Tools:
{tools}"""
CUT_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*"(\w+)"\s*,\s*"arguments"\s*:\s*(.*)', re.DOTALL)

Json = dict[str, Any]


class Gateway:
    """`tokens` of every answer that the model gave, in their order, prompt included.

    `longest` bounds each argument of a call, so that none is cut off; None leaves that to the model.
    """

    def __init__(self, model: str, client: ClientSession, *, teaches: bool, longest: int | None) -> None:
        self._model, self._client, self._teaches, self._longest = model, client, teaches, longest
        self.tokens: list[int] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        asked["max_tokens"] = min(asked["max_tokens"], MOST_TOKENS)
        tools = asked.pop("tools", []) if self._teaches else []
        if self._teaches:
            asked = _in_words(asked, tools, self._longest)
        async with self._client.post(f"{self._model}/chat/completions", json=asked) as response:
            told, status = await response.json(), response.status
        if status == web.HTTPOk.status_code:
            self.tokens.append(told["usage"]["total_tokens"])
            if tools:
                told["choices"][0] = _as_called(told["choices"][0])
        return web.json_response(told, status=status)


@asynccontextmanager
async def gateway(model: str, *, teaches: bool, longest: int | None = None) -> AsyncIterator[Gateway]:
    async with ClientSession(timeout=ClientTimeout(total=None)) as client:
        served = Gateway(model, client, teaches=teaches, longest=longest)
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", served.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            served.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            yield served
        finally:
            await runner.cleanup()


def _in_words(asked: Json, tools: Sequence[Json], longest: int | None) -> Json:
    """The same request, to a model that knows texts alone."""
    messages = [_in_text(message) for message in asked["messages"]]
    asked = {name: value for name, value in asked.items() if name != "tool_choice"}
    if not tools:
        return asked | {"messages": messages}
    functions = [tool["function"] for tool in tools]
    messages[0]["content"] += TAUGHT.format(tools="\n".join(json.dumps(each) for each in functions))
    shapes = [*(_shape(each, longest) for each in functions), _object(reply={"type": "string"})]
    shape = {"name": "decision", "schema": {"anyOf": shapes}}
    return asked | {"messages": messages, "response_format": {"type": "json_schema", "json_schema": shape}}


def _in_text(message: Json) -> Json:
    calls = [
        json.dumps({"tool": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])})
        for call in message.get("tool_calls") or []
    ]
    role = "user" if message["role"] == "tool" else message["role"]
    return {"role": role, "content": "\n".join([message.get("content") or "", *calls]).strip()}


def _shape(function: Json, longest: int | None) -> Json:
    given = function["parameters"]
    bound = {"maxLength": longest} if longest else {}
    fields = {
        name: field | (bound if field.get("type") == "string" else {})
        for name, field in given["properties"].items()
    }
    return _object(tool={"const": function["name"]}, arguments=given | {"properties": fields})


def _object(**properties: Json) -> Json:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _as_called(choice: Mapping[str, Any]) -> Json:
    """As a service tells it whose model knows tools: a call that was cut off has half of its arguments."""
    said = choice["message"]["content"] or ""
    try:
        decided = json.loads(said)
        name, arguments = decided.get("tool"), json.dumps(decided.get("arguments"))
    except ValueError:
        cut = CUT_CALL.match(said)
        decided, (name, arguments) = {"reply": said}, cut.groups() if cut else (None, "")
    if name is None:
        return {**choice, "message": {"role": "assistant", "content": decided["reply"]}}
    call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": arguments}}
    ended = "tool_calls" if choice["finish_reason"] == "stop" else choice["finish_reason"]
    return {
        **choice,
        "finish_reason": ended,
        "message": {"role": "assistant", "content": "", "tool_calls": [call]},
    }
