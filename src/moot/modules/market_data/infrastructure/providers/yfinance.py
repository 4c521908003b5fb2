"""Yahoo Finance as a provider, through yfinance: US shares, their dividends, statements and news."""

from datetime import date
from typing import Any

from moot.modules.market_data.domain.call_record import CallRecorder
from moot.modules.market_data.domain.datasets import SHAPES, Dataset
from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.modules.market_data.domain.provider import Batch, NotOffered
from moot.modules.market_data.domain.screening import screened
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import yfinance_rows
from moot.modules.market_data.infrastructure.providers.outside import NOT_RECORDED, PAUSES, Outside, Pace
from moot.modules.market_data.infrastructure.providers.yfinance_client import (
    REQUEST_SECONDS,
    SOURCE,
    YahooClient,
)
from moot.modules.market_data.infrastructure.providers.yfinance_rows import plain_history, plain_statements
from moot.shared.domain.guard import Guard, unguarded
from moot.shared.domain.symbol import TIME_ZONES, Market

PACE = Pace(calls=30, per_seconds=60, concurrency=2)
DEADLINE = 90.0
ARTICLES = 100


class YfinanceProvider:
    """Without a key. No list of companies and no history of valuations; a report counts as known from its deadline.

    The whole history of a share is one answer, and factors must not depend on the range asked for: it is read whole.
    """

    name = SOURCE

    def __init__(
        self,
        *,
        recorder: CallRecorder = NOT_RECORDED,
        guard: Guard = unguarded,
        pace: Pace = PACE,
        deadline: float = DEADLINE,
        pauses: tuple[float, ...] = PAUSES,
    ) -> None:
        outside = Outside(
            SOURCE,
            pace,
            recorder=recorder,
            guard=guard,
            deadline=deadline,
            pauses=pauses,
            passing=(OSError,),
        )
        self._client = YahooClient(outside)

    async def companies(self) -> Batch[Company]:
        raise NotOffered(SAY("yfinance.no_list"))

    async def company(self, symbol: str) -> Company | None:
        """One company, by its symbol; nothing if Yahoo does not know it or not since when it trades."""
        info = await self._client.ask("info", symbol, lambda ticker: dict(ticker.info))
        rows = [yfinance_rows.company(symbol, info)] if info else []
        return next(iter(screened(Company, rows, SHAPES[Dataset.COMPANIES].key)), None)

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        rows = yfinance_rows.bars(symbol, await self._history(symbol))
        wanted = [row for row in rows if start <= row["trade_date"] <= end]
        return screened(DailyBar, wanted, SHAPES[Dataset.BARS].key)

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        raise NotOffered(SAY("yfinance.no_history", dataset=SAY("dataset.valuations")))

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        tables = await self._client.ask("statements", symbol, _statements)
        rows = yfinance_rows.reports(symbol, *tables) if tables else ()
        return screened(FinancialReport, rows, SHAPES[Dataset.REPORTS].key)

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        rows = yfinance_rows.dividends(symbol, await self._history(symbol))
        return screened(Dividend, rows, SHAPES[Dataset.DIVIDENDS].key)

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        raise NotOffered(SAY("yfinance.no_history", dataset=SAY("dataset.macro")))

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        """The newest articles, as far back as Yahoo keeps them."""
        found = await self._client.ask("news", symbol, lambda ticker: list(ticker.get_news(count=ARTICLES)))
        batch = screened(
            NewsItem,
            [yfinance_rows.news(symbol, article) for article in found or []],
            SHAPES[Dataset.NEWS].key,
        )
        zone = TIME_ZONES[Market.US]
        seen = [item for item in batch if start <= item.available_at.astimezone(zone).date() <= end]
        return Batch(sorted(seen, key=lambda item: (item.available_at, item.url)), batch.refused)

    async def _history(self, symbol: str) -> list[yfinance_rows.Row]:
        return await self._client.ask("history", symbol, _whole_history) or []


def _whole_history(ticker: Any) -> list[yfinance_rows.Row]:
    frame = ticker.history(
        period="max", interval="1d", auto_adjust=False, actions=True, keepna=True, timeout=REQUEST_SECONDS
    )
    return plain_history(frame)


def _statements(ticker: Any) -> tuple[yfinance_rows.Statements, yfinance_rows.Statements]:
    """Quarterly and annual statements."""
    readers = (ticker.get_income_stmt, ticker.get_balance_sheet, ticker.get_cash_flow)
    quarterly, annual = (
        plain_statements(*(read(freq=frequency) for read in readers)) for frequency in ("quarterly", "yearly")
    )
    return quarterly, annual
