"""The seam between Moot and a source of market data: the demo market, the lake, and every provider outside."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Generic, Protocol, TypeVar, runtime_checkable

from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.shared.domain.errors import Unavailable

T = TypeVar("T")


@dataclass(frozen=True)
class Refusal:
    """A row that did not become a fact: which one, and why."""

    row: str
    why: str


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
    """Returns everything it has for the asked range, both ends included; point in time is the caller's business.

    A symbol the source does not know gives an empty batch. A source that cannot answer raises `Unavailable`, one
    that never could `NotOffered`. `news` is what concerns the symbol, its industry or the market, by the day it
    became public; `macro` goes by reference period.
    """

    @property
    def name(self) -> str: ...

    async def companies(self) -> Batch[Company]: ...

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]: ...

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]: ...

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]: ...

    async def dividends(self, symbol: str) -> Batch[Dividend]: ...

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]: ...

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]: ...
