"""Shares that somebody keeps an eye on, and what the desk ruled on them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field

from moot.shared.domain.claims import Action
from moot.shared.domain.validation import Strict

DEFAULT_LIST = "default"
MOST_WATCHED = 500
"""In a workspace, on all of its lists together."""


class Ruling(BaseModel, frozen=True):
    """A verdict, as its session left it; `action` None: the judge abstained."""

    session_id: UUID
    action: Action | None
    horizon: int
    as_of: AwareDatetime
    completed_at: AwareDatetime

    @property
    def recency(self) -> tuple[datetime, datetime]:
        """The later the moment it speaks of, the newer it is; of one moment, the one that was reached last."""
        return self.as_of, self.completed_at


def newest(rulings: Iterable[Ruling]) -> Ruling | None:
    return max(rulings, key=lambda ruling: ruling.recency, default=None)


def find_before(ruling: Ruling, among: Iterable[Ruling]) -> Ruling | None:
    """What held until then: the newest ruling over the same horizon of those that were reached earlier."""
    return newest(r for r in among if r.horizon == ruling.horizon and r.completed_at < ruling.completed_at)


class Listed(BaseModel, frozen=True):
    """A symbol on a list."""

    list_name: str
    symbol: str
    added_at: AwareDatetime


class Watched(Listed):
    """With its company's names, empty where nobody lists it any more, and what was ruled last and before that."""

    name: str = ""
    name_en: str = ""
    last: Ruling | None = None
    before: Ruling | None = None


class Watchlist(BaseModel, frozen=True):
    items: list[Watched]


class WatchBody(Strict):
    """Symbols by a code in any spelling, or by a name."""

    symbols: list[str] = Field(min_length=1, max_length=MOST_WATCHED, examples=[["900001.DEMO"]])
    list_name: str = Field(
        default=DEFAULT_LIST, min_length=1, max_length=64, pattern=r"^\S(.*\S)?$", description="which list"
    )


class WatchStore(Protocol):
    async def list(self, workspace: str, list_name: str | None) -> Sequence[Listed]:
        """By list and symbol."""

    async def add(self, workspace: str, listed: Sequence[Listed], at_most: int) -> bool:
        """All of them, what is there stays as it is; or none, and False, where the workspace would have more than
        `at_most`."""

    async def remove(self, workspace: str, list_name: str, symbols: Sequence[str]) -> None: ...


class Rulings(Protocol):
    """The record, as jobs see it."""

    async def on(self, symbol: str, workspace: str) -> Sequence[Ruling]:
        """The latest on a symbol; what-ifs are none."""
