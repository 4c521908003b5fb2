"""Time for work, as against time in which somebody else is waited for whose own limits hold: a model."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType


class Stopwatch:
    """How long anybody was away, of those who work side by side."""

    def __init__(self) -> None:
        self._away, self._since, self._total = 0, 0.0, 0.0

    @property
    def seconds(self) -> float:
        return self._total + (loop_time() - self._since if self._away else 0.0)

    def leave(self) -> None:
        if not self._away:
            self._since = loop_time()
        self._away += 1

    def come_back(self) -> None:
        if self._away == 1:
            self._total = self.seconds
        self._away -= 1


class WorkingTime:
    """So many seconds for a piece of work, in one go or several: each block takes of the time, and ends in a
    `TimeoutError` when there is none left. It stands still while anybody is `off_the_clock`, unless `strict`."""

    def __init__(self, seconds: float, *, strict: bool = False) -> None:
        self.left, self.strict, self._away = seconds, strict, 0
        self._limit = asyncio.timeout(seconds)

    @property
    def expired(self) -> bool:
        return self._limit.expired()

    @property
    def end(self) -> float | None:
        """By the clock of the event loop."""
        return self._limit.when()

    async def __aenter__(self) -> None:
        self._running = CLOCKS.set((*CLOCKS.get(), self))
        self._limit = asyncio.timeout(self.left)
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        CLOCKS.reset(self._running)
        await self._limit.__aexit__(kind, error, trace)

    def leave(self) -> None:
        if not self._away:
            self._stop()
            self._reschedule(None)
        self._away += 1

    def come_back(self) -> None:
        self._away -= 1
        if not self._away:
            self._reschedule(loop_time() + self.left)

    def _stop(self) -> None:
        when = self._limit.when()
        self.left = self.left if when is None else max(0.0, when - loop_time())

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # it has just run out, or what it was for is over
            self._limit.reschedule(when)


CLOCKS: ContextVar[tuple[WorkingTime, ...]] = ContextVar("the clocks that run here", default=())


def strict_seconds_left() -> float:
    """For whatever is done here, waiting included; infinite, where nobody set such a limit."""
    ends = (clock.end for clock in CLOCKS.get() if clock.strict)
    return min((end - loop_time() for end in ends if end is not None), default=math.inf)


@contextmanager
def off_the_clock(stopwatch: Stopwatch) -> Iterator[None]:
    """Somebody else is waited for, within limits of their own."""
    clocks: tuple[Stopwatch | WorkingTime, ...] = (
        stopwatch,
        *(clock for clock in CLOCKS.get() if not clock.strict),
    )
    for clock in clocks:
        clock.leave()
    try:
        yield
    finally:
        for clock in clocks:
            clock.come_back()


def loop_time() -> float:
    return asyncio.get_running_loop().time()
