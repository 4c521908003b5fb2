"""The lake, brought up to date before it is read: a symbol nobody synced is fetched when it is first asked for."""

from datetime import date, timedelta

from moot.modules.market_data.application.sync import SyncService
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
from moot.modules.market_data.domain.provider import Batch, MarketDataProvider
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market

A_WHILE = timedelta(days=30)


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
        await self._bring(Dataset.COMPANIES, self._market.value)
        return await self._lake.companies()

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        await self._bring(Dataset.BARS, symbol, start, end)
        return await self._lake.daily_bars(symbol, start, end)

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        await self._bring(Dataset.VALUATIONS, symbol, start, end)
        return await self._lake.daily_valuations(symbol, start, end)

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        await self._bring(Dataset.REPORTS, symbol)
        return await self._lake.financial_reports(symbol)

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        await self._bring(Dataset.DIVIDENDS, symbol)
        return await self._lake.dividends(symbol)

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        await self._bring(Dataset.MACRO, self._market.value, start, end)
        return await self._lake.macro(start, end)

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        await self._bring(Dataset.NEWS, symbol, start, end)
        return await self._lake.news(symbol, start, end)

    async def _bring(
        self, dataset: Dataset, subject: str, start: date | None = None, end: date | None = None
    ) -> None:
        today = self._sync.clock.now().date()
        event = await self._sync.bring(dataset, subject, self._market, start or today - A_WHILE, end or today)
        if event.outcome == "failed" and self._sync.store.coverage(dataset, subject) is None:
            why = [SAY("sync.by_source", source=source, why=why) for source, why in event.errors]
            raise Unavailable(
                SAY("sync.nothing", dataset=SAY(f"dataset.{dataset}"), subject=subject, why=why)
            )
