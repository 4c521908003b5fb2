"""Filling the lake: what is missing is fetched from the first source that has it, and nothing is fetched twice."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.application.many import Keeps, Rows, Wanted
from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS, INDEX_BARS, Dataset, local_day
from moot.modules.market_data.domain.provider import (
    A_DAY,
    Batch,
    CompanyLookup,
    FactStore,
    IndustryIndexes,
    MarketDataProvider,
    Measures,
    Missing,
    NotOffered,
    Range,
    Refusal,
    Sight,
)
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Conflict, Unavailable
from moot.shared.domain.facts import Company, IndexBar
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

M = TypeVar("M", bound=BaseModel)

BY_REQUEST = ("akshare", "yfinance")
"""Sources that need no token, and are asked once a setting names them."""
FRESH_FOR = timedelta(hours=20)
"""What comes whole, and days that are not complete yet, are fetched again after this long."""
LATE_BAR = timedelta(hours=1)
"""A bar that is not there on the evening of its day is not asked for again before that."""
PUBLISHED_AT_HOUR = 18
"""Exchange time: before it, the day is not over for a source of daily figures."""
AT_ONCE = 8


@dataclass(frozen=True)
class SyncEvent:
    """What became of one dataset of one symbol or market; `not_offered`, and no failure, where no source has it."""

    dataset: Dataset[Any]
    subject: str
    outcome: Literal["fetched", "up_to_date", "not_offered", "failed"]
    source: str = ""
    rows: int = 0
    refused: tuple[Refusal, ...] = ()
    errors: tuple[tuple[str, Message | str], ...] = ()
    """By source, why it was passed over before another one answered, or before all had failed."""

    @property
    def lacking(self) -> bool:
        """All there is to tell is what no source offers, which is the same for every subject."""
        parts = self.outcome == "fetched" and bool(self.refused)
        return self.outcome == "not_offered" or (parts and len(self.missing) == len(self.refused))

    @property
    def missing(self) -> list[Message | str]:
        """By part of the dataset, why it is not offered."""
        return [part.said or part.why for part in self.refused if isinstance(part, Missing)]


SyncWatch = Callable[[SyncEvent], None]


@dataclass
class SyncService:
    """`order` names the sources of a dataset, first choice first; a source that is not there is passed over."""

    store: FactStore
    providers: Mapping[Market, Mapping[str, MarketDataProvider]]
    clock: Clock
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)

    async def sync(
        self, symbols: Sequence[Symbol], start: date, end: date, *, watch: SyncWatch | None = None
    ) -> list[SyncEvent]:
        """Bring every dataset of `symbols`, and what their markets share, up to date. One failure stops nothing."""
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(dataset: Dataset[Any], subject: str, market: Market) -> SyncEvent:
            async with turn:
                event = await self.bring(dataset, subject, market, start, end)
            if watch:
                watch(event)
            return event

        markets = sorted({symbol.market for symbol in symbols})
        shared = [(market.value, market, False) for market in markets]
        own = [(symbol.text, symbol.market, True) for symbol in symbols]
        tasks = [
            one(dataset, subject, market)
            for subject, market, by_symbol in shared + own
            for dataset in DATASETS.values()
            if dataset.by_symbol is by_symbol
        ]
        return list(await asyncio.gather(*tasks))

    async def bring(
        self, dataset: Dataset[Any], subject: str, market: Market, start: date, end: date
    ) -> SyncEvent:
        """Fetch what is missing of one dataset and keep it."""
        now = self.clock.now()
        wanted = self._find_missing(dataset, subject, (start, min(end, last_day(market, now))), now, market)
        events = [await self._fetch(dataset, subject, market, part, now) for part in wanted]
        return _merge(events) if events else SyncEvent(dataset, subject, "up_to_date")

    def _find_missing(
        self, dataset: Dataset[Any], subject: str, asked: Range, now: datetime, market: Market
    ) -> list[Range]:
        kept = self.store.coverage(dataset, subject)
        if asked[0] > asked[1]:
            return []
        if kept is None:
            return [asked]
        fresh = now - kept.stored_at < FRESH_FOR
        if dataset.whole:
            return [] if fresh else [asked]
        complete = _complete_until(dataset, market, now)
        if dataset is BARS and now - kept.stored_at < LATE_BAR:
            complete -= A_DAY
        asked = kept.widen(asked) if dataset is BARS else asked
        return [part for part in kept.find_missing(asked) if not fresh or part[0] <= complete]

    async def _fetch(
        self, dataset: Dataset[Any], subject: str, market: Market, part: Range, now: datetime
    ) -> SyncEvent:
        errors: list[tuple[str, Message | str]] = []
        outcome: Literal["not_offered", "failed"] = "not_offered"
        for provider in self.list_sources(dataset, market):
            try:
                batch = await provider.read(dataset, subject, *part)
            except Unavailable as e:  # NotOffered is one: another source may have it
                errors.append((provider.name, e.message))
                outcome = outcome if isinstance(e, NotOffered) else "failed"
                continue
            start, end = part[0], min(part[1], _known_until(dataset, market, batch, now))
            complete = not dataset.whole and not batch.partial and start <= end
            at = now - FRESH_FOR if batch.partial else now  # what came in part is asked for again
            covered = (start, end) if complete else None
            keep = partial(self.store.store, dataset, subject, list(batch), covered=covered, at=at)
            try:
                await asyncio.to_thread(keep)
            except Conflict as e:  # another source may go with what is kept
                errors.append((provider.name, e.message))
                outcome = "failed"
                continue
            return SyncEvent(
                dataset, subject, "fetched", provider.name, len(batch), batch.refused, tuple(errors)
            )
        if errors:
            return SyncEvent(dataset, subject, outcome, errors=tuple(errors))
        return SyncEvent(dataset, subject, "failed", errors=(("", SAY("sync.no_source")),))

    def list_sources(self, dataset: Dataset[Any], market: Market) -> list[MarketDataProvider]:
        """First choice first."""
        there = self.providers.get(market, {})
        return [there[name] for name in self.order.get(dataset.name, list(there)) if name in there]


class NotKept(Unavailable, code="NOT_KEPT", passing=False):
    """A replay reads what is kept and fetches nothing; of this, nothing is kept."""


@dataclass
class SyncedSource:
    """The lake, brought up to date before it is read: what nobody synced is fetched when it is first asked for.

    Old data are better than none: only a dataset of which nothing is kept makes a failed fetch an error. `moment`
    tells when a session that runs again first ran, and `offline` that it asks nobody outside.
    """

    lake: Keeps
    sync: SyncService
    market: Market
    moment: Callable[[datetime], datetime] = lambda now: now
    offline: Callable[[], bool] = lambda: False

    @property
    def name(self) -> str:
        return self.lake.name

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        """A market whose sources have no list is made of the companies that were looked up one by one."""
        try:
            await self._bring(dataset, subject, start, end)
        except Unavailable:
            if dataset is not COMPANIES or not self._lookups():
                raise
        return await self.lake.read(dataset, subject, start, self._reach(end))

    async def industry_bars(self, industry: str, start: date, end: date) -> Batch[IndexBar]:
        """On the days of the market's indexes on which its own is not kept, from a source that is asked for each."""
        place, sources = self.market, self.sync.list_sources(INDEX_BARS, self.market)
        asked = next((source for source in sources if isinstance(source, IndustryIndexes)), None)
        kept = self.sync.store.coverage(INDEX_BARS, place)
        if asked is None or kept is None or self.offline():
            return Batch()
        bars = await self.lake.read(INDEX_BARS, place, start, self._reach(end))
        days = {of: {bar.trade_date for bar in bars if bar.industry == of} for of in (None, industry)}
        lacking = days[None] - days[industry]
        if not lacking:
            return Batch()
        found = await asked.industry_bars(industry, min(lacking), max(lacking))
        if found:
            keep = partial(self.sync.store.store, INDEX_BARS, place, found, covered=None, at=kept.stored_at)
            await asyncio.to_thread(keep)
        return found

    async def measure(self, symbols: Collection[str], sight: Sight) -> Mapping[str, Measures]:
        """Of what is kept: to fetch a whole industry for one company is for `data sync`."""
        return await self.lake.measure(symbols, replace(sight, until=self._reach(sight.today)))

    async def read_many(self, dataset: Dataset[Any], symbols: Collection[str], wanted: Wanted) -> Rows:
        """Of what is kept, likewise."""
        return await self.lake.read_many(dataset, symbols, replace(wanted, end=self._reach(wanted.end)))

    async def company(self, symbol: str) -> Company | None:
        """Looked up where a source can, and kept."""
        for source in () if self.offline() else self._lookups():
            found = await source.company(symbol)
            if found is not None:
                keep, now = self.sync.store.store, self.sync.clock.now()
                place = self.market.value
                await asyncio.to_thread(keep, COMPANIES, place, [found], covered=None, at=now)
                return found
        return None

    def _reach(self, end: date) -> date:
        """A session that runs again sees no day whose figures were not out when it first ran."""
        now = self.sync.clock.now()
        then = self.moment(now)
        return end if then == now else min(end, last_day(self.market, then))

    def _lookups(self) -> list[CompanyLookup]:
        there = self.sync.providers.get(self.market, {}).values()
        return [source for source in there if isinstance(source, CompanyLookup)]

    async def _bring(self, dataset: Dataset[Any], subject: str, start: date, end: date) -> None:
        if not self.sync.providers.get(self.market):
            if self.sync.store.coverage(dataset, subject) is None:
                told = {"dataset": dataset.label, "subject": _name(subject), "why": SAY("sync.no_source")}
                raise NotOffered(SAY("sync.nothing", **told))
            return
        if self.offline():
            if self.sync.store.coverage(dataset, subject) is None:
                raise NotKept(SAY("offline.nothing_kept", dataset=dataset.label, subject=_name(subject)))
            return
        event = await self.sync.bring(dataset, subject, self.market, start, end)
        kind = {"failed": Unavailable, "not_offered": NotOffered}.get(event.outcome)
        if kind is not None and self.sync.store.coverage(dataset, subject) is None:
            why = [SAY("sync.by_source", source=source, why=why) for source, why in event.errors]
            raise kind(SAY("sync.nothing", dataset=dataset.label, subject=_name(subject), why=why))


def _name(subject: str) -> str | Message:
    """A share by its code, a market by its name."""
    return SAY(f"market.{subject}") if subject in set(Market) else subject


def _complete_until(dataset: Dataset[Any], market: Market, now: datetime) -> date:
    """The last day about which nothing more is to come."""
    return last_day(market, now) - dataset.late_by


def _known_until(dataset: Dataset[Any], market: Market, batch: Batch[Any], now: datetime) -> date:
    """A bar that is not there on the evening of its day may be late: the day is asked for again before it is one
    on which the share was suspended."""
    until = _complete_until(dataset, market, now)
    tonight = dataset is BARS and until.weekday() < 5 and until == local_day(now, market)
    return until - A_DAY if tonight and until not in {b.trade_date for b in batch} else until


def last_day(market: Market, now: datetime) -> date:
    """The last day whose daily figures are out."""
    local = now.astimezone(TIME_ZONES[market])
    return local.date() if local.hour >= PUBLISHED_AT_HOUR else local.date() - timedelta(days=1)


def _merge(events: list[SyncEvent]) -> SyncEvent:
    """One event for a dataset that was fetched in parts; it failed, or was not offered, if a part was."""
    failed = next((event for event in events if event.outcome in ("failed", "not_offered")), None)
    return replace(
        failed or events[-1],
        rows=sum(event.rows for event in events),
        refused=tuple(refusal for event in events for refusal in event.refused),
        errors=tuple(error for event in events for error in event.errors),
    )
