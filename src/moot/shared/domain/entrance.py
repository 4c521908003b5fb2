"""Where the calls of this process stand in line for something that only so many may use."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar, get_args

import structlog

from moot.shared.domain.turns import NotYet, Priority, read_clock, share

logger = structlog.get_logger(__name__)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
MANY = 1_000_000
WORTH_TELLING = 1.0
"""Seconds."""


class Entrance:
    """So many are inside at once, and each comes in when its turn is there. A batch leaves some places free.

    Interactive calls and those of a batch have a line each. Only the first in a line asks for its turn, so it is
    the first to get it, and a limit that many wait for is not asked by all of them.
    """

    def __init__(self, name: str, at_once: int | None, sleep: Sleep = asyncio.sleep) -> None:
        self._name, self._sleep = name, sleep
        self._first = {priority: asyncio.Lock() for priority in get_args(Priority)}
        places = {p: asyncio.Semaphore(share(at_once or MANY, p)) for p in get_args(Priority)}
        self._places = {"interactive": [places["interactive"]], "batch": list(reversed(places.values()))}

    @asynccontextmanager
    async def enter(
        self,
        priority: Priority,
        take: Callable[[], Awaitable[T]],
        *,
        longest: float = math.inf,
        patience: float = math.inf,
    ) -> AsyncIterator[T]:
        """What `take` gave, once it raised no `NotYet`; that is raised here if it would take too long.

        `longest` is for all the waiting, `patience` for what `take` asks for at once; both in seconds.
        """
        end = read_clock() + longest
        async with AsyncExitStack() as inside:
            async with _held(self._first[priority], end):
                while True:
                    try:
                        taken = await self._try(priority, take, inside, end)
                        break
                    except NotYet as soon:
                        if soon.seconds > min(patience, end - read_clock()):
                            raise
                        await self._wait(soon.seconds, priority)
            yield taken

    async def _try(
        self, priority: Priority, take: Callable[[], Awaitable[T]], inside: AsyncExitStack, end: float
    ) -> T:
        """Whoever has to wait for a turn holds no place meanwhile."""
        async with AsyncExitStack() as place:
            for places in self._places[priority]:
                await place.enter_async_context(_held(places, end))
            taken = await take()
            inside.push_async_exit(place.pop_all())
            return taken

    async def _wait(self, seconds: float, priority: Priority) -> None:
        if seconds >= WORTH_TELLING:
            logger.info("waiting for a turn", limit=self._name, seconds=round(seconds, 1), priority=priority)
        await self._sleep(seconds)


@asynccontextmanager
async def _held(places: asyncio.Lock | asyncio.Semaphore, end: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(None if math.isinf(end) else end):
            await places.acquire()
    except TimeoutError:
        raise NotYet(0.0) from None
    try:
        yield
    finally:
        places.release()
