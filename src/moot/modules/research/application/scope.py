"""What a screen may look at: the market as it sees it, the shares in question, and the experts who look."""

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

import polars as pl

from moot.modules.research.application.marking import Service
from moot.modules.research.domain.facts import Case, F
from moot.shared.domain.errors import AppError
from moot.shared.domain.facts import Company
from moot.shared.domain.messages import DEFAULT_LOCALE
from moot.shared.domain.peers import CrossSection
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.universe import Standing

T = TypeVar("T")


class ManyBars(Protocol):
    """`one_by_one` names the sources that could not be read at once."""

    @property
    def traded(self) -> pl.DataFrame:
        """Adjusted bars of the days a share was traded on, in the order of symbols and days."""

    @property
    def standings(self) -> Mapping[str, Standing]: ...

    @property
    def damaged(self) -> tuple[str, ...]: ...

    @property
    def one_by_one(self) -> tuple[str, ...]: ...


class ManyFacts(Protocol):
    """The market as a screen sees it: nothing that became known after `as_of`, each dataset in one read. What is too
    old to judge by is left out.
    """

    async def list_companies(
        self, symbols: Sequence[Symbol], *, as_of: datetime
    ) -> tuple[Mapping[str, Company], Mapping[str, AppError]]:
        """Those listed then, and why the others are not."""

    async def read_bars(self, symbols: Sequence[Symbol], days: int, *, as_of: datetime) -> ManyBars:
        """Of the last so many days."""

    async def read_valuations(
        self, symbols: Sequence[Symbol], days: int, *, as_of: datetime
    ) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """By symbol and column, of the last so many days, oldest first."""

    async def read_filed(
        self, kind: type[F], symbols: Sequence[Symbol], *, as_of: datetime
    ) -> Mapping[str, Sequence[F]]:
        """By symbol what it filed, the newest period first, in the version known then."""

    async def find_cross_sections(
        self, companies: Collection[Company], *, as_of: datetime
    ) -> Mapping[str, CrossSection]:
        """Each company among those of its industry that were listed then; none where that cannot be told."""


Table = Mapping[str, Sequence[Any]]
"""Of one share: by column, day by day."""


@dataclass
class Scope:
    """What screeners may look at: the shares that can be ranked, at a moment. What several ask for is read once."""

    facts: ManyFacts
    companies: Mapping[str, Company]
    traded: pl.DataFrame
    as_of: datetime
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False)
    _valued: tuple[int, Mapping[str, Table]] = field(default=(0, {}), init=False)

    @property
    def shares(self) -> list[Symbol]:
        return [Symbol.parse(symbol) for symbol in self.companies]

    def open_case(self, share: Symbol) -> Case:
        """In the desk's language: nobody reads its texts."""
        today = share.local_date(self.as_of)
        return Case(share, self.companies[share.text], self.as_of, today, DEFAULT_LOCALE)

    async def read_once(self, what: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        if what not in self._known:
            self._known[what] = await read()
        known: T = self._known[what]
        return known

    async def find_cross_sections(self) -> Mapping[str, CrossSection]:
        find = self.facts.find_cross_sections
        return await self.read_once(find, lambda: find(self.companies.values(), as_of=self.as_of))

    async def read_valuations(self, days: int) -> Mapping[str, Table]:
        """Of so many days, or of more if somebody needed them."""
        if self._valued[0] < days:
            found = self.facts.read_valuations(self.shares, days, as_of=self.as_of)
            self._valued = days, await found
        return self._valued[1]

    async def read_filed(self, kind: type[F]) -> Mapping[str, Sequence[F]]:
        read = self.facts.read_filed
        return await self.read_once(kind, lambda: read(kind, self.shares, as_of=self.as_of))


class Screener(NamedTuple):
    """An expert of many shares: `measure` tells what its rules read, by symbol; a share that the data say too little
    of is left out.
    """

    service: Service
    measure: Callable[[Scope], Awaitable[Mapping[str, Any]]]
