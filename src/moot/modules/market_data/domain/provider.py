"""The seams of market data: a source (the demo market, the lake, a provider outside), and where facts are kept."""

import calendar
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.facts import DATASETS, Dataset
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import Company, IndexBar
from moot.shared.domain.messages import LOG_LOCALE, Locale, Message, shorten
from moot.shared.domain.symbol import Market, Symbol

Range = tuple[date, date]
"""Two days, both included."""
A_DAY = timedelta(days=1)
NO_DAY = "not a day: "
"""Before what stands where a day should, so that nobody takes it for one."""


def home_of(subject: str) -> Market:
    """The market that a subject is of, or is itself."""
    return Market(subject) if subject in list(Market) else Symbol.parse(subject).market


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

    def widen(self, wanted: Range) -> Range:
        """`wanted`, and the days between it and what is covered before and after: with them, a series has no gap."""
        before = [last for _, last in self.ranges if last < wanted[0]]
        after = [first for first, _ in self.ranges if first > wanted[1]]
        return (max(before) + A_DAY if before else wanted[0], min(after) - A_DAY if after else wanted[1])


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, repr=False)
class Refusal:
    """A row that did not become a fact: which one, and why, as logs have it; `said` is the sentence for people."""

    row: str
    why: str
    said: Message | None = field(default=None, compare=False)

    def in_locale(self, locale: Locale) -> str:
        return self.said.in_locale(locale) if self.said else f"{self.row}: {self.why}"

    def __repr__(self) -> str:
        return self.in_locale(LOG_LOCALE)


class Missing(Refusal):
    """A part of a dataset that its source does not offer, by name, and what opens it: the same for every subject."""


class Batch(list[T], Generic[T]):
    """The facts a source gave, oldest first, and the rows of it that were refused on the way.

    `covered` are the days, up to the end asked for, that are known to be complete: one without a fact has none.
    `partial`: more is there that did not come this time, so that the next one asks again.
    """

    def __init__(
        self,
        facts: Iterable[T] = (),
        refused: Iterable[Refusal] = (),
        covered: Iterable[Range] = (),
        *,
        partial: bool = False,
    ) -> None:
        super().__init__(facts)
        self.refused, self.covered, self.partial = tuple(refused), tuple(covered), partial


class NotOffered(Unavailable, code="NOT_OFFERED", passing=False):
    """This source does not have this kind of data, or not for this market; another one may."""


@runtime_checkable
class CompanyLookup(Protocol):
    """A source that has no list of companies, or not the whole of it, but knows one by its symbol."""

    async def company(self, symbol: str) -> Company | None: ...


@runtime_checkable
class IndexMembers(Protocol):
    async def constituents(self, index: str, day: date) -> list[str]:
        """The symbols in an index on the last day up to `day` for which they are known."""


@runtime_checkable
class IndustryIndexes(Protocol):
    """A source that has to be asked for the index of each industry by itself; one that keeps facts keeps these."""

    async def industry_bars(self, industry: str, start: date, end: date) -> Batch[IndexBar]:
        """Those that it did not tell with the rest; none for an industry that has no index there."""


Measures = Mapping[str, float | None]


@dataclass(frozen=True)
class Sight:
    """What is seen at a moment: facts public by then, of days up to `today`; reports of periods since `recent`.

    Of the days up to today none after `until` is looked at.
    """

    as_of: datetime
    today: date
    recent: date
    until: date = date.max

    def look_back(self, months: int) -> date:
        """The same day so many months ago, or the last one of a shorter month."""
        year, month = divmod(self.today.year * 12 + self.today.month - 1 - months, 12)
        return date(year, month + 1, min(self.today.day, calendar.monthrange(year, month + 1)[1]))


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


class FactStore(MarketDataProvider, Protocol):
    """A source that keeps what it is given."""

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
        """Merge `facts` into what is kept; all of it or, when the process dies, none of it.

        Raises `Conflict` for what contradicts what is kept.
        """


def screen(
    dataset: Dataset[M],
    rows: Iterable[Mapping[str, Any]],
    key: tuple[str, ...] | None = None,
    *,
    locate: Callable[[int], Message | None] = lambda _: None,
    merge: bool = False,
) -> Batch[M]:
    """The edge: rows from outside become facts here, by day and key, or are refused by name.

    One bad row costs no good one; a row that breaks the model or repeats a key is bad. `locate` says where a row
    stands, by its number; with `merge`, a row that repeats a key adds what it tells to the one before.
    """
    key = key or dataset.key
    facts: dict[tuple[Any, ...], M] = {}
    refused: list[Refusal] = []
    for number, row in enumerate(rows):
        try:
            fact = dataset.model.model_validate(row)
        except ValidationError as e:
            why = "; ".join(map(_why, e.errors()))
            said = [_say(error) for error in e.errors() if error["loc"] not in TIMES] or [SAY("refused.when")]
            refused.append(_refuse(row, key, why, said, locate(number)))
            continue
        identity = tuple(getattr(fact, part) for part in key)
        if identity not in facts:
            facts[identity] = fact
        elif merge:
            facts[identity] = fill(fact, facts[identity])
        else:
            why = "a row with this key came before"
            refused.append(_refuse(row, key, why, [SAY("refused.repeated")], locate(number)))
    ordered = sorted(
        facts.values(), key=lambda fact: [str(getattr(fact, part)) for part in (dataset.day, *key)]
    )
    return Batch(ordered, refused)


def fill(fact: M, before: M) -> M:
    """The fact, with what an earlier one about the same tells where it tells nothing itself."""
    holes = {name: old for name, old in before if getattr(fact, name) in EMPTY and old not in EMPTY}
    return fact.model_copy(update=holes) if holes else fact


EMPTY = (None, "", ())
NUMBERS = dict.fromkeys(("float", "int", "finite"), "number")
ALLOWED = NUMBERS | {
    "greater_than": "above",
    "greater_than_equal": "at_least",
    "date": "day",
    "literal": "word",
}
"""By the kind of pydantic's complaint, or how it begins: what would have been right."""
TIMES = (("event_time",), ("available_at",))
"""Worked out from the days of a row: where one is bad, they are missing too, and where none is told."""


def _refuse(row: Mapping[str, Any], key: Sequence[str], why: str, said: Any, where: Any) -> Refusal:
    name = ", ".join(f"{part}={row.get(part) or ''}" for part in key)
    who = " ".join(str(row[part]) for part in key if row.get(part) and part not in ("available_at", "url"))
    return Refusal(name, why, SAY("refused.row", who=[where, who] if where else who, why=said))


def _say(error: Mapping[str, Any]) -> Message:
    field, kind, ctx = ".".join(map(str, error["loc"])), str(error["type"]), error.get("ctx", {})
    if kind == "missing":
        return SAY("refused.missing", field=field)
    if not field:  # a rule of ours about several fields, by name
        return SAY(f"refused.rule.{kind}", **ctx)
    name = ALLOWED.get(kind) or ALLOWED.get(kind.partition("_")[0])
    allowed = SAY(f"refused.allowed.{name}", **ctx) if name else error["msg"]
    told = str(error["input"]).removeprefix(NO_DAY)
    return SAY("refused.value", field=field, value=shorten(told), allowed=allowed)


def _why(error: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in error["loc"])
    return f"{field}: {error['msg']}" if field else str(error["msg"])
