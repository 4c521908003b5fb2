"""The client to any OpenAI-compatible model: one request a call, over aiohttp."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from moot.modules.llm_platform.domain.chat import ChatRequest, ModelReply
from moot.modules.llm_platform.domain.exceptions import ModelTrouble
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.infrastructure.openai_wire import chat_body, make_refusal, read_answer, who
from moot.modules.llm_platform.infrastructure.public_web import (
    CheckedResolver,
    NotPublicError,
    leads_outside,
    read_body,
)
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.infrastructure.redaction import REDACT

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 600.0
KEPT_OPEN = 4.0
"""Seconds an idle connection is kept; many servers close theirs after five, and a request must not meet that."""
COMPLAINT_BYTES = 64_000
"""As much of a refusal is read."""
LONGEST_WAIT = 60.0
SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is capped is what is held
}

MISTAKEN = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, aiohttp.ClientConnectorCertificateError)
"""Configured wrongly: no other attempt will change it."""
NEVER_SENT = (
    *MISTAKEN,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
)


class OpenAIChatModel:
    """Speaks to every configured model over one pool of connections.

    `private_urls`: models that are held to the public web may be anywhere all the same.
    `read_timeout` bounds the silence between two reads, not the call: that is the caller's to bound. Answers larger
    than `max_bytes` are not read to the end.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 8_000_000,
        read_timeout: float = READ_TIMEOUT,
        clock: Clock | None = None,
        private_urls: bool = False,
    ) -> None:
        self._max_bytes, self._read_timeout, self._private_urls = max_bytes, read_timeout, private_urls
        self._clock = clock or SystemClock()
        self._opened: dict[bool, aiohttp.ClientSession] = {}
        self._proxies: dict[str, str | None] = {}

    async def complete(self, config: LLMConfig, request: ChatRequest) -> ModelReply:
        """Troubles are raised outside `except`: aiohttp's errors hold the key."""
        sent = chat_body(config, request)
        try:
            status, headers, body = await self._post(config, sent)
        except Exception as e:  # noqa: BLE001 - bulkhead: what the library raises is this request's trouble
            trouble = _transport_failed(config, e)
        else:
            if not 200 <= status < 300:
                trouble = make_refusal(
                    config, sent, status, body, _wait_asked_for(headers, self._clock.now())
                )
            elif len(body) > self._max_bytes:
                said = SAY("client.too_big", **who(config), limit=self._max_bytes)
                trouble = ModelTrouble(said, billed=True, outage=True)
            else:
                return read_answer(config, sent, body)
        raise trouble

    async def aclose(self) -> None:
        while self._opened:
            await self._opened.popitem()[1].close()

    async def _post(self, config: LLMConfig, sent: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """The status, the headers, and as much of the body as may be read, or a little more."""
        proxy = config.proxy or self._proxy_for(config.base_url)
        held = config.public_only and not self._private_urls
        ours = proxy is not None and proxy != config.proxy  # the desk's own may lie anywhere, and asks for us
        if held and ours and not await leads_outside(config.base_url):
            raise NotPublicError(config.base_url)
        key = config.api_key.get_secret_value()
        REDACT.learn(key)
        async with self._session(checked=held and not ours).post(
            f"{config.base_url}/chat/completions",
            data=json.dumps(sent, ensure_ascii=False).encode(errors="replace"),
            headers=HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            proxy=proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                sock_connect=CONNECT_TIMEOUT, sock_read=max(self._read_timeout, config.timeout or 0.0)
            ),
        ) as response:
            if response.ok:
                return response.status, response.headers, await read_body(response, self._max_bytes)
            body = b""
            with suppress(aiohttp.ClientError, TimeoutError):  # the status says enough
                body = await read_body(response, COMPLAINT_BYTES)
            return response.status, response.headers, body

    def _session(self, *, checked: bool) -> aiohttp.ClientSession:
        """`checked`: every address is looked at when it is connected to, whatever the name led to before."""
        if checked not in self._opened:
            resolver = CheckedResolver(aiohttp.ThreadedResolver()) if checked else None
            self._opened[checked] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_OPEN, resolver=resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._opened[checked]

    def _proxy_for(self, base_url: str) -> str | None:
        """The environment's. aiohttp would look for it in a thread, anew for each call, and for keys in `.netrc`."""
        if base_url not in self._proxies:
            url = urlsplit(base_url)
            bypassed = proxy_bypass(url.hostname or "")
            self._proxies[base_url] = None if bypassed else getproxies().get(url.scheme)
        return self._proxies[base_url]


def _transport_failed(config: LLMConfig, error: Exception) -> ModelTrouble:
    """Told by the kind of the error only: its text may quote the request."""
    said = who(config) | {"error": type(error).__name__}
    if isinstance(error, NotPublicError):
        return ModelTrouble(SAY("client.not_public", **said))
    if isinstance(error, NEVER_SENT):
        ours = isinstance(error, MISTAKEN)
        return ModelTrouble(SAY("client.unreachable", **said), passing=not ours, outage=not ours)
    if not isinstance(error, aiohttp.ClientError):
        return ModelTrouble(SAY("client.failed", **said))
    key = "client.timeout" if isinstance(error, aiohttp.ServerTimeoutError) else "client.broken_off"
    return ModelTrouble(SAY(key, **said), passing=True, billed=True, outage=True)


def _wait_asked_for(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds, at most `LONGEST_WAIT`; None when the vendor names none or nonsense."""
    asked = headers.get("retry-after", "")
    try:
        named = SECONDS.fullmatch(asked)
        seconds = float(asked) if named else (parsedate_to_datetime(asked) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT)
