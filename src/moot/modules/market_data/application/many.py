"""The seam of many shares at once: one read of each dataset, columns and not facts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import MarketDataProvider, Measures, Sight

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Wanted:
    """Of which days, as known when, and which columns beside the symbol and the day."""

    start: date
    end: date
    as_of: datetime
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """`frame` is in the order of symbols and days; of the `damaged` nothing can be read. `one_by_one`: the source had
    to be asked share by share.
    """

    frame: "pl.DataFrame"
    damaged: tuple[str, ...] = ()
    one_by_one: bool = False


@runtime_checkable
class ReadsMany(Protocol):
    """A source that reads many shares in one go, from what it keeps: it fetches nothing for them."""

    async def measure(self, symbols: Collection[str], sight: Sight) -> Mapping[str, Measures]:
        """By symbol; one of whom nothing is kept is left out."""

    async def read_many(self, dataset: Dataset[Any], symbols: Collection[str], wanted: Wanted) -> Rows:
        """What was known then; a symbol of which nothing is kept has no row."""


class Keeps(MarketDataProvider, ReadsMany, Protocol):
    """The lake, one share or many at a time."""
