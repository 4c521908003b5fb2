"""The way to a served desk. Whatever goes wrong on it is said with the address and without the key."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel
from pydantic_core import to_json

from moot.remote.answers import read, trouble
from moot.remote.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.redaction import REDACT

M = TypeVar("M", bound=BaseModel)

API = "/api/v1"
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
"""How long a stream may say nothing, not even that it is alive."""

LIMITS = httpx.Limits(max_connections=None, keepalive_expiry=2.0)
"""A run holds its connection to the end, and asks on another; an idle one is dropped before the server does it."""

JSON = {"Content-Type": "application/json"}
NOTHING: Mapping[str, Any] = {}
KEY = re.compile(r"[\w.~+/=-]+", re.ASCII)


class Connection:
    def __init__(self, base_url: str, api_key: str, *, locale: Locale, timeout: float) -> None:
        self.url, self._timeout = _address(base_url), timeout
        self._client = httpx.AsyncClient(
            base_url=self.url + API,
            headers={"Accept": "application/json", "Accept-Language": locale, **_authorisation(api_key)},
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            limits=LIMITS,
            follow_redirects=False,  # the key is for this address alone
        )

    async def get(self, kind: type[M], path: str, **params: Any) -> M:
        given = {name: value for name, value in params.items() if value is not None}
        with self._trouble_named(self._timeout):
            response = await self._client.get(path, params=given)
        return read(kind, response, self.url)

    async def post(
        self,
        kind: type[M],
        path: str,
        body: Mapping[str, Any] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
    ) -> M:
        """`body` may hold dates. Whether it makes sense is for the desk to say."""
        sent = httpx.Headers({**JSON, **headers}, encoding="utf-8")
        with self._trouble_named(self._timeout):
            response = await self._client.post(path, content=to_json(body), headers=sent)
        return read(kind, response, self.url)

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """What comes in, as it comes."""
        patience = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        asked = {"Accept": "text/event-stream", **headers}
        with self._trouble_named(SILENCE_SECONDS):
            async with self._client.stream("GET", path, headers=asked, timeout=patience) as response:
                if not response.is_success:
                    await response.aread()
                    raise trouble(response, self.url)
                yield response.aiter_bytes()

    async def close(self) -> None:
        await self._client.aclose()

    @contextmanager
    def _trouble_named(self, seconds: float) -> Iterator[None]:
        """By its kind only: what the client library says may quote the request."""
        try:
            yield
        except httpx.ReadTimeout:
            said = SAY("timeout", url=self.url, seconds=seconds)
            raise Unavailable(said, url=self.url) from None
        except httpx.LocalProtocolError:
            raise InvalidInput(SAY("header_malformed")) from None
        except httpx.RequestError as e:
            said = SAY("unreachable", url=self.url, error=type(e).__name__)
            raise Unavailable(said, url=self.url) from None


def _address(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise InvalidInput(SAY("address_malformed", got=REDACT.text(base_url)))
    return str(url).rstrip("/")


def _authorisation(api_key: str) -> dict[str, str]:
    key = api_key.strip()
    if not key:
        return {}
    if not KEY.fullmatch(key):
        raise InvalidInput(SAY("key_malformed"))
    REDACT.learn(key)
    return {"Authorization": f"Bearer {key}"}
