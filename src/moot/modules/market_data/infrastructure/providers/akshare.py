"""AKShare as a provider: A-shares from Eastmoney's pages, the lists from the exchanges, factors from Sina.

AKShare has no time-outs, takes an empty answer for a broken one, and drops an announcement's true time: what needs
those is asked of the same pages here, as AKShare asks it.
"""

import importlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from types import ModuleType
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.infrastructure.providers import akshare_rows, outside
from moot.modules.market_data.infrastructure.providers.akshare_rows import AKSHARE, LISTINGS, SERIES, Step
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.modules.market_data.infrastructure.providers.rows import LONGEST_HOLIDAY
from moot.shared.domain.symbol import Market

FACTORS_URL = "https://finance.sina.com.cn/realstock/company/{symbol}/hfq.js"
NOTICES_URL = "https://np-anotice-stock.eastmoney.com/api/security/ann"
NEWS_URL = "https://search-api-web.eastmoney.com/search/jsonp"
NEWS_REFERER = "https://so.eastmoney.com/news/s"
DATA_CENTRE = "https://datacenter-web.eastmoney.com/api/data/v1/get"
F10_DATA_CENTRE = "https://datacenter.eastmoney.com/securities/api/data/v1/get"
NOTHING_FOUND = 9201
"""The data centre's code for a question that is in order and has no answer."""


DAYS_BEFORE = timedelta(days=40)
"""Days asked for before the first one, for the close that its reference price rests on."""
NOTICES_A_PAGE = 100
ARTICLES = 100


@dataclass(frozen=True)
class Page:
    """A function that has all of a dataset for a symbol, by its `code` alone or as we spell it.

    `report` of the data centre at `url` tells whether it has nothing, or AKShare could not read what it had.
    """

    function: str
    row: Callable[[str, Row], Row | None]
    report: str
    spelled: str = "code"
    column: str = "SECURITY_CODE"
    url: str = DATA_CENTRE


PAGES: dict[Dataset[Any], Page] = {
    facts.VALUATIONS: Page("stock_value_em", akshare_rows.valuation, "RPT_VALUEANALYSIS_DET"),
    facts.DIVIDENDS: Page("stock_fhps_detail_em", akshare_rows.dividend, "RPT_SHAREBONUS_DET"),
    facts.REPORTS: Page(
        "stock_financial_analysis_indicator_em",
        akshare_rows.report,
        "RPT_F10_FINANCE_MAINFINADATA",
        spelled="symbol",
        column="SECUCODE",
        url=F10_DATA_CENTRE,
    ),
}


class AkshareProvider(outside.LibrarySource):
    """Without a token. Suspended days are missing, ST is not marked, and older articles cannot be had."""

    name = AKSHARE.name
    market = Market.CN
    pace = outside.Pace(calls=1, per_seconds=0.3, concurrency=1)
    """Eastmoney shuts out who asks faster."""

    def readers(self) -> dict[Dataset[Any], Reader]:
        return {
            facts.COMPANIES: self._companies,
            facts.BARS: self._bars,
            facts.MACRO: self._macro,
            facts.NEWS: self._news,
            **{dataset: partial(self._page, page) for dataset, page in PAGES.items()},
        }

    async def _companies(self, *_: object) -> list[Row]:
        rows: list[Row] = []
        for listing in LISTINGS:
            found = await self._table(listing.function, listing.params)
            rows += [row for raw in found if (row := akshare_rows.company(listing, raw))]
        return rows

    async def _bars(self, symbol: str, start: date, end: date) -> list[Row]:
        code, _, exchange = symbol.partition(".")
        asked = {
            "symbol": code,
            "period": "daily",
            "start_date": f"{start - DAYS_BEFORE:%Y%m%d}",
            "end_date": f"{end:%Y%m%d}",
            "adjust": "",
            "timeout": outside.REQUEST_SECONDS,
        }
        days = await self._table("stock_zh_a_hist", asked)
        if not days:
            return []
        factors = await self._factors(f"{exchange.lower()}{code}")
        return list(akshare_rows.bars(symbol, days, factors))

    async def _page(self, page: Page, symbol: str, *_: object) -> list[Row]:
        asked = symbol if page.spelled == "symbol" else symbol.partition(".")[0]
        has_nothing = partial(_has_nothing, page, asked)
        found = await self._table(page.function, {"symbol": asked}, has_nothing)
        return [told for row in found if (told := page.row(symbol, row)) is not None]

    async def _macro(self, *_: object) -> list[Row]:
        rows: list[Row] = []
        for series in SERIES:
            rows += series.observations(await self._table(series.table), self.name)
        return rows

    async def _news(self, symbol: str, start: date, end: date) -> list[Row]:
        """Announcements and articles."""
        code = symbol.partition(".")[0]
        rows = [akshare_rows.notice(symbol, row) for row in await self._notices(code, start, end)]
        return rows + [akshare_rows.article(symbol, row) for row in await self._articles(code)]

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
            turned = {**asked, "page_index": len(found) // NOTICES_A_PAGE + 1}
            page = await self.ask("ann", turned, partial(_notices_page, turned)) or {"list": []}
            found += page["list"]
        return found

    async def _table(
        self,
        function: str,
        params: Mapping[str, Any] | None = None,
        has_nothing: Callable[[], bool] = lambda: False,
    ) -> list[Row]:
        """The rows of an AKShare function, `None` for every missing value."""
        call = getattr(await outside.in_thread(self.library), function)
        fresh = getattr(call, "__wrapped__", call)  # past AKShare's cache, which outlives the day
        given = params or {}
        return await self.ask(function, given, lambda: _rows(fresh(**given)), has_nothing) or []

    async def _factors(self, symbol: str) -> list[Step]:
        """Cumulative adjustment factors by ex-date, oldest first. (AKShare would run this answer as code.)"""
        url = FACTORS_URL.format(symbol=symbol)
        return await self.ask("hfq.js", {"symbol": symbol}, lambda: _steps(_get(url, {}))) or []

    async def _articles(self, keyword: str) -> list[Row]:
        """The newest articles that name the keyword."""
        page = {"searchScope": "default", "sort": "time", "pageIndex": 1, "pageSize": ARTICLES}
        inner = {
            "uid": "",
            "keyword": keyword,
            "type": ["cmsArticleWebOld"],
            "client": "web",
            "clientType": "web",
            "clientVersion": "curr",
            "param": {"cmsArticleWebOld": {**page, "preTag": "", "postTag": ""}},
        }
        params = {"cb": "moot", "param": json.dumps(inner, ensure_ascii=False)}

        def read() -> list[Row]:
            articles: list[Row] = _read_jsonp(_get(NEWS_URL, params, browser=True))["result"].get(
                "cmsArticleWebOld", []
            )
            return articles

        return await self.ask("search", {"keyword": keyword}, read) or []

    def library(self) -> ModuleType:
        os.environ.setdefault("TQDM_DISABLE", "1")  # its progress bars would run through ours
        return super().library()

    def errors(self) -> outside.Errors:
        return (importlib.import_module("akshare.exceptions").AkshareException,), outside.MISREAD


def _rows(frame: Any) -> list[Row]:
    plain = frame.astype(object)
    rows: list[Row] = plain.where(frame.notna(), None).to_dict("records")
    return rows


def _get(url: str, params: Mapping[str, Any], *, browser: bool = False) -> str:
    """The text at `url`; the news search answers only what looks like a browser."""
    http = importlib.import_module("curl_cffi.requests" if browser else "requests")
    headers = {"Referer": NEWS_REFERER} if browser else {}
    answer = http.get(url, params=dict(params), headers=headers, timeout=outside.REQUEST_SECONDS)
    outside.refuse_status(AKSHARE.name, url, outside.HttpAnswer(answer.status_code, answer.text))
    text: str = answer.text
    return text


def _notices_page(params: Mapping[str, Any]) -> Row:
    """A page of announcements, with the moment each became visible."""
    page: Row = json.loads(_get(NOTICES_URL, params))["data"]
    return page


def _has_nothing(page: Page, asked: str) -> bool:
    params = {"reportName": page.report, "columns": "ALL", "filter": f'({page.column}="{asked}")'}
    paging = {"pageNumber": 1, "pageSize": 1, "source": "WEB", "client": "WEB"}
    text = _get(page.url, params | paging)
    try:
        answer = json.loads(text)
        return answer["result"] is None and answer["code"] == NOTHING_FOUND
    except outside.MISREAD:
        return False


def _steps(text: str) -> list[Step]:
    """Sina's `var name={"total":…,"data":[{"d":day,"f":factor},…]}`, with a comment after it."""
    told = json.loads(text.partition("=")[2].partition("\n")[0])
    return sorted((date.fromisoformat(step["d"]), float(step["f"])) for step in told["data"])


def _read_jsonp(text: str) -> Any:
    """JSONP: `name({...})`, with or without a semicolon."""
    return json.loads(text[text.find("(") + 1 : text.rfind(")")])
