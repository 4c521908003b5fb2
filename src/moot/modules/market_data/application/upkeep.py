"""Keeping the lake: what to fetch, what is held, what was imported, and whether it can be trusted."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from moot.modules.market_data.application.directory import Directory
from moot.modules.market_data.application.examination import Case, Remark, disagreements, examine
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sync import SyncEvent, SyncService, SyncWatch
from moot.modules.market_data.domain.calendar import TradingCalendar
from moot.modules.market_data.domain.datasets import COMPANIES, DATASETS, Dataset
from moot.modules.market_data.domain.provider import Batch, IndexMembers, MarketDataProvider, Refusal
from moot.modules.market_data.domain.store import Coverage
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Market, Symbol

HISTORY = timedelta(days=3 * 366)
INDEXES = {"csi300": "399300.SZ", "csi500": "399905.SZ"}

ReadImport = Callable[[Path, Path | None], Mapping[Dataset[Any], Batch[Any]]]


@dataclass(frozen=True)
class SyncPlan:
    symbols: tuple[Symbol, ...]
    start: date
    end: date

    @property
    def steps(self) -> int:
        subjects = {True: len(self.symbols), False: len({symbol.market for symbol in self.symbols})}
        return sum(subjects[dataset.by_symbol] for dataset in DATASETS.values())


@dataclass(frozen=True)
class Holding:
    """A line of the status table: how far a dataset reaches, with how many holes in its coverage, and how old."""

    name: Message
    subject: str
    rows: int
    first: date | None
    last: date | None
    gaps: int
    age: timedelta
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Import:
    name: Message
    rows: int
    subjects: int
    refused: tuple[Refusal, ...]


@dataclass(frozen=True)
class Imports:
    """`guessed` is what had to be guessed about the file, in words."""

    done: list[Import]
    guessed: Sequence[Message]


@dataclass(frozen=True)
class MarketDataUpkeep:
    market_data: MarketData
    directory: Directory
    syncing: SyncService
    sources: Mapping[Market, MarketDataProvider]
    calendar_of: Callable[[Market], TradingCalendar]
    read_import: ReadImport

    async def plan(
        self, texts: Sequence[str], universe: str | None, start: date | None, end: date | None
    ) -> SyncPlan:
        """Who to fetch, for which days: three years up to today unless told otherwise."""
        today = self.syncing.clock.now().date()
        named = [Symbol.parse((await self.directory.resolve(text)).symbol) for text in texts]
        symbols = tuple(dict.fromkeys([*named, *await self._universe(universe)]))
        first, last = start or (end or today) - HISTORY, end or today
        if not symbols:
            raise InvalidInput(SAY("upkeep.nobody"))
        if first > last:
            raise InvalidInput(SAY("upkeep.backwards", start=first.isoformat(), end=last.isoformat()))
        return SyncPlan(symbols, first, last)

    async def sync(self, plan: SyncPlan, *, watch: SyncWatch | None = None) -> list[SyncEvent]:
        return await self.syncing.sync(plan.symbols, plan.start, plan.end, watch=watch)

    async def holdings(self) -> list[Holding]:
        now = self.syncing.clock.now()
        return [
            Holding(
                name=DATASETS[kept.dataset].label,
                subject=kept.subject,
                rows=kept.rows,
                first=kept.ranges[0][0] if kept.ranges else None,
                last=kept.ranges[-1][1] if kept.ranges else None,
                gaps=max(len(kept.ranges) - 1, 0),
                age=now - kept.stored_at,
                sources=kept.sources,
            )
            for kept in sorted(self.syncing.store.inventory(), key=_by_dataset)
        ]

    async def bring_in(self, file: Path, mapping: Path | None) -> Imports:
        """Read a file a user has and keep it; rows that make no sense are refused by name."""
        now = self.syncing.clock.now()
        done = []
        found = await asyncio.to_thread(self.read_import, file, mapping)
        for dataset, batch in found.items():
            groups = _by_subject(dataset, batch)
            for subject, facts in groups.items():
                self.syncing.store.store(dataset, subject, facts, covered=_span(facts), at=now)
            done.append(Import(dataset.label, len(batch), len(groups), batch.refused))
        return Imports(done, getattr(found, "guessed", ()))

    async def examine(self, text: str) -> list[Remark]:
        """What is odd about the data of a company, and where its sources tell it differently."""
        company = await self.directory.resolve(text)
        symbol, now = Symbol.parse(company.symbol), self.syncing.clock.now()
        today = symbol.local_date(now)
        start = today - HISTORY
        case = Case(
            symbol,
            company,
            await self.market_data.daily_bars(symbol, start, today, as_of=now, adjusted=False),
            await self.market_data.daily_valuations(symbol, start, today, as_of=now),
            self.calendar_of(symbol.market),
        )
        sources = self.syncing.providers.get(symbol.market, {})
        return examine(case) + await disagreements(symbol, sources, today)

    async def _universe(self, universe: str | None) -> list[Symbol]:
        if universe is None:
            return []
        if universe in INDEXES:
            return [Symbol.parse(code) for code in await self._members(INDEXES[universe])]
        if universe == "all":
            companies = (
                await self.sources[Market.CN].read(COMPANIES, Market.CN.value)
                if Market.CN in self.sources
                else []
            )
            return [Symbol.parse(company.symbol) for company in companies if company.delist_date is None]
        return [Symbol.parse((await self.directory.resolve(text)).symbol) for text in _listed_in(universe)]

    async def _members(self, index: str) -> list[str]:
        today = self.syncing.clock.now().date()
        for source in self.syncing.providers.get(Market.CN, {}).values():
            if isinstance(source, IndexMembers):
                return await source.constituents(index, today)
        raise Unavailable(SAY("upkeep.no_members", index=index))


def _listed_in(universe: str) -> list[str]:
    """The symbols of a file, one a line."""
    file = Path(universe)
    if not file.is_file():
        raise InvalidInput(SAY("upkeep.universe_unknown", universe=universe))
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _by_dataset(kept: Coverage) -> tuple[int, str]:
    return list(DATASETS).index(kept.dataset), kept.subject


def _by_subject(dataset: Dataset[Any], batch: Batch[Any]) -> dict[str, list[BaseModel]]:
    groups: dict[str, list[BaseModel]] = {}
    for fact in batch:
        symbol = Symbol.parse(getattr(fact, "symbol", ""))
        subject = symbol.text if dataset.by_symbol else symbol.market.value
        groups.setdefault(subject, []).append(fact)
    return groups


def _span(facts: Sequence[BaseModel]) -> tuple[date, date] | None:
    """Imported bars and valuations are taken to be complete between their first and last day."""
    days = [getattr(fact, "trade_date", None) for fact in facts]
    known = [day for day in days if day is not None]
    return (min(known), max(known)) if known else None
