"""What a request may bring, and how many may listen: bounded before anybody works on it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastapi import Request
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.shared.domain.errors import AppError, InvalidInput, TooManyRequests
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import refuse_field
from moot.shared.presentation.errors import answer

MOST_BYTES = 1_000_000
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

    def __init__(self, app: ASGIApp, most: Callable[[str], int] = lambda _path: MOST_BYTES) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _brings_body(request := Request(scope)):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(request, receive)
            if body:
                _check_json(body, request.headers.get("content-type", ""))
        except AppError as e:
            await answer(request, e)(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _hand_on(body, receive), send)

    async def _read(self, request: Request, receive: Receive) -> bytes | None:
        """None: the client is gone."""
        most = self._most(request.url.path)
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise _refuse_size(most)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await _collect(receive, most)
        except TimeoutError:
            raise InvalidInput(SAY("limits.body_slow", seconds=BODY_SECONDS), code="TOO_SLOW") from None


def _brings_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


async def _collect(receive: Receive, most: int) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise _refuse_size(most)
        if not message.get("more_body", False):
            return bytes(body)


def _refuse_size(most: int) -> InvalidInput:
    return InvalidInput(SAY("limits.body_large", most=most), code="TOO_LARGE", allowed=most)


def _check_json(body: bytes, content_type: str) -> None:
    """Every body is JSON here, and what is wrong with one is told with its place."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise refuse_field("not_json", "body", None, got=media_type or "-", allowed=["application/json"])
    try:
        from_json(body)
    except ValueError as e:
        raise _name_flaw(str(e)) from None


def _name_flaw(said: str) -> InvalidInput:
    if said.startswith("recursion limit"):
        place = said.partition(" at ")[2]
        return refuse_field("too_deep", "body", None, got=place, allowed=[f"depth <= {DEEPEST}"])
    return refuse_field("json_invalid", "body", None, error=said)


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
