"""Where facts are kept, as those who fill it see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol

from pydantic import BaseModel

from moot.modules.market_data.domain.datasets import Dataset

Range = tuple[date, date]
"""Two days, both included."""
A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Coverage:
    """What is kept of a dataset for a symbol (or a market), and for which days it is known to be complete."""

    dataset: str
    subject: str
    ranges: tuple[Range, ...]
    rows: int
    sources: tuple[str, ...]
    stored_at: datetime
    newest: datetime | None = None
    """The last `event_time`; companies have none."""
    damaged: bool = False
    """The file is there and cannot be read: nothing of it is known but its name."""

    def missing(self, wanted: Range) -> list[Range]:
        """The parts of `wanted` that are not covered."""
        gaps, (start, end) = [], wanted
        for first, last in self.ranges:
            if first > end:
                break
            if last < start:
                continue
            if first > start:
                gaps.append((start, first - A_DAY))
            start = last + A_DAY
        return [*gaps, (start, end)] if start <= end else gaps


class FactStore(Protocol):
    def coverage(self, dataset: Dataset[Any], subject: str) -> Coverage | None: ...

    def inventory(self) -> Sequence[Coverage]: ...

    def store(
        self,
        dataset: Dataset[Any],
        subject: str,
        facts: Sequence[BaseModel],
        *,
        covered: Range | None,
        at: datetime,
    ) -> None:
        """Merge `facts` into what is kept; all of it or, when the process dies, none of it."""
