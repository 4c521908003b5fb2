"""Hearing all of a session: server-sent events, taken up again where the line broke."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from moot.modules.coordinator.application.session_history import SessionEvent
from moot.remote.connection import Connection
from moot.remote.texts import SAY
from moot.shared.domain.errors import AppError, TooManyRequests, Unavailable, UpstreamFailed

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds before each attempt to hear more: together, time for a desk to be started again."""

KNOWN = get_args(SessionEvent.model_fields["type"].annotation)
LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
"""What follows a carriage return decides whether the line ends there or one byte later."""


class Frame(NamedTuple):
    """`id` is that of this frame or, where it has none, of the last one that had."""

    id: str
    event: str
    data: str


class EventStream:
    """Takes chunks that are cut anywhere, inside a character too. A frame that is not whole at the end never was."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        *lines, self._rest = LINE_END.split(self._rest + chunk)
        for line in lines:
            if line:
                self._take(line.decode("utf-8", "replace"))
            elif self._data:
                yield Frame(self._id, self._event or "message", "\n".join(self._data))
            if not line:
                self._event, self._data = "", []

    def _take(self, line: str) -> None:
        """A line that starts with a colon is a comment: a field without a name, like others nobody knows."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id":
            self._id = value


async def follow(
    connection: Connection, path: str, after: int, ended: Callable[[], Awaitable[bool]]
) -> AsyncIterator[SessionEvent]:
    """From the event after `after` to `done`. Raises what was wrong last when no attempt hears anything any more.

    `ended` says whether the session has: then a line on which nothing comes has nothing more to tell.
    """
    last, left, over = after, list(PAUSES), False
    while True:
        wrong: AppError = Unavailable(SAY("cut_off", url=connection.url), url=connection.url)
        before = last
        try:
            async with aclosing(_heard(connection, path, last)) as heard:
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


async def _heard(connection: Connection, path: str, last: int) -> AsyncGenerator[SessionEvent | None]:
    """The events of one connection; None: something else, which says at least that somebody is there."""
    stream, headers = EventStream(), {"Last-Event-ID": str(last)} if last else {}
    async with connection.stream(path, headers) as chunks:
        async for chunk in chunks:
            yield None
            for frame in stream.feed(chunk):
                if frame.event in KNOWN:
                    yield _event(frame, connection.url)


def _event(frame: Frame, url: str) -> SessionEvent:
    try:
        data: dict[str, Any] = json.loads(frame.data)
        at = data.pop("at")
        return SessionEvent.model_validate({"seq": frame.id, "type": frame.event, "at": at, "data": data})
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError):
        raise UpstreamFailed(SAY("not_a_desk", url=url, status=200), url=url) from None
