"""Tushare Pro as a provider: which interfaces make up which dataset, and within which limits they are asked."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import httpx
from pydantic import SecretStr

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
from moot.modules.market_data.domain.provider import Batch, NotOffered, Refusal
from moot.modules.market_data.domain.screening import screened
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import tushare_rows
from moot.modules.market_data.infrastructure.providers.outside import NOT_RECORDED, PAUSES, Outside, Pace
from moot.modules.market_data.infrastructure.providers.tushare_client import TushareClient
from moot.modules.market_data.infrastructure.providers.tushare_macro import SERIES
from moot.modules.market_data.infrastructure.providers.tushare_reports import FIGURES, KEYS, report_rows
from moot.modules.market_data.infrastructure.providers.tushare_rows import IMPLEMENTED, SOURCE, ZONE, Row
from moot.shared.domain.guard import Guard, unguarded
from moot.shared.domain.symbol import Market, Symbol

BASE_URL = "https://api.tushare.pro"
PACE = Pace(calls=195, per_seconds=60, concurrency=4)
PAGE_ROWS = {"daily": 6000, "adj_factor": 6000, "daily_basic": 6000} | dict.fromkeys(FIGURES, 100)
OTHER_PAGE_ROWS = 2000
"""A longer answer is cut short by the service."""
NAMES_HOLD = 6 * 3600.0
"""Seconds for which the list of names is good."""
LIST_STATES = ("L", "D", "P")
"""Listed, delisted, paused."""
LONGEST_HOLIDAY = timedelta(days=12)
"""How far the day printed on an announcement may lie from the day it became visible."""
TWO_MONTHS = timedelta(days=62)
COLUMNS = {
    "index_weight": "index_code,con_code,trade_date",
    "stock_basic": "ts_code,name,fullname,enname,cnspell,industry,market,list_date,delist_date",
    "namechange": "ts_code,name,start_date,end_date",
    "daily": "ts_code,trade_date,open,high,low,close,pre_close,vol,amount",
    "adj_factor": "ts_code,trade_date,adj_factor",
    "daily_basic": "ts_code,trade_date,close,turnover_rate,pe,pe_ttm,pb,ps_ttm,dv_ratio,total_mv,circ_mv",
    "dividend": "ts_code,end_date,ann_date,div_proc,stk_div,cash_div_tax,record_date,ex_date,imp_ann_date",
    "anns_d": "ts_code,ann_date,title,url,rec_time",
} | {api: ",".join((*KEYS, *figures.values())) for api, figures in FIGURES.items()}
"""What is asked for by name; the small macro tables come whole."""


class TushareProvider:
    """A-shares, their companies and the Chinese economy, as far as the token's permissions reach."""

    name = SOURCE

    def __init__(
        self,
        token: SecretStr,
        *,
        base_url: str = BASE_URL,
        recorder: CallRecorder = NOT_RECORDED,
        guard: Guard = unguarded,
        timeout: float = 30.0,
        pace: Pace = PACE,
        pauses: tuple[float, ...] = PAUSES,
        client: Callable[[], httpx.AsyncClient] | None = None,
    ) -> None:
        outside = Outside(
            SOURCE,
            pace,
            recorder=recorder,
            guard=guard,
            deadline=timeout,
            pauses=pauses,
            passing=(httpx.TransportError,),
        )

        def by_environment() -> httpx.AsyncClient:
            return httpx.AsyncClient(trust_env=True, timeout=2 * timeout)  # the deadline comes first

        self._client = TushareClient(token, base_url, outside, client or by_environment)
        self._names: Mapping[str, list[Row]] | None = None
        self._names_until = 0.0
        self._reading_names = asyncio.Lock()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def companies(self) -> Batch[Company]:
        """Listed, delisted and paused ones; without permission for their names, without former names and ST."""
        found: list[Row] = []
        for status in LIST_STATES:
            found += await self._rows("stock_basic", {"exchange": "", "list_status": status})
        names = await self._names_by_symbol()
        rows = [tushare_rows.company(row, names.get(row.get("ts_code", ""), [])) for row in found]
        return screened(Company, rows, SHAPES[Dataset.COMPANIES].key)

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        asked = _in_range(symbol, start, end)
        quotes = await self._rows("daily", asked)
        if not quotes:
            return Batch()
        factors = {
            row.get("trade_date"): row.get("adj_factor") for row in await self._rows("adj_factor", asked)
        }
        spells = tushare_rows.special_treatments((await self._names_by_symbol()).get(symbol, []))
        rows = [tushare_rows.bar(row, factors.get(row.get("trade_date")), spells) for row in quotes]
        return screened(DailyBar, rows, SHAPES[Dataset.BARS].key)

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        found = await self._rows("daily_basic", _in_range(symbol, start, end))
        return screened(DailyValuation, map(tushare_rows.valuation, found), SHAPES[Dataset.VALUATIONS].key)

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        """Every version of every period; an interface the token may not use leaves its figures out, and says so."""
        asked = _of(symbol)
        tables, missing = await self._permitted({api: (api, asked) for api in FIGURES})
        batch = screened(FinancialReport, report_rows(symbol, tables), SHAPES[Dataset.REPORTS].key)
        return Batch(batch, (*batch.refused, *missing))

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        """Those that were carried out; plans are not dividends yet."""
        found = await self._rows("dividend", _of(symbol))
        paid = [tushare_rows.dividend(row) for row in found if row.get("div_proc") == IMPLEMENTED]
        return screened(Dividend, paid, SHAPES[Dataset.DIVIDENDS].key)

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        asked = {series.name: (series.api, series.question(start, end)) for series in SERIES}
        tables, missing = await self._permitted(asked)
        rows = [s.observation(row) for s in SERIES for row in tables.get(s.name, [])]
        batch = screened(MacroObservation, rows, SHAPES[Dataset.MACRO].key)
        return Batch((o for o in batch if start <= o.period <= end), (*batch.refused, *missing))

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        """Announcements; the service goes by the printed day, so it is asked for the days around as well."""
        asked = _in_range(symbol, start - LONGEST_HOLIDAY, end + LONGEST_HOLIDAY)
        found = await self._rows("anns_d", asked)
        batch = screened(NewsItem, map(tushare_rows.announcement, found), SHAPES[Dataset.NEWS].key)
        seen = [item for item in batch if start <= item.available_at.astimezone(ZONE).date() <= end]
        return Batch(sorted(seen, key=lambda item: (item.available_at, item.url)), batch.refused)

    async def constituents(self, index: str, day: date) -> list[str]:
        """Published by the month: the newest list of the last two."""
        params = {
            "index_code": index,
            "start_date": f"{day - TWO_MONTHS:%Y%m%d}",
            "end_date": f"{day:%Y%m%d}",
        }
        found = await self._rows("index_weight", params)
        newest = max((row["trade_date"] for row in found), default=None)
        return sorted({row["con_code"] for row in found if row["trade_date"] == newest})

    async def _rows(self, api: str, params: Mapping[str, Any]) -> list[Row]:
        return await self._client.rows(api, params, COLUMNS.get(api, ""), PAGE_ROWS.get(api, OTHER_PAGE_ROWS))

    async def _permitted(
        self, asked: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> tuple[dict[str, list[Row]], Sequence[Refusal]]:
        """The tables the token may read, and what it may not; nothing at all is `NotOffered`."""
        tables: dict[str, list[Row]] = {}
        missing: list[Refusal] = []
        for name, (api, params) in asked.items():
            try:
                tables[name] = await self._rows(api, params)
            except NotOffered as e:
                missing.append(Refusal(api, str(e)))
        if not tables:
            raise NotOffered(SAY("tushare.no_permission", api=[refusal.row for refusal in missing]))
        return tables, missing

    async def _names_by_symbol(self) -> Mapping[str, list[Row]]:
        """Every name every company ever had, read once a while; nothing where the token may not read it."""
        async with self._reading_names:
            if self._names is None or time.monotonic() > self._names_until:
                try:
                    found = await self._rows("namechange", {})
                except NotOffered:
                    found = []
                self._names = defaultdict(list)
                for row in found:
                    self._names[row.get("ts_code", "")].append(row)
                self._names_until = time.monotonic() + NAMES_HOLD
            return self._names


def _of(symbol: str) -> dict[str, str]:
    if Symbol.parse(symbol).market is not Market.CN:
        raise NotOffered(SAY("tushare.market", symbol=symbol))
    return {"ts_code": symbol}


def _in_range(symbol: str, start: date, end: date) -> dict[str, str]:
    return _of(symbol) | {"start_date": f"{start:%Y%m%d}", "end_date": f"{end:%Y%m%d}"}
