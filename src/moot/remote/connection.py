"""The way to a served desk. Whatever goes wrong on it is said with the address and without the key."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from moot.modules.coordinator.application.session_history import SessionEvent
from moot.modules.coordinator.domain import exceptions
from moot.modules.governance.application.coordinator_agent import PersonAsked
from moot.modules.intake.application.intake_service import NoSuchConversation, NotItsTurn
from moot.shared.domain.errors import AppError, InvalidInput, TooManyRequests, Unavailable, UpstreamFailed
from moot.shared.domain.messages import Catalogue, Locale
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.presentation.errors import STATUS, ErrorBody

M = TypeVar("M", bound=BaseModel)
SAY = Catalogue(Path(__file__).parent / "texts")

API = "/api/v1"
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
"""How long a stream may say nothing, not even that it is alive."""
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds before each attempt to hear more: together, time for a desk to be started again."""
KNOWN_EVENTS = get_args(SessionEvent.model_fields["type"].annotation)

LIMITS = httpx.Limits(max_connections=None, keepalive_expiry=2.0)
"""A run holds its connection to the end, and asks on another; an idle one is dropped before the server does it."""

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
    """`locale`: the language asked for; None: the desk's own."""

    def __init__(self, base_url: str, api_key: str, *, locale: Locale | None, timeout: float) -> None:
        self.url, self._timeout = _address(base_url), timeout
        self._client = httpx.AsyncClient(
            base_url=self.url + API,
            headers=_headers({"Accept": "application/json", "Accept-Language": locale}, api_key),
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            limits=LIMITS,
            verify=self.url.startswith("https:"),  # to read the certificates takes longer than to ask
            follow_redirects=False,  # the key is for this address alone
        )
        self.close = self._client.aclose

    async def get(self, kind: type[M], path: str, **params: Any) -> M:
        given = {name: value for name, value in params.items() if value is not None}
        return await self._send(kind, "GET", path, params=given)

    async def delete(self, kind: type[M], path: str, **params: Any) -> M:
        return await self._send(kind, "DELETE", path, params=params)

    async def post(
        self,
        kind: type[M],
        path: str,
        body: Mapping[str, Any] = NOTHING,
        headers: Mapping[str, str | None] = NOTHING,
    ) -> M:
        """`body` may hold dates. Whether it makes sense is for the desk to say."""
        sent = _headers({"Content-Type": "application/json", **headers})
        return await self._send(kind, "POST", path, content=to_json(body), headers=sent)

    async def _send(self, kind: type[M], method: str, path: str, **request: Any) -> M:
        """Raises the error that the response tells of, be it with 202, or `UpstreamFailed` for one not of a desk."""
        with self._name_trouble(self._timeout):
            response = await self._client.request(method, path, **request)
        if response.is_success:
            with suppress(ValidationError):
                return kind.model_validate_json(response.content)
        raise read_error(response, self.url)

    async def follow(
        self, path: str, after: int, ended: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[SessionEvent]:
        """The events of a session after that one, to `done`: taken up again where the line broke. Raises what was
        wrong last when no attempt hears anything any more.

        `ended` says whether the session has: then a line on which nothing comes has nothing more to tell.
        """
        last, left, over = after, list(PAUSES), False
        while True:
            wrong: AppError = Unavailable(SAY("cut_off", url=self.url), url=self.url)
            before = last
            try:
                async with aclosing(self._hear(path, last)) as heard:
                    async for event in heard:
                        left = list(PAUSES)
                        if event is None or event.seq <= last:
                            continue
                        last = event.seq
                        yield event
                        if event.type == "done":
                            return
                if over and last == before:
                    return
                over = await ended()
            except (Unavailable, TooManyRequests) as e:
                wrong = e
            if not left:
                raise wrong
            await asyncio.sleep(max(left.pop(0), wrong.details.get("retry_after", 0.0)))

    async def _hear(self, path: str, last: int) -> AsyncGenerator[SessionEvent | None]:
        """What one line tells, as it comes; None: something else, which says at least that somebody is there."""
        patience = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        asked = _headers({"Accept": "text/event-stream", "Last-Event-ID": str(last) if last else None})
        rest = b""
        with self._name_trouble(SILENCE_SECONDS):
            async with self._client.stream("GET", path, headers=asked, timeout=patience) as response:
                if not response.is_success:
                    await response.aread()
                    raise read_error(response, self.url)
                async for chunk in response.aiter_bytes():
                    yield None
                    *frames, rest = (rest + chunk).split(b"\n\n")
                    for frame in frames:
                        yield _read_event(frame, self.url)

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


def _headers(named: Mapping[str, str | None], api_key: str = "") -> httpx.Headers:
    """Those that have a value, with the key if there is one."""
    sent = httpx.Headers({k: v for k, v in named.items() if v is not None}, encoding="utf-8")
    if key := api_key.strip():
        if not KEY.fullmatch(key):
            raise InvalidInput(SAY("key_malformed"))
        REDACT.learn(key)
        sent["Authorization"] = f"Bearer {key}"
    return sent


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


def _read_event(frame: bytes, url: str) -> SessionEvent | None:
    """None: a sign of life, or an event of a kind that is not known here."""
    lines = (line.partition(": ") for line in frame.decode("utf-8", "replace").split("\n"))
    said = {field: value for field, _, value in lines}
    if said.get("event") not in KNOWN_EVENTS:
        return None
    try:
        data = json.loads(said["data"])
        at = data.pop("at")
        return SessionEvent.model_validate({"seq": said["id"], "type": said["event"], "at": at, "data": data})
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UpstreamFailed(SAY("not_a_desk", url=url, status=200), url=url) from None
