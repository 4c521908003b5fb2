"""AKShare as a provider: A-shares from Eastmoney's pages, the lists from the exchanges, factors from Sina.

Where Eastmoney refuses, the days of a share come from Sina or Tencent. AKShare has no time-outs, takes an empty
answer for a broken one, and drops an announcement's true time: what needs those is asked of the same pages here, as
AKShare asks it.
"""

import importlib
import json
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered, Range, Refusal, screen
from moot.modules.market_data.infrastructure.providers import akshare_reports, akshare_rows, outside, rows
from moot.modules.market_data.infrastructure.providers.akshare_reports import EARNERS, Report
from moot.modules.market_data.infrastructure.providers.akshare_rows import (
    AKSHARE,
    INDEX_QUOTES,
    INDUSTRY_QUOTES,
    LISTINGS,
    QUOTES,
    RENAMED,
    SERIES,
    SINA,
    Listing,
    Quotes,
    Step,
)
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import IndexBar
from moot.shared.domain.symbol import Market

FACTORS_URL = "https://finance.sina.com.cn/realstock/company/{symbol}/hfq.js"
NOTICES_URL = "https://np-anotice-stock.eastmoney.com/api/security/ann"
NEWS_URL = "https://search-api-web.eastmoney.com/search/jsonp"
NEWS_REFERER = "https://so.eastmoney.com/news/s"
DATA_CENTRE = "https://datacenter-web.eastmoney.com/api/data/v1/get"
F10_DATA_CENTRE = "https://datacenter.eastmoney.com/securities/api/data/v1/get"
NOTHING_FOUND = 9201
"""The data centre's code for a question that is in order and has no answer."""
FLOWS_URL = "https://push2his.eastmoney.com/api/qt/stock/fflow/daykline/get"
NO_PAGE: Row = {"pages": 0, "data": []}
REPORT_ROWS = 500
"""The most that a page of the data centre has."""
A_PAGE = 100
"""Of announcements, and of articles."""
Part = Callable[[], Awaitable[Iterable[Row]]]


class AkshareProvider(outside.LibrarySource):
    """Without a token. Suspended days are missing, ST is not marked, and older articles cannot be had."""

    name = AKSHARE.name
    market = Market.CN
    pace = outside.Pace(calls=1, per_seconds=0.3, concurrency=1)
    """Eastmoney shuts out who asks faster."""
    hosts: ClassVar = {SINA: outside.Pace(calls=1, per_seconds=0.5, concurrency=1)}
    lacks = (facts.MARGIN,)

    def readers(self) -> dict[Dataset[Any], Reader]:
        return {
            facts.COMPANIES: self._companies,
            facts.BARS: self._bars,
            facts.MACRO: self._macro,
            facts.NEWS: self._news,
            facts.STATEMENTS: self._statements,
            facts.INDEX_BARS: self._index_bars,
            facts.UNLOCKS: self._unlocks,
            facts.FLOWS: self._flows,
            **{dataset: partial(self._reports, dataset) for dataset in akshare_reports.REPORTS},
        }

    async def _in_part(self, parts: Mapping[str, Part]) -> Batch[Row]:
        """What came of them; a part that did not is named, and asked for again the next time."""
        found: list[Row] = []
        refused: list[Refusal] = []
        failed: Unavailable | None = None
        for name, read in parts.items():
            try:
                told = await read()
            except NotOffered:
                raise
            except Unavailable as e:
                failed = failed or e
                refused.append(Refusal(name, str(e)))
                continue
            found += told
            refused += told.refused if isinstance(told, Batch) else ()
        if failed and not found:
            raise failed
        return Batch(found, refused, partial=bool(refused))

    async def _companies(self, _: str, _start: date, end: date) -> Batch[Row]:
        """With industries as Eastmoney calls them, and former names as far as the exchange of Shenzhen tells them."""
        renamed = defaultdict[str, list[Row]](list)
        industries: dict[str, Any] = {}

        async def names() -> list[Row]:
            for row in await self._table(RENAMED.function, RENAMED.params, RENAMED.host):
                renamed[str(row.get("证券代码"))].append(row)
            return []

        async def earners() -> list[Row]:
            found = await self._report(EARNERS, akshare_reports.last_full_year(end), "SECURITY_CODE")
            industries.update({row["SECURITY_CODE"]: row["PUBLISHNAME"] for row in found})
            return []

        async def listed(listing: Listing) -> list[Row]:
            found = await self._table(listing.function, listing.params, listing.host)
            told = (akshare_rows.company(listing, row, renamed, industries) for row in found)
            return [row for row in told if row]

        parts: dict[str, Part] = {str(listing): partial(listed, listing) for listing in LISTINGS}
        return await self._in_part({str(RENAMED): names, EARNERS: earners, **parts})

    async def _bars(self, symbol: str, start: date, end: date) -> list[Row]:
        quotes, days = await self._first_answer(QUOTES, symbol, start, end)
        code, _, exchange = symbol.lower().partition(".")
        factors = await self._factors(f"{exchange}{code}") if days else []
        return list(akshare_rows.bars(symbol, quotes.columns, days, factors))

    async def _first_answer(
        self, choice: Sequence[Quotes], symbol: str, start: date, end: date
    ) -> tuple[Quotes, list[Row]]:
        """The days from the first host that does not refuse, and some before them."""
        refusals: list[Unavailable] = []
        for quotes in choice:
            asked = quotes.ask(symbol, start - akshare_rows.DAYS_BEFORE, end)
            try:
                return quotes, await self._table(quotes.function, asked, host=quotes.host)
            except NotOffered:
                raise
            except Unavailable as e:
                refusals.append(e)
        raise refusals[0]

    async def _index_bars(self, _: str, start: date, end: date) -> Batch[Row]:
        """Those of the market; of industries there are too many to ask for all."""
        parts: dict[str, Part] = {
            name: partial(self._index, INDEX_QUOTES, index, (start, end), name)
            for index, name in rows.MARKET_INDEXES.items()
        }
        return await self._in_part(parts)

    async def industry_bars(self, industry: str, start: date, end: date) -> Batch[IndexBar]:
        """Of an industry as Eastmoney calls it."""
        boards = await self._table("stock_board_industry_name_em")
        index = next((str(board["板块代码"]) for board in boards if board["板块名称"] == industry), None)
        if index is None:
            return Batch()
        told = await self._index(INDUSTRY_QUOTES, index, (start, end), industry, industry)
        days = (start, end, self.market)
        return screen(facts.INDEX_BARS, [r for r in told if facts.INDEX_BARS.covers(r["trade_date"], *days)])

    async def _index(
        self, choice: Sequence[Quotes], index: str, days: Range, name: str, industry: str | None = None
    ) -> list[Row]:
        quotes, found = await self._first_answer(choice, index, *days)
        named = {"index": index, "name": name, "industry": industry}
        return list(akshare_rows.index_bars(quotes.columns, found, **named))

    async def _statements(self, symbol: str, *_: object) -> list[Row]:
        for parts in akshare_reports.STATEMENTS:
            if found := await self._read_reports(facts.STATEMENTS, parts, symbol):
                return list(akshare_reports.merge_statements(found))
        return []

    async def _reports(self, dataset: Dataset[Any], symbol: str, *_: object) -> list[Row]:
        return await self._read_reports(dataset, akshare_reports.REPORTS[dataset], symbol)

    async def _read_reports(self, dataset: Dataset[Any], reports: Iterable[Report], symbol: str) -> list[Row]:
        found: list[Row] = []
        for report in reports:
            raw = await self._report(report.name, report.ask(symbol), str(report.columns[dataset.day]))
            told = (report.read(dataset, symbol, row) for row in raw)
            found += [row for row in told if row is not None]
        return found

    async def _report(self, name: str, about: str, newest: str) -> list[Row]:
        """All pages of what a report of the data centre has about it, newest first."""
        found: list[Row] = []
        page: Row = {"pages": 1}
        turned = 0
        while turned < page["pages"]:
            turned += 1
            read = partial(_report_page, name, about, newest, turned)
            page = await self.ask(name, {"filter": about, "page": turned}, read) or NO_PAGE
            found += page["data"]
        return found

    async def _unlocks(self, symbol: str, *_: object) -> list[Row]:
        asked = {"symbol": symbol.partition(".")[0]}
        found = await self._table("stock_restricted_release_queue_sina", asked, host=SINA)
        columns = akshare_rows.COLUMNS["unlock"]
        return [AKSHARE.row(facts.UNLOCKS, columns, row, symbol=symbol) for row in found]

    async def _flows(self, symbol: str, *_: object) -> list[Row]:
        """Large orders of the last half year; what was held by way of Hong Kong, while that was told by the day."""
        moved = await self.ask("fflow", {"symbol": symbol}, partial(_flow_page, symbol)) or []
        held = await self._read_reports(facts.FLOWS, [akshare_reports.NORTHBOUND], symbol)
        return list(akshare_reports.flows(symbol, moved, held))

    async def _macro(self, *_: object) -> Batch[Row]:
        return await self._in_part({series.name: partial(self._series, series) for series in SERIES})

    async def _series(self, series: rows.Series) -> list[Row]:
        return list(series.observations(await self._table(series.table), self.name))

    async def _news(self, symbol: str, start: date, end: date) -> Batch[Row]:
        code = symbol.partition(".")[0]

        async def announcements() -> list[Row]:
            return [akshare_rows.notice(symbol, row) for row in await self._notices(code, start, end)]

        async def articles() -> list[Row]:
            return [akshare_rows.article(symbol, row) for row in await self._articles(code)]

        return await self._in_part({"announcements": announcements, "articles": articles})

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
        self, function: str, params: Mapping[str, Any] | None = None, host: str = ""
    ) -> list[Row]:
        """The rows of an AKShare function, `None` for every missing value."""
        call = getattr(await outside.in_thread(self.library), function)
        fresh = getattr(call, "__wrapped__", call)  # past AKShare's cache, which outlives the day
        given = params or {}
        return await self.ask(function, given, lambda: rows.read_frame(fresh(**given)), host=host) or []

    async def _factors(self, symbol: str) -> list[Step]:
        """Cumulative adjustment factors by ex-date, oldest first. (AKShare would run this answer as code.)"""
        url = FACTORS_URL.format(symbol=symbol)
        return await self.ask("hfq.js", {"symbol": symbol}, lambda: _steps(_get(url, {})), host=SINA) or []

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
        return await self.ask("search", {"keyword": keyword}, partial(_articles_page, params)) or []

    def library(self) -> ModuleType:
        os.environ.setdefault("TQDM_DISABLE", "1")  # its progress bars would run through ours
        return super().library()

    def errors(self) -> outside.Errors:
        refused = importlib.import_module("akshare.exceptions").AkshareException
        misread = importlib.import_module("akshare.utils.demjson").JSONException
        unread = importlib.import_module("py_mini_racer.py_mini_racer").MiniRacerBaseException
        return (refused,), (misread, unread, *outside.MISREAD)


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


def _report_page(name: str, about: str, newest: str, page: int) -> Row:
    """The rows of a page, and how many pages there are."""
    url = F10_DATA_CENTRE if name.startswith(akshare_reports.FILE) else DATA_CENTRE
    order = {"sortColumns": newest, "sortTypes": -1, "pageNumber": page, "pageSize": REPORT_ROWS}
    asked = {"reportName": name, "columns": "ALL", "filter": about, "source": "WEB", "client": "WEB"}
    answer = json.loads(_get(url, asked | order))
    if answer["result"] is None and answer["code"] == NOTHING_FOUND:
        return NO_PAGE
    return {name: answer["result"][name] for name in ("pages", "data")}


def _flow_page(symbol: str) -> list[Row]:
    """Lines of text, as Eastmoney sends days; no data for a code nobody has."""
    code, _, exchange = symbol.partition(".")
    params = {"lmt": 0, "klt": 101, "secid": f"{int(exchange == 'SH')}.{code}"}
    fields = ("f51", "f52")
    asked = {**params, "fields1": "f1,f2,f3,f7", "fields2": ",".join(fields)}
    told = json.loads(_get(FLOWS_URL, asked))["data"] or {}
    return [dict(zip(fields, line.split(","), strict=True)) for line in told.get("klines") or []]


def _steps(text: str) -> list[Step]:
    """Sina's `var name={"total":…,"data":[{"d":day,"f":factor},…]}`, with a comment after it."""
    told = json.loads(text.partition("=")[2].partition("\n")[0])
    return sorted((date.fromisoformat(step["d"]), float(step["f"])) for step in told["data"])


def _articles_page(params: Mapping[str, Any]) -> list[Row]:
    """JSONP: `name({...})`, with or without a semicolon."""
    text = _get(NEWS_URL, params, browser=True)
    told = json.loads(text[text.find("(") + 1 : text.rfind(")")])
    articles: list[Row] = told["result"].get("cmsArticleWebOld", [])
    return articles
