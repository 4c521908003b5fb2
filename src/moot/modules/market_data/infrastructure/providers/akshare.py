"""AKShare as a provider: A-shares from Eastmoney's pages, the lists from the exchanges, factors from Sina."""

from datetime import date, timedelta

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
from moot.modules.market_data.infrastructure.providers import akshare_rows
from moot.modules.market_data.infrastructure.providers.akshare_client import (
    F10_DATA_CENTRE,
    REQUEST_SECONDS,
    SOURCE,
    AkshareClient,
    Question,
    Row,
)
from moot.modules.market_data.infrastructure.providers.akshare_rows import LISTINGS, SERIES, ZONE
from moot.modules.market_data.infrastructure.providers.outside import NOT_RECORDED, PAUSES, Outside, Pace
from moot.shared.domain.guard import Guard, unguarded
from moot.shared.domain.symbol import Market, Symbol

PACE = Pace(calls=1, per_seconds=0.3, concurrency=1)
"""Eastmoney shuts out who asks faster."""
DEADLINE = 90.0
"""Seconds for one AKShare function, which may read many pages."""
DAYS_BEFORE = timedelta(days=40)
"""Days asked for before the first one, for the close that its reference price rests on."""
LONGEST_HOLIDAY = timedelta(days=12)
"""How far the day printed on an announcement may lie from the day it became visible."""
NOTICES_A_PAGE = 100
ARTICLES = 100


class AkshareProvider:
    """Without a token. Suspended days are missing, ST is not marked, and older articles cannot be had."""

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
        self._client = AkshareClient(outside)

    async def companies(self) -> Batch[Company]:
        rows: list[Row] = []
        for listing in LISTINGS:
            found = await self._client.table(listing.function, listing.params)
            rows += [row for raw in found if (row := akshare_rows.company(listing, raw))]
        return screened(Company, rows, SHAPES[Dataset.COMPANIES].key)

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        code, exchange = _parts(symbol)
        asked = {
            "symbol": code,
            "period": "daily",
            "start_date": f"{start - DAYS_BEFORE:%Y%m%d}",
            "end_date": f"{end:%Y%m%d}",
            "adjust": "",
            "timeout": REQUEST_SECONDS,
        }
        days = await self._client.table("stock_zh_a_hist", asked)
        if not days:
            return Batch()
        factors = await self._client.factors(f"{exchange.lower()}{code}")
        rows = akshare_rows.bars(symbol, days, factors)
        wanted = [row for row in rows if row["trade_date"] is None or row["trade_date"] >= start]
        return screened(DailyBar, wanted, SHAPES[Dataset.BARS].key)

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        code, _ = _parts(symbol)
        asked = Question("RPT_VALUEANALYSIS_DET", f'(SECURITY_CODE="{code}")')
        found = await self._client.table("stock_value_em", {"symbol": code}, asked=asked)
        rows = [akshare_rows.valuation(symbol, row) for row in found]
        wanted = [row for row in rows if row["trade_date"] is None or start <= row["trade_date"] <= end]
        return screened(DailyValuation, wanted, SHAPES[Dataset.VALUATIONS].key)

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        _parts(symbol)
        asked = Question("RPT_F10_FINANCE_MAINFINADATA", f'(SECUCODE="{symbol}")', F10_DATA_CENTRE)
        found = await self._client.table(
            "stock_financial_analysis_indicator_em", {"symbol": symbol}, asked=asked
        )
        rows = [akshare_rows.report(symbol, row) for row in found]
        return screened(FinancialReport, rows, SHAPES[Dataset.REPORTS].key)

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        code, _ = _parts(symbol)
        asked = Question("RPT_SHAREBONUS_DET", f'(SECURITY_CODE="{code}")')
        found = await self._client.table("stock_fhps_detail_em", {"symbol": code}, asked=asked)
        rows = [row for raw in found if (row := akshare_rows.dividend(symbol, raw))]
        return screened(Dividend, rows, SHAPES[Dataset.DIVIDENDS].key)

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        rows: list[Row] = []
        for series in SERIES:
            rows += akshare_rows.observations(series, await self._client.table(series.function))
        batch = screened(MacroObservation, rows, SHAPES[Dataset.MACRO].key)
        return Batch((o for o in batch if start <= o.period <= end), batch.refused)

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        """Announcements and articles by the day they could be seen, oldest first."""
        code, _ = _parts(symbol)
        rows = [akshare_rows.notice(symbol, row) for row in await self._notices(code, start, end)]
        rows += [akshare_rows.article(symbol, row) for row in await self._client.articles(code, ARTICLES)]
        batch = screened(NewsItem, rows, SHAPES[Dataset.NEWS].key)
        seen = [item for item in batch if start <= item.available_at.astimezone(ZONE).date() <= end]
        return Batch(sorted(seen, key=lambda item: (item.available_at, item.url)), batch.refused)

    async def _notices(self, code: str, start: date, end: date) -> list[Row]:
        """All pages; the service goes by the printed day, so it is asked for the days after as well."""
        asked = {
            "sr": -1,
            "page_size": NOTICES_A_PAGE,
            "ann_type": "A",
            "client_source": "web",
            "f_node": 0,
            "s_node": 0,
            "stock_list": code,
            "begin_time": start.isoformat(),
            "end_time": (end + LONGEST_HOLIDAY).isoformat(),
        }
        found: list[Row] = []
        page: Row = {"list": [None], "total_hits": 1}
        while page["list"] and len(found) < page["total_hits"]:
            number = len(found) // NOTICES_A_PAGE + 1
            page = await self._client.notices({**asked, "page_index": number})
            found += page["list"]
        return found


def _parts(symbol: str) -> tuple[str, str]:
    if Symbol.parse(symbol).market is not Market.CN:
        raise NotOffered(SAY("akshare.market", symbol=symbol))
    code, _, exchange = symbol.partition(".")
    return code, exchange
