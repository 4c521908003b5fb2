"""Where times come from. Always UTC and aware; a local date is a question to ask of an exchange."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, in UTC."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)
