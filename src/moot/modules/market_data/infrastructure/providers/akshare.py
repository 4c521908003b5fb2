"""AKShare as a provider: A-shares from Eastmoney's pages, the lists from the exchanges, factors from Sina.

Where Eastmoney refuses, the days of a share come from Sina or Tencent. AKShare has no time-outs, takes an empty
answer for a broken one, and drops an announcement's true time: what needs those is asked of the same pages here, as
AKShare asks it.
"""

import importlib
import json
import os
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered, Refusal
from moot.modules.market_data.infrastructure.providers import akshare_rows, outside, rows
from moot.modules.market_data.infrastructure.providers.akshare_rows import (
    AKSHARE,
    LISTINGS,
    PAGES,
    QUOTES,
    SERIES,
    SINA,
    Page,
    Step,
)
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market

FACTORS_URL = "https://finance.sina.com.cn/realstock/company/{symbol}/hfq.js"
NOTICES_URL = "https://np-anotice-stock.eastmoney.com/api/security/ann"
NEWS_URL = "https://search-api-web.eastmoney.com/search/jsonp"
NEWS_REFERER = "https://so.eastmoney.com/news/s"
DATA_CENTRE = "https://datacenter-web.eastmoney.com/api/data/v1/get"
F10_DATA_CENTRE = "https://datacenter.eastmoney.com/securities/api/data/v1/get"
NOTHING_FOUND = 9201
"""The data centre's code for a question that is in order and has no answer."""
A_PAGE = 100
"""Of announcements, and of articles."""


class AkshareProvider(outside.LibrarySource):
    """Without a token. Suspended days are missing, ST is not marked, and older articles cannot be had."""

    name = AKSHARE.name
    market = Market.CN
    pace = outside.Pace(calls=1, per_seconds=0.3, concurrency=1)
    """Eastmoney shuts out who asks faster."""
    hosts: ClassVar = {SINA: outside.Pace(calls=1, per_seconds=0.5, concurrency=1)}

    def readers(self) -> dict[Dataset[Any], Reader]:
        return {
            facts.COMPANIES: self._companies,
            facts.BARS: self._bars,
            facts.MACRO: self._macro,
            facts.NEWS: self._news,
            **{dataset: partial(self._page, dataset) for dataset in PAGES},
        }

    async def _companies(self, *_: object) -> Batch[Row]:
        """What the exchanges that answer have; a list that did not come is named, and asked for again next time."""
        found: list[Row] = []
        missing: dict[str, Unavailable] = {}
        for listing in LISTINGS:
            try:
                table = await self._table(listing.function, listing.params, host=listing.host)
            except NotOffered:
                raise
            except Unavailable as e:
                missing[" ".join((listing.function, *listing.params.values()))] = e
                continue
            found += [row for raw in table if (row := akshare_rows.company(listing, raw))]
        if missing and not found:
            raise next(iter(missing.values()))
        refused = [Refusal(name, str(e)) for name, e in missing.items()]
        return Batch(found, refused, partial=bool(missing))

    async def _bars(self, symbol: str, start: date, end: date) -> list[Row]:
        """The first host that does not refuse tells the days."""
        code, exchange = symbol.lower().split(".")
        refusals: list[Unavailable] = []
        for quotes in QUOTES:
            asked = quotes.ask(code, exchange, start - akshare_rows.DAYS_BEFORE, end)
            try:
                days = await self._table(quotes.function, asked, host=quotes.host)
            except NotOffered:
                raise
            except Unavailable as e:
                refusals.append(e)
                continue
            factors = await self._factors(f"{exchange}{code}") if days else []
            return list(akshare_rows.bars(symbol, quotes.columns, days, factors))
        raise refusals[0]

    async def _page(self, dataset: Dataset[Any], symbol: str, *_: object) -> list[Row]:
        page = PAGES[dataset]
        asked = symbol if page.by_symbol else symbol.partition(".")[0]
        found = await self._table(page.function, {"symbol": asked}, partial(_has_nothing, page, asked))
        return [
            AKSHARE.row(dataset, page.columns, row, symbol=symbol, **more)
            for row in found
            if (more := page.work_out(row)) is not None
        ]

    async def _macro(self, *_: object) -> list[Row]:
        found: list[Row] = []
        for series in SERIES:
            found += series.observations(await self._table(series.table), self.name)
        return found

    async def _news(self, symbol: str, start: date, end: date) -> list[Row]:
        """Announcements and articles."""
        code = symbol.partition(".")[0]
        found = [akshare_rows.notice(symbol, row) for row in await self._notices(code, start, end)]
        return found + [akshare_rows.article(symbol, row) for row in await self._articles(code)]

    async def _notices(self, code: str, start: date, end: date) -> list[Row]:
        """All pages; the service goes by the printed day, so it is asked for the days after as well."""
        asked = {
            "sr": -1,
            "page_size": A_PAGE,
            "ann_type": "A",
            "client_source": "web",
            "f_node": 0,
            "s_node": 0,
            "stock_list": code,
            "begin_time": start.isoformat(),
            "end_time": (end + rows.LONGEST_HOLIDAY).isoformat(),
        }
        found: list[Row] = []
        page: Row = {"list": [None], "total_hits": 1}
        while page["list"] and len(found) < page["total_hits"]:
            turned = {**asked, "page_index": len(found) // A_PAGE + 1}
            page = await self.ask("ann", turned, partial(_notices_page, turned)) or {"list": []}
            found += page["list"]
        return found

    async def _table(
        self,
        function: str,
        params: Mapping[str, Any] | None = None,
        has_nothing: Callable[[], bool] = lambda: False,
        host: str = "",
    ) -> list[Row]:
        """The rows of an AKShare function, `None` for every missing value."""
        call = getattr(await outside.in_thread(self.library), function)
        fresh = getattr(call, "__wrapped__", call)  # past AKShare's cache, which outlives the day
        given = params or {}
        read = partial(_read_table, fresh, given)
        return await self.ask(function, given, read, has_nothing, host) or []

    async def _factors(self, symbol: str) -> list[Step]:
        """Cumulative adjustment factors by ex-date, oldest first. (AKShare would run this answer as code.)"""
        url = FACTORS_URL.format(symbol=symbol)
        asked = {"symbol": symbol}
        return await self.ask("hfq.js", asked, lambda: _steps(_get(url, {})), host=SINA) or []

    async def _articles(self, keyword: str) -> list[Row]:
        """The newest articles that name the keyword."""
        page = {"searchScope": "default", "sort": "time", "pageIndex": 1, "pageSize": A_PAGE}
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
        refused, misread, unread = (
            getattr(importlib.import_module(module), name)
            for module, name in (
                ("akshare.exceptions", "AkshareException"),
                ("akshare.utils.demjson", "JSONException"),
                ("py_mini_racer.py_mini_racer", "MiniRacerBaseException"),
            )
        )
        return (refused,), (misread, unread, *outside.MISREAD)


def _read_table(function: Callable[..., Any], params: Mapping[str, Any]) -> list[Row]:
    return rows.read_frame(function(**params))


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
    url, column = (F10_DATA_CENTRE, "SECUCODE") if page.by_symbol else (DATA_CENTRE, "SECURITY_CODE")
    params = {"reportName": page.report, "columns": "ALL", "filter": f'({column}="{asked}")'}
    text = _get(url, params | {"pageNumber": 1, "pageSize": 1, "source": "WEB", "client": "WEB"})
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
