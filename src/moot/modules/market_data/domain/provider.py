"""The seams of market data: a source (the demo market, the lake, a provider outside), and where facts are kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.facts import DATASETS, Dataset
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import Company
from moot.shared.domain.messages import Message

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
    damaged: bool = False
    """The file is there and cannot be read: nothing of it is known but its name."""
    newest: date | None = None
    """The day of the last row, for what has days."""

    @property
    def label(self) -> Message:
        return DATASETS[self.dataset].label

    @property
    def span(self) -> tuple[date | None, date | None]:
        """The first and the last day covered."""
        return (self.ranges[0][0], self.ranges[-1][1]) if self.ranges else (None, None)

    def find_missing(self, wanted: Range) -> list[Range]:
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


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Refusal:
    """A row that did not become a fact: which one, and why."""

    row: str
    why: str


@dataclass(frozen=True, repr=False)
class Missing(Refusal):
    """A part of a dataset that its source does not offer, by name, and what opens it: the same for every subject."""

    said: Message | None = field(default=None, compare=False)


class Batch(list[T], Generic[T]):
    """The facts a source gave, oldest first, and the rows of it that were refused on the way."""

    def __init__(self, facts: Iterable[T] = (), refused: Iterable[Refusal] = ()) -> None:
        super().__init__(facts)
        self.refused = tuple(refused)


class NotOffered(Unavailable):
    """This source does not have this kind of data, or not for this market; another one may."""

    code = "NOT_OFFERED"
    passing = False


@runtime_checkable
class CompanyLookup(Protocol):
    """A source that has no list of companies, or not the whole of it, but knows one by its symbol."""

    async def company(self, symbol: str) -> Company | None: ...


@runtime_checkable
class IndexMembers(Protocol):
    async def constituents(self, index: str, day: date) -> list[str]:
        """The symbols in an index on the last day up to `day` for which they are known."""


class MarketDataProvider(Protocol):
    """Returns all it has of `subject`, a symbol or a market; point in time is the caller's business.

    Both days are included. A subject the source does not know gives an empty batch. A source that cannot answer
    raises `Unavailable`, one that never could `NotOffered`. News is what concerns the symbol, its industry or the
    market, by the day it became public; macro figures go by reference period.
    """

    @property
    def name(self) -> str: ...

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]: ...


def screen(
    dataset: Dataset[M], rows: Iterable[Mapping[str, Any]], key: tuple[str, ...] | None = None
) -> Batch[M]:
    """The edge: rows from outside become facts here, by day and key, or are refused by name.

    One bad row costs no good one; a row that breaks the model or repeats a key is bad.
    """
    key = key or dataset.key
    facts: dict[tuple[Any, ...], M] = {}
    refused: list[Refusal] = []
    for row in rows:
        name = ", ".join(f"{part}={row.get(part) or ''}" for part in key)
        try:
            fact = dataset.model.model_validate(row)
        except ValidationError as e:
            refused.append(Refusal(name, "; ".join(_why(error) for error in e.errors())))
            continue
        identity = tuple(getattr(fact, part) for part in key)
        if identity in facts:
            refused.append(Refusal(name, "a row with this key came before"))
            continue
        facts[identity] = fact
    ordered = sorted(
        facts.values(), key=lambda fact: [str(getattr(fact, part)) for part in (dataset.day, *key)]
    )
    return Batch(ordered, refused)


def _why(error: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in error["loc"])
    return f"{field}: {error['msg']}" if field else str(error["msg"])
