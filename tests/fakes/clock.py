"""A clock for tests that need an order of events."""

from datetime import datetime, timedelta


class TickingClock:
    """A second later every time somebody looks."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now
