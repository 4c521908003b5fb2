"""Hearing all of a session: server-sent events as a desk writes them, taken up again where the line broke."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import get_args

from moot.modules.coordinator.application.session_history import SessionEvent
from moot.remote.connection import Connection
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
            async with aclosing(_hear(connection, path, last)) as heard:
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


async def _hear(connection: Connection, path: str, last: int) -> AsyncGenerator[SessionEvent | None]:
    """The events of one connection; None: something else, which says at least that somebody is there."""
    rest, headers = b"", {"Last-Event-ID": str(last)} if last else {}
    async with connection.stream(path, headers) as chunks:
        async for chunk in chunks:
            yield None
            *frames, rest = (rest + chunk).split(b"\n\n")
            for frame in frames:
                yield _read(frame, connection.url)


def _read(frame: bytes, url: str) -> SessionEvent | None:
    """None: a sign of life, or an event of a kind that is not known here."""
    lines = (line.partition(": ") for line in frame.decode("utf-8", "replace").split("\n"))
    said = {field: value for field, _, value in lines}
    if said.get("event") not in KNOWN:
        return None
    try:
        data = json.loads(said["data"])
        at = data.pop("at")
        return SessionEvent.model_validate({"seq": said["id"], "type": said["event"], "at": at, "data": data})
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UpstreamFailed(SAY("not_a_desk", url=url, status=200), url=url) from None
