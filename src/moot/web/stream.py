"""Parts of a page that are sent anew as they change, as server-sent events; `console.js` puts each in its place."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from fastapi.sse import ServerSentEvent

LOOK_AGAIN = 2.0
"""Seconds until a part is made anew without anything having been told: calls under way are no event."""
COME_BACK_MS = 1000


async def follow(
    told: AsyncIterator[object], write: Callable[[], Awaitable[str]], ended: Callable[[], Awaitable[bool]]
) -> AsyncIterator[ServerSentEvent]:
    """What `write` makes, whenever something was `told` and it is another text than before; then `done`.

    Whole from the first message on, so that whoever comes late, or back, has missed nothing. Without `done` the
    desk is closing, and the browser comes back by itself.
    """
    yield ServerSentEvent(retry=COME_BACK_MS)
    changed, sent = asyncio.Event(), ""

    async def listen() -> None:
        try:
            async for _ in told:
                changed.set()
        finally:
            changed.set()

    listening = asyncio.create_task(listen())
    try:
        while True:
            over = listening.done()
            changed.clear()
            if (part := await write()) != sent:
                yield ServerSentEvent(event="part", raw_data=part)
                sent = part
            if over:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await changed.wait()
        if await ended():
            yield ServerSentEvent(event="done", raw_data="")
    finally:
        listening.cancel()
