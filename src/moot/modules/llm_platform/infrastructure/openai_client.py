"""The client to any OpenAI-compatible model: the openai SDK over aiohttp, one request a call."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from moot.modules.llm_platform.domain.chat import ChatRequest, ModelReply
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.openai_trouble import (
    Refusal,
    refused,
    too_big,
    transport_failed,
    wait_asked_for,
)
from moot.modules.llm_platform.infrastructure.openai_wire import Answer, chat_body, events
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.infrastructure.redaction import REDACT

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 600.0
COMPLAINT_BYTES = 64_000
"""As much of a refusal is read."""


class OpenAIChatModel:
    """Speaks to every configured model; connections are kept for each address, key and proxy.

    `read_timeout` bounds the silence between two reads, not the call: that is the caller's to bound. Answers larger
    than `max_bytes` are not read to the end.
    """

    def __init__(
        self, *, max_bytes: int = 8_000_000, read_timeout: float = READ_TIMEOUT, clock: Clock | None = None
    ) -> None:
        self._max_bytes, self._read_timeout = max_bytes, read_timeout
        self._clock = clock or SystemClock()
        self._clients: dict[tuple[str, str, str | None], AsyncOpenAI] = {}

    async def complete(self, config: LLMConfig, request: ChatRequest) -> ModelReply:
        body = chat_body(config, request)
        async with await self._open(config, body) as response:
            return Answer(config, body).read(await self._whole(config, response))

    async def stream(self, config: LLMConfig, request: ChatRequest) -> AsyncIterator[str | ModelReply]:
        body = chat_body(config, request) | {"stream": True, "stream_options": {"include_usage": True}}
        answer = Answer(config, body)
        async with await self._open(config, body) as response:
            if "event-stream" not in response.response.headers.get("content-type", ""):
                reply = answer.read(await self._whole(config, response))
                yield reply.content
                yield reply
                return
            async with aclosing(self._chunks(config, response)) as chunks:
                async for event in events(chunks):
                    if piece := answer.add(event):
                        yield piece
        yield answer.reply()

    async def aclose(self) -> None:
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.close()

    def _client(self, config: LLMConfig) -> "AsyncOpenAI":
        key = config.api_key.get_secret_value()
        line = (config.base_url, key, config.proxy)
        if line not in self._clients:
            REDACT.learn(key)
            self._clients[line] = self._connected(*line)
        return self._clients[line]

    def _connected(self, base_url: str, key: str, proxy: str | None) -> "AsyncOpenAI":
        """What the SDK would take from its own environment variables is not for every vendor's eyes."""
        from openai import AsyncOpenAI, DefaultAioHttpClient, Timeout, omit  # noqa: PLC0415 - takes half a second

        timeout = Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT, read=self._read_timeout)
        headers: dict[str, Any] = {
            "OpenAI-Organization": omit,
            "OpenAI-Project": omit,
            "Accept-Encoding": "identity",  # what is capped is what is held
        }
        return AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            max_retries=0,
            timeout=timeout,
            default_headers=headers,
            http_client=DefaultAioHttpClient(
                proxy=proxy,
                timeout=timeout,
                event_hooks={"response": [_stop_refusals]},
            ),
        )

    async def _open(self, config: LLMConfig, body: Mapping[str, Any]) -> "AsyncStream[object]":
        """The answer, not yet read. Troubles are raised outside `except`: the SDK's errors hold the key."""
        try:
            client = self._client(config)
            from openai import AsyncStream, omit  # noqa: PLC0415 - after the client, which has paid for it

            options: Any = {} if config.api_key else {"headers": {"Authorization": omit}}
            return await client.post(
                "/chat/completions",
                cast_to=object,
                body=body,
                options=options,
                stream=True,
                stream_cls=AsyncStream[object],
            )
        except Refusal as refusal:
            wait = wait_asked_for(refusal.headers, self._clock.now())
            trouble = refused(config, body, refusal.status, refusal.body, wait)
        except Exception as e:  # noqa: BLE001 - bulkhead: what the libraries raise is this request's trouble
            trouble = transport_failed(config, e)
        raise trouble

    async def _whole(self, config: LLMConfig, response: "AsyncStream[object]") -> bytes:
        return b"".join([chunk async for chunk in self._chunks(config, response)])

    async def _chunks(self, config: LLMConfig, response: "AsyncStream[object]") -> AsyncGenerator[bytes]:
        left = self._max_bytes
        try:
            async with aclosing(response.response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    left -= len(chunk)
                    if left < 0:
                        break
                    yield chunk
                else:
                    return
            trouble = too_big(config, self._max_bytes)
        except Exception as e:  # noqa: BLE001 - bulkhead: as above
            trouble = transport_failed(config, e)
        raise trouble


async def _stop_refusals(response: Any) -> None:
    """The SDK would read a refusal to its end, however long, and follow a redirect."""
    if response.is_success:
        return
    complaint = b""
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                complaint += chunk
                if len(complaint) > COMPLAINT_BYTES:
                    break
    except Exception:  # noqa: BLE001, S110 - bulkhead: the status says enough
        pass
    raise Refusal(response.status_code, response.headers, complaint)
