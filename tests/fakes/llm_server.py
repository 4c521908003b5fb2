"""An OpenAI-compatible model server on a local port, which answers as it was told to, faults included."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Say:
    """An ordinary answer. `tool_calls` are (id, name, arguments); `usage` is (prompt, completion) or None."""

    content: str | None = "ok"
    usage: tuple[int, int] | None = (100, 50)
    finish_reason: str = "stop"
    tool_calls: Sequence[tuple[str, str, str]] = ()
    reasoning: str | None = None
    model: str | None = None
    delay: float = 0.0
    held_until: asyncio.Event | None = None


@dataclass(frozen=True)
class Status:
    code: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Status 200 and these bytes, whatever was asked."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True)
class Hang:
    """Silence, then the connection is cut."""

    seconds: float = 3600.0


@dataclass(frozen=True)
class Trickle:
    """A correct answer in `pieces` parts, with a pause before each."""

    content: str = "drip"
    pause: float = 0.05
    pieces: int = 100


@dataclass(frozen=True)
class Huge:
    """Status 200 and a JSON string of so many bytes."""

    n_bytes: int = 50_000_000


Fixed = Say | Status | Raw | Hang | Trickle | Huge
Reply = Fixed | Callable[[dict[str, Any]], Fixed]


@dataclass(frozen=True)
class Seen:
    """A request as it came; `received` counts from 1."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    received: int

    @property
    def prompt(self) -> str:
        """What the last message says."""
        return str(self.body["messages"][-1]["content"])


class LLMServer:
    """Answers with the script, one reply a request; after its end, and without one, with `default`."""

    def __init__(self) -> None:
        self.url = ""
        self.default: Reply = Say()
        self.models = ["fake-1"]
        self.requests: list[Seen] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.bytes_sent = 0
        self.broken_off = 0
        """Answers the client did not wait for."""
        self._script: list[Reply] = []

    def script(self, *replies: Reply) -> None:
        self._script.extend(replies)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self._see(request, body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = self._script.pop(0) if self._script else self.default
            return await self._answer(request, body, reply(body) if callable(reply) else reply)
        except (ConnectionError, asyncio.CancelledError):
            self.broken_off += 1
            raise
        finally:
            self.in_flight -= 1

    async def list_models(self, request: web.Request) -> web.StreamResponse:
        self._see(request, {})
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in self.models]
        return web.json_response({"object": "list", "data": data})

    def _see(self, request: web.Request, body: dict[str, Any]) -> None:
        self.requests.append(Seen(request.path, request.headers, body, len(self.requests) + 1))

    async def _answer(self, request: web.Request, body: dict[str, Any], reply: Fixed) -> web.StreamResponse:
        match reply:
            case Status():
                return web.Response(status=reply.code, body=reply.body.encode(), headers=dict(reply.headers))
            case Raw():
                return web.Response(body=reply.body, content_type=reply.content_type)
            case Hang():
                return await self._hang(request, reply.seconds)
            case Huge():
                return await self._send(request, _huge(reply.n_bytes))
            case Trickle():
                return await self._trickle(request, body, reply)
            case Say():
                return await self._say(request, body, reply)

    async def _say(self, request: web.Request, body: dict[str, Any], reply: Say) -> web.StreamResponse:
        await asyncio.sleep(reply.delay)
        if reply.held_until is not None:
            await reply.held_until.wait()
        return web.json_response(_completion(body, reply))

    async def _hang(self, request: web.Request, seconds: float) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        if request.transport is not None:
            request.transport.close()
        raise ConnectionResetError

    async def _trickle(
        self, request: web.Request, body: dict[str, Any], reply: Trickle
    ) -> web.StreamResponse:
        whole = json.dumps(_completion(body, Say(reply.content))).encode()
        size = max(1, len(whole) // reply.pieces)
        parts = [whole[at : at + size] for at in range(0, len(whole), size)]
        return await self._send(request, _each(parts, reply.pause))

    async def _send(self, request: web.Request, parts: AsyncIterator[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        async for part in parts:
            await response.write(part)
            self.bytes_sent += len(part)
        await response.write_eof()
        return response


def _completion(body: dict[str, Any], reply: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [_tool_call(*call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    said = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "choices": [choice]}
    said["model"] = reply.model or body["model"]
    return said if reply.usage is None else said | {"usage": _usage(*reply.usage)}


def _tool_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def _each(parts: Sequence[bytes], pause: float) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(pause)
        yield part


async def _huge(n_bytes: int) -> AsyncIterator[bytes]:
    yield b'"'
    for _ in range(n_bytes // 65_536):
        yield b"x" * 65_536
    yield b"x" * (n_bytes % 65_536 - 2) + b'"'


@asynccontextmanager
async def running_llm_server() -> AsyncIterator[LLMServer]:
    server = LLMServer()
    app = web.Application(client_max_size=64_000_000)
    app.router.add_post("/v1/chat/completions", server.complete)
    app.router.add_get("/v1/models", server.list_models)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
