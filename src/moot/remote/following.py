"""Hearing all of a session: when the line breaks, it is taken up again where it broke."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, get_args

from pydantic import ValidationError

from moot.modules.coordinator.application.session_history import SessionEvent
from moot.remote.connection import Connection
from moot.remote.event_stream import EventStream, Frame
from moot.remote.texts import SAY
from moot.shared.domain.errors import AppError, TooManyRequests, Unavailable, UpstreamFailed

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds before each attempt to hear more: together, time for a desk to be started again."""

KNOWN = get_args(SessionEvent.model_fields["type"].annotation)


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
