"""Filling the lake: what is missing is fetched from the first source that has it, and nothing is fetched twice."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal

from moot.modules.market_data.domain.datasets import SHAPES, Dataset
from moot.modules.market_data.domain.provider import Batch, MarketDataProvider, Refusal
from moot.modules.market_data.domain.store import FactStore, Range
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

Fetch = Callable[[MarketDataProvider, str, date, date], Awaitable[Batch[Any]]]
FETCH: dict[Dataset, Fetch] = {
    Dataset.COMPANIES: lambda p, _subject, _start, _end: p.companies(),
    Dataset.BARS: lambda p, symbol, start, end: p.daily_bars(symbol, start, end),
    Dataset.VALUATIONS: lambda p, symbol, start, end: p.daily_valuations(symbol, start, end),
    Dataset.REPORTS: lambda p, symbol, _start, _end: p.financial_reports(symbol),
    Dataset.DIVIDENDS: lambda p, symbol, _start, _end: p.dividends(symbol),
    Dataset.MACRO: lambda p, _subject, start, end: p.macro(start, end),
    Dataset.NEWS: lambda p, symbol, start, end: p.news(symbol, start, end),
}
RANGED = {Dataset.BARS, Dataset.VALUATIONS, Dataset.MACRO, Dataset.NEWS}
LATE_BY = {Dataset.MACRO: timedelta(days=75), Dataset.NEWS: timedelta(days=2)}
"""How long after a day something about it may still come out: until then, it is not complete."""
FRESH_FOR = timedelta(hours=20)
"""What comes whole, and days that are not complete yet, are fetched again after this long."""
PUBLISHED_AT_HOUR = 18
"""Exchange time: before it, the day is not over for a source of daily figures."""
AT_ONCE = 8


@dataclass(frozen=True)
class SyncEvent:
    """What became of one dataset of one symbol or market."""

    dataset: Dataset
    subject: str
    outcome: Literal["fetched", "up_to_date", "failed"]
    source: str = ""
    rows: int = 0
    refused: tuple[Refusal, ...] = ()
    errors: tuple[tuple[str, Message | str], ...] = ()
    """By source, why it was passed over before another one answered, or before all had failed."""

    @property
    def name(self) -> Message:
        """The dataset, as people call it."""
        return SAY(f"dataset.{self.dataset}")


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

        async def one(dataset: Dataset, subject: str, market: Market) -> SyncEvent:
            async with turn:
                event = await self.bring(dataset, subject, market, start, end)
            if watch:
                watch(event)
            return event

        shared = [d for d in Dataset if not SHAPES[d].by_symbol]
        own = [d for d in Dataset if SHAPES[d].by_symbol]
        markets = sorted({symbol.market for symbol in symbols})
        tasks = [one(d, market.value, market) for market in markets for d in shared]
        tasks += [one(d, symbol.text, symbol.market) for symbol in symbols for d in own]
        return list(await asyncio.gather(*tasks))

    async def bring(
        self, dataset: Dataset, subject: str, market: Market, start: date, end: date
    ) -> SyncEvent:
        """Fetch what is missing of one dataset and keep it."""
        now = self.clock.now()
        wanted = self._wanted(dataset, subject, (start, min(end, last_day(market, now))), now, market)
        if not wanted:
            return SyncEvent(dataset, subject, "up_to_date")
        events = [await self._fetch(dataset, subject, market, part, now) for part in wanted]
        return _merged(events)

    def _wanted(
        self, dataset: Dataset, subject: str, asked: Range, now: datetime, market: Market
    ) -> list[Range]:
        kept = self.store.coverage(dataset, subject)
        if asked[0] > asked[1]:
            return []
        if kept is None:
            return [asked]
        fresh = now - kept.stored_at < FRESH_FOR
        if dataset not in RANGED:
            return [] if fresh else [asked]
        complete = _complete_until(dataset, market, now)
        return [part for part in kept.missing(asked) if not fresh or part[0] <= complete]

    async def _fetch(
        self, dataset: Dataset, subject: str, market: Market, part: Range, now: datetime
    ) -> SyncEvent:
        errors: list[tuple[str, Message | str]] = []
        for provider in self._sources(dataset, market):
            try:
                batch = await FETCH[dataset](provider, subject, *part)
            except Unavailable as e:  # NotOffered is one: another source may have it
                errors.append((provider.name, e.message))
                continue
            start, end = part[0], min(part[1], _complete_until(dataset, market, now))
            covered = (start, end) if dataset in RANGED and start <= end else None
            await asyncio.to_thread(self.store.store, dataset, subject, list(batch), covered=covered, at=now)
            return SyncEvent(
                dataset, subject, "fetched", provider.name, len(batch), batch.refused, tuple(errors)
            )
        return SyncEvent(dataset, subject, "failed", errors=tuple(errors) or (("", SAY("sync.no_source")),))

    def _sources(self, dataset: Dataset, market: Market) -> list[MarketDataProvider]:
        there = self.providers.get(market, {})
        return [there[name] for name in self.order.get(dataset, list(there)) if name in there]


def _complete_until(dataset: Dataset, market: Market, now: datetime) -> date:
    """The last day about which nothing more is to come."""
    return last_day(market, now) - LATE_BY.get(dataset, timedelta())


def last_day(market: Market, now: datetime) -> date:
    """The last day whose daily figures are out."""
    local = now.astimezone(TIME_ZONES[market])
    return local.date() if local.hour >= PUBLISHED_AT_HOUR else local.date() - timedelta(days=1)


def _merged(events: list[SyncEvent]) -> SyncEvent:
    """One event for a dataset that was fetched in parts; it failed if a part did."""
    failed = next((event for event in events if event.outcome == "failed"), None)
    last = failed or events[-1]
    return SyncEvent(
        last.dataset,
        last.subject,
        last.outcome,
        last.source,
        rows=sum(event.rows for event in events),
        refused=tuple(refusal for event in events for refusal in event.refused),
        errors=tuple(error for event in events for error in event.errors),
    )
