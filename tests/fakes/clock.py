"""Clocks for tests that need an order of events, or some time to pass."""

from datetime import datetime, timedelta


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
