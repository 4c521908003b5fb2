"""The seam between Moot and a source of market data: the demo market, the lake, and every provider outside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.datasets import Dataset
from moot.modules.market_data.domain.facts import Company
from moot.shared.domain.errors import Unavailable

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


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
        name = ", ".join(f"{part}={row.get(part)}" for part in key)
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
