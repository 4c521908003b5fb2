"""The way to a served desk. Whatever goes wrong on it is said with the address and without the key."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from moot.modules.coordinator.domain import exceptions
from moot.modules.governance.application.coordinator_agent import PersonAsked
from moot.modules.intake.application.intake_service import NoSuchConversation, NotItsTurn
from moot.remote.texts import SAY
from moot.shared.domain.errors import AppError, InvalidInput, TooManyRequests, Unavailable, UpstreamFailed
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.presentation.errors import STATUS, ErrorBody

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

BY_STATUS = {status: kind for kind, status in STATUS.items()}
BY_CODE: dict[str, type[AppError]] = {
    kind.code: kind
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, AppError) and kind.__module__ == exceptions.__name__
    if "code" in vars(kind)
} | {kind.code: kind for kind in (PersonAsked, NoSuchConversation, NotItsTurn)}
"""What only the coordinator or intake raises, and the one error that comes with 202."""
FROM_A_PROXY: dict[int, type[AppError]] = {502: Unavailable, 503: Unavailable, 504: Unavailable}
"""Without a body of Moot's these say that the desk behind a proxy does not answer."""


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
        return await self._send(kind, "GET", path, params=given)

    async def post(
        self,
        kind: type[M],
        path: str,
        body: Mapping[str, Any] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
    ) -> M:
        """`body` may hold dates. Whether it makes sense is for the desk to say."""
        sent = httpx.Headers({**JSON, **headers}, encoding="utf-8")
        return await self._send(kind, "POST", path, content=to_json(body), headers=sent)

    async def _send(self, kind: type[M], method: str, path: str, **request: Any) -> M:
        """Raises the error that the response tells of, be it with 202, or `UpstreamFailed` for one not of a desk."""
        with self._name_trouble(self._timeout):
            response = await self._client.request(method, path, **request)
        if response.is_success:
            with suppress(ValidationError):
                return kind.model_validate_json(response.content)
        raise read_error(response, self.url)

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """What comes in, as it comes."""
        patience = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        asked = {"Accept": "text/event-stream", **headers}
        with self._name_trouble(SILENCE_SECONDS):
            async with self._client.stream("GET", path, headers=asked, timeout=patience) as response:
                if not response.is_success:
                    await response.aread()
                    raise read_error(response, self.url)
                yield response.aiter_bytes()

    async def close(self) -> None:
        await self._client.aclose()

    @contextmanager
    def _name_trouble(self, seconds: float) -> Iterator[None]:
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


def read_error(response: httpx.Response, url: str) -> AppError:
    if response.is_redirect:
        location = response.headers["location"]
        return UpstreamFailed(SAY("redirected", url=url, location=location), url=url)
    status = response.status_code
    try:
        body = ErrorBody.model_validate_json(response.content)
    except ValidationError:
        foreign = FROM_A_PROXY.get(status, UpstreamFailed)
        return foreign(SAY("not_a_desk", url=url, status=status), url=url, status=status)
    kind = BY_CODE.get(body.code) or BY_STATUS.get(status, InvalidInput if status < 500 else AppError)
    return _rebuild(kind, body, response.headers.get("retry-after", ""))


def _rebuild(kind: type[AppError], body: ErrorBody, retry_after: str) -> AppError:
    """An error put together in another process: its own constructor has run there already."""
    error = kind.__new__(kind)
    AppError.__init__(error, body.message, code=body.code)
    error.details = body.details
    if retry_after or issubclass(kind, TooManyRequests):
        error.details["retry_after"] = _seconds(body.details.get("retry_after", retry_after))
    return error


def _seconds(stated: Any) -> float:
    """A second, where nobody says how many."""
    try:
        return max(float(stated), 0.0)
    except (TypeError, ValueError):
        return 1.0
