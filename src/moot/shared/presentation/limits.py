"""What a request may bring, how many may ask and listen, how long they may keep the desk waiting: all bounded."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Request
from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from moot.shared.domain.errors import AppError, InvalidInput, TooManyRequests
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import refuse_field
from moot.shared.presentation.caller import is_api
from moot.shared.presentation.errors import answer

MOST_BYTES = 1_000_000
FORM = "application/x-www-form-urlencoded"
DEEPEST = 200
"""So deep JSON is read; what is kept as it came is bounded more tightly by its own route."""
BODY_SECONDS = 60.0
STREAMS_OF_A_SESSION = 16
STREAMS_OF_A_KEY = 512
"""As many as a desk takes sessions, unless it is told otherwise."""
COME_BACK = 5


class BodyLimit:
    """ASGI middleware: reads the whole body, and hands on only what is small enough, in time, and JSON.

    `most` says how many bytes a path may bring.
    """

    def __init__(self, app: ASGIApp, most: Callable[[str], int]) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _brings_body(request := Request(scope, receive)):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read(request, self._most(request.url.path))
            if body:
                _check_json(body, request)
        except ClientDisconnect:
            return
        except TimeoutError:
            slow = InvalidInput(SAY("limits.body_slow", seconds=BODY_SECONDS), code="TOO_SLOW")
            await answer(request, slow)(scope, receive, send)
        except AppError as e:
            await answer(request, e)(scope, receive, send)
        else:
            await self._app(scope, _hand_on(body, receive), send)


def _brings_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


async def _read(request: Request, most: int) -> bytes:
    """Not a byte of what says itself that it is too large. Raises `ClientDisconnect`."""
    too_large = InvalidInput(SAY("limits.body_large", most=most), code="TOO_LARGE", allowed=most)
    announced, body = request.headers.get("content-length", ""), bytearray()
    if announced.isdecimal() and int(announced) > most:
        raise too_large
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise too_large
    return bytes(body)


def _check_json(body: bytes, request: Request) -> None:
    """Every body is JSON here, unless a page sends its form, and what is wrong with one is told with its place."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == FORM and not is_api(request.url.path):
        return
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise refuse_field("not_json", "body", None, got=media_type or "-", allowed=["application/json"])
    try:
        from_json(body)
    except ValueError as e:
        flaw, _, place = str(e).partition(" at ")
        if flaw.startswith("recursion limit"):
            depth = [f"depth <= {DEEPEST}"]
            raise refuse_field("too_deep", "body", None, got=place, allowed=depth) from None
        raise refuse_field("json_invalid", "body", None, error=str(e)) from None


def _hand_on(body: bytes, receive: Receive) -> Receive:
    """The body at once; whoever listens further hears when the client hangs up."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def hand() -> Message:
        return waiting.pop() if waiting else await receive()

    return hand


class Streams:
    """Who listens in this process: so many at once to one session, and so many with one key."""

    def __init__(self) -> None:
        self._open: Counter[object] = Counter()

    @contextmanager
    def listen(self, session: object, key: object) -> Iterator[None]:
        """Raises `TooManyRequests`."""
        bounds = {("session", session): STREAMS_OF_A_SESSION, ("key", key): STREAMS_OF_A_KEY}
        for (kind, name), most in bounds.items():
            if self._open[kind, name] >= most:
                raise TooManyRequests(SAY(f"limits.streams_{kind}", most=most), retry_after=COME_BACK)
        self._open.update(bounds.keys())
        try:
            yield
        finally:
            self._open.subtract(bounds.keys())
            self._open = +self._open


MOST_CONNECTIONS = 1000


class BoundedHttp(H11Protocol):
    """Whoever opens a connection and does not say what for is hung up on, the longest silent first."""

    most_waiting = 200
    patience = 15.0
    """Seconds for a request line and its headers, and for the rest of a body that is no longer wanted."""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_clock()

    def _watch(self) -> None:
        """The clock runs while there is no request to answer; what is sent meanwhile does not wind it up again."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.transport.is_closing():
            self._stop_clock()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self._hang_up)
            self._make_room()

    def _make_room(self) -> None:
        others = (each for each in self.connections if isinstance(each, BoundedHttp))
        waiting = {each: each._deadline.when() for each in others if each._deadline is not None}
        if len(waiting) > self.most_waiting:
            min(waiting, key=waiting.__getitem__)._hang_up()

    def _hang_up(self) -> None:
        self._stop_clock()
        self.transport.abort()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


BOUNDS: dict[str, Any] = {"http": BoundedHttp, "limit_concurrency": MOST_CONNECTIONS, "timeout_keep_alive": 5}
"""For `uvicorn.Config`. Headers larger than 16 KB are refused by its parser."""
