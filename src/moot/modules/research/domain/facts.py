"""The case an expert is given, and the port its facts come through.

What kind of business an industry is in, whose books read otherwise, whose profits swing, what it is exposed to: one
table for all experts (`sectors.toml`), never a line for one company.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from pydantic import AwareDatetime, BaseModel

from moot.shared.domain.datasets import DataUntil
from moot.shared.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Fact,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.shared.domain.messages import Catalogue, Locale, Message
from moot.shared.domain.peers import CrossSection
from moot.shared.domain.symbol import Symbol

COMMON = Path(__file__).parent / "texts"
SAY = Catalogue(COMMON)
"""What all experts say to people alike; what only one of them says stands in its own folder."""

F = TypeVar("F", bound=Fact)
Trade = Literal["bank", "insurer", "broker", "company"]
Factor = Literal["rates", "credit", "prices", "demand", "policy"]


class Sector(BaseModel, frozen=True, extra="forbid"):
    """`trade`: whose accounts it keeps. `cyclical`: one good year says little about the next. `manufacturer`: all of
    its industries make goods. `exposure`, from -1 to 1: what lower rates, easier credit, higher producer prices,
    stronger demand and a helping policy do to it.
    """

    name: str
    trade: Trade = "company"
    cyclical: bool = False
    manufacturer: bool = False
    exposure: Mapping[Factor, float] = {}
    industries: tuple[str, ...] = ()


UNKNOWN = Sector(
    name="other", exposure={"rates": 0.25, "credit": 0.25, "prices": 0.0, "demand": 0.5, "policy": 0.5}
)
"""As the market as a whole."""


@cache
def load_sectors() -> Mapping[str, Sector]:
    """By industry, as the sources of a market call it."""
    tables = tomllib.loads((Path(__file__).parent / "sectors.toml").read_text("utf-8"))
    sectors = [Sector(name=name, **table) for name, table in tables.items()]
    return {industry: sector for sector in sectors for industry in sector.industries}


def sector_of(industry: str) -> Sector:
    return load_sectors().get(industry, UNKNOWN)


def name_industry(company: Company, locale: Locale) -> str:
    """As the language calls it; of one that has no English name, the sector."""
    told, sector = company.industry_in(locale), sector_of(company.industry)
    known = locale == "zh-CN" or told.isascii() or sector is UNKNOWN
    return told if known else sector.name.replace("_", " ")


class Cited(BaseModel, frozen=True, allow_inf_nan=False):
    """Something read at an address."""

    available_at: AwareDatetime
    source: str
    url: str


@dataclass(frozen=True)
class Case:
    """Whom an expert was asked about, the moment asked for, the exchange's date then, and the reader's language."""

    symbol: Symbol
    company: Company
    as_of: datetime
    today: date
    locale: Locale

    @property
    def stock_name(self) -> str:
        return self.company.name_in(self.locale)

    @property
    def industry(self) -> str:
        return name_industry(self.company, self.locale)

    @property
    def sector(self) -> Sector:
        return sector_of(self.company.industry)


class MarketFacts(Protocol):
    """The market as research sees it: nothing that became known after `as_of`.

    A symbol nobody lists raises `InvalidInput`; a range without facts is an empty answer. What is too old to judge
    by, and what no source has, raises `Unavailable`. Made for one run.
    """

    newest: DataUntil
    dropped: list[Message]
    """What was kept back as too old, while there was enough beside it."""

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company: ...

    async def daily_bars(
        self, symbol: Symbol, start: date, end: date, *, as_of: datetime
    ) -> Sequence[DailyBar]:
        """Oldest first, adjusted to the last of them."""

    async def daily_valuations(
        self, symbol: Symbol, start: date, end: date, *, as_of: datetime
    ) -> Sequence[DailyValuation]:
        """Oldest first."""

    async def financial_reports(
        self, symbol: Symbol, periods: int, *, as_of: datetime
    ) -> Sequence[FinancialReport]:
        """Newest period first."""

    async def macro(self, symbol: Symbol, days: int, *, as_of: datetime) -> Sequence[MacroObservation]:
        """Figures of the symbol's home market and of all its industries."""

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> Sequence[NewsItem]:
        """About the company, its industry or the market."""

    async def read(
        self,
        kind: type[F],
        symbol: Symbol,
        *,
        as_of: datetime,
        start: date = date.min,
        end: date = date.max,
    ) -> Sequence[F]:
        """Any other kind of fact, oldest first: statements, earnings notices, dividends, bars of indices, pledges,
        unlocks, what holders traded. Raises `Unavailable` where the source has none of the kind.
        """

    async def peers(self, symbol: Symbol, *, as_of: datetime) -> CrossSection:
        """The company among those of its industry that were listed then."""


def difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def positive(value: float | None) -> float | None:
    """A base that can be divided by without turning the meaning of the sign around."""
    return value if value is not None and value > 0 else None
