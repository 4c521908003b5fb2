"""The lake, brought up to date before it is read: a symbol nobody synced is fetched when it is first asked for."""

import asyncio
from datetime import date, timedelta

from moot.modules.market_data.application.sync import SyncService, last_day
from moot.modules.market_data.domain.datasets import Dataset
from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.modules.market_data.domain.provider import Batch, CompanyLookup, MarketDataProvider
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.execution_context import current_execution_ctx, moment_of_reading

A_WHILE = timedelta(days=30)


class NotKept(Unavailable):
    """A replay reads what is kept and fetches nothing; of this, nothing is kept."""

    code = "NOT_KEPT"
    passing = False


class SyncedSource:
    """Old data are better than none: only a dataset of which nothing is kept makes a failed fetch an error."""

    def __init__(self, lake: MarketDataProvider, sync: SyncService, market: Market) -> None:
        self._lake = lake
        self._sync = sync
        self._market = market

    @property
    def name(self) -> str:
        return self._lake.name

    async def companies(self) -> Batch[Company]:
        """The list; a market whose sources have none is made of the companies that were looked up one by one."""
        try:
            await self._bring(Dataset.COMPANIES, self._market.value)
        except Unavailable:
            if not self._lookups():
                raise
        return await self._lake.companies()

    async def company(self, symbol: str) -> Company | None:
        """Looked up where a source can, and kept."""
        if _offline():
            return None
        for source in self._lookups():
            found = await source.company(symbol)
            if found is not None:
                keep, now = self._sync.store.store, self._sync.clock.now()
                place = self._market.value
                await asyncio.to_thread(keep, Dataset.COMPANIES, place, [found], covered=None, at=now)
                return found
        return None

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        await self._bring(Dataset.BARS, symbol, start, end)
        return await self._lake.daily_bars(symbol, start, self._reached(end))

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        await self._bring(Dataset.VALUATIONS, symbol, start, end)
        return await self._lake.daily_valuations(symbol, start, self._reached(end))

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        await self._bring(Dataset.REPORTS, symbol)
        return await self._lake.financial_reports(symbol)

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        await self._bring(Dataset.DIVIDENDS, symbol)
        return await self._lake.dividends(symbol)

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        await self._bring(Dataset.MACRO, self._market.value, start, end)
        return await self._lake.macro(start, self._reached(end))

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        await self._bring(Dataset.NEWS, symbol, start, end)
        return await self._lake.news(symbol, start, self._reached(end))

    def _reached(self, end: date) -> date:
        """A session that runs again sees no day whose figures were not out when it first ran."""
        now = self._sync.clock.now()
        then = moment_of_reading(now)
        return end if then == now else min(end, last_day(self._market, then))

    def _lookups(self) -> list[CompanyLookup]:
        there = self._sync.providers.get(self._market, {}).values()
        return [source for source in there if isinstance(source, CompanyLookup)]

    async def _bring(
        self, dataset: Dataset, subject: str, start: date | None = None, end: date | None = None
    ) -> None:
        if _offline():
            if self._sync.store.coverage(dataset, subject) is None:
                raise NotKept(SAY("offline.nothing_kept", dataset=SAY(f"dataset.{dataset}"), subject=subject))
            return
        today = self._sync.clock.now().date()
        event = await self._sync.bring(dataset, subject, self._market, start or today - A_WHILE, end or today)
        if event.outcome == "failed" and self._sync.store.coverage(dataset, subject) is None:
            why = [SAY("sync.by_source", source=source, why=why) for source, why in event.errors]
            raise Unavailable(
                SAY("sync.nothing", dataset=SAY(f"dataset.{dataset}"), subject=subject, why=why)
            )


def _offline() -> bool:
    """Whether the session under way is replayed: it sees what was there, and asks nobody outside."""
    context = current_execution_ctx.get()
    return context is not None and context.answers == "replay"
