"""How much a desk takes on: so many sessions at once, so many that wait, and no more."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from moot.modules.coordinator.domain.exceptions import DeskBusy, DeskClosing

USUAL_SECONDS = 10.0
"""What a session is taken to last while none has ended yet."""
WEIGHT = 0.2
LONGEST_WAIT = 300


STARTING = 16
"""So many begin at a time. A session begins with a burst of work and then waits for its experts: when hundreds come
at once, the first are waiting before the last begin, instead of all of them working, and then all waiting."""


class Turn:
    """A session's turn. Whoever has it says when the session is `under_way`, so that others can begin."""

    def __init__(self, begin: asyncio.Semaphore) -> None:
        self._begin: asyncio.Semaphore | None = begin

    def under_way(self) -> None:
        if self._begin is not None:
            self._begin.release()
            self._begin = None


class Admission:
    """First come, first served. What was accepted keeps its pace, because what would slow it down is refused."""

    def __init__(self, at_once: int = 256, waiting: int = 256) -> None:
        self._slots, self._begin = asyncio.Semaphore(at_once), asyncio.Semaphore(STARTING)
        self._at_once, self._most = at_once, at_once + waiting
        self._inside = 0
        self._seconds = USUAL_SECONDS
        self.closed = False

    @property
    def waiting(self) -> int:
        return max(0, self._inside - self._at_once)

    def require_room(self) -> None:
        """Raises `DeskBusy` when there is none, `DeskClosing` when there will be none."""
        if self.closed:
            raise DeskClosing
        if self._inside >= self._most:
            raise DeskBusy(self._retry_after())

    @contextmanager
    def place(self, *, accepted: bool = False) -> Iterator[None]:
        """A place in the line, for the length of the block. What was `accepted` before is never refused one."""
        if not accepted:
            self.require_room()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    @asynccontextmanager
    async def admitted(self, *, accepted: bool = False) -> AsyncIterator[Turn]:
        """Wait for a turn and keep it for the length of the block. Nobody gets one when the desk has closed."""
        with self.place(accepted=accepted):
            async with self._slots:
                started = time.monotonic()
                await self._begin.acquire()
                turn = Turn(self._begin)
                try:
                    if self.closed:
                        raise DeskClosing
                    yield turn
                finally:
                    turn.under_way()
                    self._seconds += WEIGHT * (time.monotonic() - started - self._seconds)

    def _retry_after(self) -> int:
        """When those that wait now are likely to have had their turn."""
        turns = 1 + self.waiting / self._at_once
        return max(1, min(LONGEST_WAIT, math.ceil(self._seconds * turns)))
