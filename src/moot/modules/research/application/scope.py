"""What a screen may look at: the market as it sees it, the shares in question, and the experts who look."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import polars as pl

from moot.modules.research.application.marking import Service
from moot.shared.domain.errors import AppError
from moot.shared.domain.facts import Company
from moot.shared.domain.peers import CrossSection
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.universe import Standing


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
    """The market as a screen sees it: nothing that became known after `as_of`, each dataset in one read."""

    async def list_companies(
        self, symbols: Sequence[Symbol], *, as_of: datetime
    ) -> tuple[Mapping[str, Company], Mapping[str, AppError]]:
        """Those listed then, and why the others are not."""

    async def read_bars(self, symbols: Sequence[Symbol], days: int, *, as_of: datetime) -> ManyBars:
        """Of the last so many days."""

    async def find_cross_sections(
        self, companies: Collection[Company], *, as_of: datetime
    ) -> Mapping[str, CrossSection]:
        """Each company among those of its industry that were listed then; none where that cannot be told."""


@dataclass
class Scope:
    """What screeners may look at: the shares that can be ranked, at a moment."""

    facts: ManyFacts
    companies: Mapping[str, Company]
    traded: pl.DataFrame
    as_of: datetime
    _sections: Mapping[str, CrossSection] | None = field(default=None, init=False)

    async def find_cross_sections(self) -> Mapping[str, CrossSection]:
        """Found once, for whoever asks."""
        if self._sections is None:
            found = self.facts.find_cross_sections(self.companies.values(), as_of=self.as_of)
            self._sections = await found
        return self._sections


class Screener(Protocol):
    """An expert of many shares, made for one screen."""

    @property
    def service(self) -> Service: ...

    async def measure(self, scope: Scope) -> Mapping[str, Any]:
        """What the expert's rules read, by symbol; a share that the data say too little of is left out."""
