"""What AKShare reads in our words: which page has what, its columns, units and times.

What is missing in a row stays so, to be refused by name. Eastmoney counts volume in lots, Sina and Tencent in shares;
the data centre's dates are days, and what it dates is out by the evening of that day.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.spelling import infer, initials
from moot.modules.market_data.domain.trading_rules import board_of
from moot.modules.market_data.infrastructure.providers import outside, rows
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.shared.domain.symbol import Market, Symbol

AKSHARE = rows.Source("akshare", Market.CN)
SINA, TENCENT, SHANGHAI, SHENZHEN, BEIJING = "sina", "tencent", "sse", "szse", "bse"
"""The hosts beside Eastmoney."""
NOTICE_PAGE = "https://data.eastmoney.com/notices/detail/{code}/{art_code}.html"
DAYS_BEFORE = timedelta(days=40)
"""Days asked for before the first one, for the close that its reference price rests on."""
LOT, TEN_THOUSAND = 100, 10_000
TICK = 2
"""Decimals of a price; the exchanges round reference prices to them."""
PER_TEN_SHARES = 0.1
IMPLEMENTED = "实施分配"

Step = tuple[date, float]
WorkOut = Callable[[Row], Row | None]
"""What a row says beyond its columns; None leaves it out."""


@dataclass(frozen=True)
class Quotes:
    """Where the days of a share can be had: `ask` puts code, exchange and days as that host wants them."""

    function: str
    columns: rows.Columns
    ask: Callable[[str, str, date, date], Row]
    host: str = ""


ENGLISH = {name: name for name in ("open", "high", "low", "close", "volume", "amount")} | {
    "trade_date": "date"
}
CHINESE: rows.Columns = {
    "trade_date": "日期",
    "open": "开盘",
    "high": "最高",
    "low": "最低",
    "close": "收盘",
    "volume": ("成交量", LOT),
    "amount": "成交额",
}
QUOTES = (
    Quotes(
        "stock_zh_a_hist",
        CHINESE,
        lambda code, _, start, end: {
            "symbol": code,
            "period": "daily",
            "start_date": f"{start:%Y%m%d}",
            "end_date": f"{end:%Y%m%d}",
            "adjust": "",
            "timeout": outside.REQUEST_SECONDS,
        },
    ),
    Quotes(  # the whole history is one answer
        "stock_zh_a_daily", ENGLISH, lambda code, exchange, *_: {"symbol": f"{exchange}{code}"}, SINA
    ),
    Quotes(
        "stock_zh_a_hist_tx",
        ENGLISH,
        lambda code, exchange, start, end: {
            "symbol": f"{exchange}{code}",
            "start_date": start.isoformat(),
            "end_date": end.isoformat(),
            "timeout": outside.REQUEST_SECONDS,
        },
        TENCENT,
    ),
)
"""In this order, until one answers."""


def bars(symbol: str, columns: rows.Columns, days: Sequence[Row], steps: Sequence[Step]) -> Iterator[Row]:
    """Raw days with Sina's factors. The reference price is the close before, moved by the factor's step; the first
    day of all takes it from its own change, where that is told.
    """
    last: Row | None = None
    for row in days:
        told = AKSHARE.row(facts.BARS, columns, row, symbol=symbol)
        factor = _factor(steps, told.get("trade_date"))
        pre_close = _own_reference(row) if last is None else rows.reference_price(last, factor, TICK)
        last = {**told, **_in_shares(told), "pre_close": pre_close, "adj_factor": factor}
        yield last


def _in_shares(told: Row) -> Row:
    """AKShare takes Tencent's shares of Shenzhen for indexes, and leaves them in lots: their amount tells."""
    volume, amount, high = (told.get(name) or 0 for name in ("volume", "amount", "high"))
    lots = volume and isinstance(high, float) and amount / volume > high * LOT / 2
    return {"volume": volume * LOT} if lots else {}


def _factor(steps: Sequence[Step], on: Any) -> float | None:
    """The factor in force on a day: the last step not after it."""
    past = bisect_right(steps, on, key=lambda step: step[0]) if isinstance(on, date) else 0
    return steps[past - 1][1] if past else None


def _own_reference(row: Row) -> float | None:
    close, change = row.get("收盘"), row.get("涨跌额")
    return None if close is None or change is None else round(close - change, TICK)


@dataclass(frozen=True)
class Listing:
    """One of the exchanges' lists, and what its columns are called."""

    function: str
    columns: rows.Columns
    host: str
    params: Mapping[str, str] = field(default_factory=dict)


OF_SHANGHAI = {"symbol": "证券代码", "name": "证券简称", "list_date": "上市日期"}
OF_SHENZHEN = {"symbol": "A股代码", "name": "A股简称", "list_date": "A股上市日期", "industry": "所属行业"}
GONE = {"symbol": "公司代码", "name": "公司简称", "list_date": "上市日期", "delist_date": "暂停上市日期"}
LISTINGS = (
    Listing("stock_info_sh_name_code", OF_SHANGHAI, SHANGHAI, {"symbol": "主板A股"}),
    Listing("stock_info_sh_name_code", OF_SHANGHAI, SHANGHAI, {"symbol": "科创板"}),
    Listing("stock_info_sz_name_code", OF_SHENZHEN, SHENZHEN, {"symbol": "A股列表"}),
    Listing("stock_info_bj_name_code", {**OF_SHANGHAI, "industry": "所属行业"}, BEIJING),
    Listing("stock_info_sh_delist", GONE, SHANGHAI),
    Listing("stock_info_sz_delist", {**OF_SHANGHAI, "delist_date": "终止上市日期"}, SHENZHEN),
)


def company(listing: Listing, row: Row) -> Row | None:
    """A company of the list; B shares stand in the same lists and are left out."""
    told = AKSHARE.row(facts.COMPANIES, listing.columns, row)
    symbol = infer(told.get("symbol", ""))
    if symbol is None:
        return None
    name = re.sub(r"\s", "", told.get("name", ""))
    board = board_of(Symbol.parse(symbol)) or ""
    return told | {"symbol": symbol, "name": name, "board": str(board), "pinyin": initials(name)}


def _series(name: str, function: str, column: str, page: str, dated: str = "月份") -> rows.Series:
    return rows.Series(name, function, column, f"https://data.eastmoney.com/cjsj/{page}.html", dated)


SERIES = (
    _series("pmi_manufacturing", "macro_china_pmi", "制造业-指数", "pmi"),
    _series("cpi_yoy", "macro_china_cpi", "全国-同比增长", "cpi"),
    _series("ppi_yoy", "macro_china_ppi", "当月同比增长", "ppi"),
    _series("m2_yoy", "macro_china_money_supply", "货币和准货币(M2)-同比增长", "hbgyl"),
    _series("lpr_1y", "macro_china_lpr", "LPR1Y", "globalRateLPR", "TRADE_DATE"),
)


def notice(symbol: str, row: Row) -> Row:
    """Visible from `display_time` on, which is usually the evening before the day printed on it."""
    page = NOTICE_PAGE.format(code=symbol[:6], art_code=row.get("art_code"))
    return _item(
        "announcement", symbol, row.get("title"), page, row.get("display_time"), row.get("notice_date")
    )


def article(symbol: str, row: Row) -> Row:
    title = re.sub(r"\(?</?em>\)?", "", str(row.get("title") or ""))
    return _item("news", symbol, title, row.get("url"), row.get("date"), row.get("date"))


def _item(kind: str, symbol: str, title: Any, url: Any, seen: Any, printed: Any) -> Row:
    """Known from the moment it was seen; where none is told, by the evening of the day printed on it."""
    known = AKSHARE.read_moment(seen) or AKSHARE.moment(rows.read_day(printed))
    told = {"kind": kind, "symbol": symbol, "title": title, "url": url, "source": AKSHARE.name}
    return told | rows.known_from(known)


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
    "total_revenue_ps": "PER_TOI",
    "fcff": "FCFF_BACK",
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

    `report` of the data centre tells whether it has nothing, or AKShare could not read what it had.
    """

    function: str
    columns: rows.Columns
    report: str
    by_symbol: bool = False
    work_out: WorkOut = lambda _: {}


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
