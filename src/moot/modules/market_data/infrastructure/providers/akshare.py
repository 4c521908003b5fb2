"""AKShare as a provider: A-shares from Eastmoney's pages, the lists from the exchanges, factors from Sina.

AKShare has no time-outs, takes an empty answer for a broken one, and drops an announcement's true time: what needs
those is asked of the same pages here, as AKShare asks it. What is missing in a row stays so, to be refused by name.
"""

import importlib
import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from types import ModuleType
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.spelling import infer, initials
from moot.modules.market_data.domain.trading_rules import board_of
from moot.modules.market_data.infrastructure.providers import outside, rows
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.shared.domain.symbol import Market, Symbol

AKSHARE = rows.Source("akshare", Market.CN)
FACTORS_URL = "https://finance.sina.com.cn/realstock/company/{symbol}/hfq.js"
NOTICES_URL = "https://np-anotice-stock.eastmoney.com/api/security/ann"
NOTICE_PAGE = "https://data.eastmoney.com/notices/detail/{code}/{art_code}.html"
NEWS_URL = "https://search-api-web.eastmoney.com/search/jsonp"
NEWS_REFERER = "https://so.eastmoney.com/news/s"
DATA_CENTRE = "https://datacenter-web.eastmoney.com/api/data/v1/get"
F10_DATA_CENTRE = "https://datacenter.eastmoney.com/securities/api/data/v1/get"
NOTHING_FOUND = 9201
"""The data centre's code for a question that is in order and has no answer."""
DAYS_BEFORE = timedelta(days=40)
"""Days asked for before the first one, for the close that its reference price rests on."""
A_PAGE = 100
"""Of announcements, and of articles."""
LOT = 100
TICK = 2
"""Decimals of a price; the exchanges round reference prices to them."""
PER_TEN_SHARES = 0.1
IMPLEMENTED = "实施分配"

Step = tuple[date, float]

BAR: rows.Columns = {
    "trade_date": "日期",
    "open": "开盘",
    "high": "最高",
    "low": "最低",
    "close": "收盘",
    "volume": ("成交量", LOT),
    "amount": "成交额",
}
VALUATION: rows.Columns = {
    "trade_date": "数据日期",
    "close": "当日收盘价",
    "total_mv": "总市值",
    "circ_mv": "流通市值",
    "pe": "PE(静)",
    "pe_ttm": "PE(TTM)",
    "pb": "市净率",
    "ps_ttm": "市销率",
}
REPORT: rows.Columns = {
    "period_end": "REPORT_DATE",
    "announced_on": "NOTICE_DATE",
    "gross_margin": "XSMLL",
    "netprofit_margin": "XSJLL",
    "roe_waa": "ROEJQ",
    "roic": "ROIC",
    "eps": "EPSJB",
    "bps": "BPS",
    "profit_dedt": "KCFJCXSYJLR",
    "ocfps": "MGJYXJJE",
    "current_ratio": "LD",
    "quick_ratio": "SD",
    "debt_to_assets": "ZCFZL",
    "invturn_days": "CHZZTS",
    "arturn_days": "YSZKZZTS",
    "assets_turn": "TOAZZL",
    "total_revenue": "TOTALOPERATEREVE",
    "net_profit": "PARENTNETPROFIT",
}
DIVIDEND: rows.Columns = {
    "period_end": "报告期",
    "record_date": "股权登记日",
    "ex_date": "除权除息日",
    "cash_per_share": ("现金分红-现金分红比例", PER_TEN_SHARES),
    "bonus_per_share": ("送转股份-送转总比例", PER_TEN_SHARES),
}


@dataclass(frozen=True)
class Listing:
    """One of the exchanges' lists, and what its columns are called."""

    function: str
    columns: rows.Columns
    params: Mapping[str, str] = field(default_factory=dict)


SHANGHAI = {"symbol": "证券代码", "name": "证券简称", "list_date": "上市日期"}
SHENZHEN = {"symbol": "A股代码", "name": "A股简称", "list_date": "A股上市日期", "industry": "所属行业"}
GONE = {"symbol": "公司代码", "name": "公司简称", "list_date": "上市日期", "delist_date": "暂停上市日期"}
LISTINGS = (
    Listing("stock_info_sh_name_code", SHANGHAI, {"symbol": "主板A股"}),
    Listing("stock_info_sh_name_code", SHANGHAI, {"symbol": "科创板"}),
    Listing("stock_info_sz_name_code", SHENZHEN, {"symbol": "A股列表"}),
    Listing("stock_info_bj_name_code", {**SHANGHAI, "industry": "所属行业"}),
    Listing("stock_info_sh_delist", GONE),
    Listing("stock_info_sz_delist", {**SHANGHAI, "delist_date": "终止上市日期"}),
)


def _series(name: str, function: str, column: str, page: str, dated: str = "月份") -> rows.Series:
    return rows.Series(name, function, column, f"https://data.eastmoney.com/cjsj/{page}.html", dated)


SERIES = (
    _series("pmi_manufacturing", "macro_china_pmi", "制造业-指数", "pmi"),
    _series("cpi_yoy", "macro_china_cpi", "全国-同比增长", "cpi"),
    _series("ppi_yoy", "macro_china_ppi", "当月同比增长", "ppi"),
    _series("m2_yoy", "macro_china_money_supply", "货币和准货币(M2)-同比增长", "hbgyl"),
    _series("lpr_1y", "macro_china_lpr", "LPR1Y", "globalRateLPR", "TRADE_DATE"),
)


def _settle(row: Row) -> Row | None:
    """A dividend that was carried out is known from the announcement of its dates; a plan is no dividend yet."""
    if row.get("方案进度") != IMPLEMENTED:
        return None
    planned, told, record_date, ex_date = (
        rows.read_day(row.get(name)) for name in ("预案公告日", "最新公告日期", "股权登记日", "除权除息日")
    )
    settled = isinstance(told, date) and isinstance(planned, date) and told > planned
    return {"announced_on": told if settled else record_date or ex_date or told}


@dataclass(frozen=True)
class Page:
    """A function that has all of a dataset for a symbol, by its code alone or as we spell it (`by_symbol`).

    `report` of the data centre tells whether it has nothing, or AKShare could not read what it had. `work_out` is
    what a row says beyond its columns; None leaves it out.
    """

    function: str
    columns: rows.Columns
    report: str
    by_symbol: bool = False
    work_out: Callable[[Row], Row | None] = lambda _: {}


PAGES: dict[Dataset[Any], Page] = {
    facts.VALUATIONS: Page(
        "stock_value_em",
        VALUATION,
        "RPT_VALUEANALYSIS_DET",
        work_out=lambda row: {} if row.get("流通市值") else {"circ_mv": None},
    ),
    facts.DIVIDENDS: Page("stock_fhps_detail_em", DIVIDEND, "RPT_SHAREBONUS_DET", work_out=_settle),
    facts.REPORTS: Page(  # figures as last corrected, under the day they were first announced
        "stock_financial_analysis_indicator_em", REPORT, "RPT_F10_FINANCE_MAINFINADATA", by_symbol=True
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
            **{dataset: partial(self._page, dataset) for dataset in PAGES},
        }

    async def _companies(self, *_: object) -> list[Row]:
        found: list[Row] = []
        for listing in LISTINGS:
            table = await self._table(listing.function, listing.params)
            found += [row for raw in table if (row := _company(listing, raw))]
        return found

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
        return list(_bars(symbol, days, factors))

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
        found = [_notice(symbol, row) for row in await self._notices(code, start, end)]
        return found + [_article(symbol, row) for row in await self._articles(code)]

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
    ) -> list[Row]:
        """The rows of an AKShare function, `None` for every missing value."""
        call = getattr(await outside.in_thread(self.library), function)
        fresh = getattr(call, "__wrapped__", call)  # past AKShare's cache, which outlives the day
        given = params or {}
        return await self.ask(function, given, lambda: rows.read_frame(fresh(**given)), has_nothing) or []

    async def _factors(self, symbol: str) -> list[Step]:
        """Cumulative adjustment factors by ex-date, oldest first. (AKShare would run this answer as code.)"""
        url = FACTORS_URL.format(symbol=symbol)
        return await self.ask("hfq.js", {"symbol": symbol}, lambda: _steps(_get(url, {}))) or []

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
        return (importlib.import_module("akshare.exceptions").AkshareException,), outside.MISREAD


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


def _bars(symbol: str, days: Sequence[Row], steps: Sequence[Step]) -> Iterator[Row]:
    """Eastmoney's raw days with Sina's factors. The reference price is the close before, moved by the factor's step;
    the first day of all takes it from its own change.
    """
    last: Row | None = None
    for row in days:
        factor = _factor(steps, rows.read_day(row.get("日期")))
        pre_close = _own_reference(row) if last is None else rows.reference_price(last, factor, TICK)
        last = AKSHARE.row(facts.BARS, BAR, row, symbol=symbol, pre_close=pre_close, adj_factor=factor)
        yield last


def _factor(steps: Sequence[Step], on: Any) -> float | None:
    """The factor in force on a day: the last step not after it."""
    past = bisect_right(steps, on, key=lambda step: step[0]) if isinstance(on, date) else 0
    return steps[past - 1][1] if past else None


def _own_reference(row: Row) -> float | None:
    close, change = row.get("收盘"), row.get("涨跌额")
    return None if close is None or change is None else round(close - change, TICK)


def _company(listing: Listing, row: Row) -> Row | None:
    """A company of the list; B shares stand in the same lists and are left out."""
    told = AKSHARE.row(facts.COMPANIES, listing.columns, row)
    symbol = infer(told.get("symbol", ""))
    if symbol is None:
        return None
    name = re.sub(r"\s", "", told.get("name", ""))
    board = board_of(Symbol.parse(symbol)) or ""
    return told | {"symbol": symbol, "name": name, "board": str(board), "pinyin": initials(name)}


def _notice(symbol: str, row: Row) -> Row:
    """Visible from `display_time` on, which is usually the evening before the day printed on it."""
    page = NOTICE_PAGE.format(code=symbol[:6], art_code=row.get("art_code"))
    return _item(
        "announcement", symbol, row.get("title"), page, row.get("display_time"), row.get("notice_date")
    )


def _article(symbol: str, row: Row) -> Row:
    title = re.sub(r"\(?</?em>\)?", "", str(row.get("title") or ""))
    return _item("news", symbol, title, row.get("url"), row.get("date"), row.get("date"))


def _item(kind: str, symbol: str, title: Any, url: Any, seen: Any, printed: Any) -> Row:
    """Known from the moment it was seen; where none is told, by the evening of the day printed on it."""
    known = AKSHARE.read_moment(seen) or AKSHARE.moment(rows.read_day(printed))
    told = {"kind": kind, "symbol": symbol, "title": title, "url": url, "source": AKSHARE.name}
    return told | rows.known_from(known)
