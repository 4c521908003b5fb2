"""Clocks for tests that need an order of events, or some time to pass."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta


class FixedClock:
    """Stands still."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


class TickingClock:
    """A second later every time somebody looks."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class HandClock:
    """Stands still until somebody moves it."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


PATIENCE = 120.0
"""Seconds after which what has not happened is taken not to happen. No verdict depends on how many they are."""


_now, _ahead = time.monotonic, 0.0
# From the start, not from the first leap on: whoever keeps hold of the function must not count by another one.
time.monotonic = lambda: _now() + _ahead


def leap(seconds: float) -> None:
    """It is so many seconds later at once, for event loops and whoever else counts by `time.monotonic`.

    Never taken back: a clock that ran backwards would keep others waiting.
    """
    global _ahead  # noqa: PLW0603 - as the clock itself is
    _ahead += seconds


async def until(happened: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for what nobody announces."""
    async with asyncio.timeout(seconds):
        while not happened():
            await asyncio.sleep(0.01)


async def settle() -> None:
    """Let happen what needs no more than its turn: what has arrived is read, what was closed is noticed."""
    for _ in range(100):
        await asyncio.sleep(0)
