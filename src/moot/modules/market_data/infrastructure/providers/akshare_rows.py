"""AKShare's rows in our words: which columns, in which units. What is missing stays so, to be refused by name."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DIVIDENDS, REPORTS, VALUATIONS
from moot.modules.market_data.domain.spelling import infer, initials
from moot.modules.market_data.domain.trading_rules import board_of
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.rows import (
    Columns,
    Series,
    Source,
    known_from,
    read_day,
    reference_price,
)
from moot.shared.domain.symbol import Market, Symbol

AKSHARE = Source("akshare", Market.CN)
LOT = 100
TICK = 2
"""Decimals of a price; the exchanges round reference prices to them."""
PER_TEN_SHARES = 0.1
IMPLEMENTED = "实施分配"
NOTICE_PAGE = "https://data.eastmoney.com/notices/detail/{code}/{art_code}.html"

Step = tuple[date, float]

BAR: Columns = {
    "trade_date": "日期",
    "open": "开盘",
    "high": "最高",
    "low": "最低",
    "close": "收盘",
    "volume": ("成交量", LOT),
    "amount": "成交额",
}
VALUATION: Columns = {
    "trade_date": "数据日期",
    "close": "当日收盘价",
    "total_mv": "总市值",
    "circ_mv": "流通市值",
    "pe": "PE(静)",
    "pe_ttm": "PE(TTM)",
    "pb": "市净率",
    "ps_ttm": "市销率",
}
REPORT: Columns = {
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
DIVIDEND: Columns = {
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
    columns: Columns
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


def _series(name: str, function: str, column: str, page: str, dated: str = "月份") -> Series:
    return Series(name, function, column, f"https://data.eastmoney.com/cjsj/{page}.html", dated)


SERIES = (
    _series("pmi_manufacturing", "macro_china_pmi", "制造业-指数", "pmi"),
    _series("cpi_yoy", "macro_china_cpi", "全国-同比增长", "cpi"),
    _series("ppi_yoy", "macro_china_ppi", "当月同比增长", "ppi"),
    _series("m2_yoy", "macro_china_money_supply", "货币和准货币(M2)-同比增长", "hbgyl"),
    _series("lpr_1y", "macro_china_lpr", "LPR1Y", "globalRateLPR", "TRADE_DATE"),
)


def bars(symbol: str, rows: Sequence[Row], steps: Sequence[Step]) -> Iterator[Row]:
    """Eastmoney's raw days with Sina's factors. The reference price is the close before, moved by the factor's step;
    the first day of all takes it from its own change.
    """
    last: Row | None = None
    for row in rows:
        factor = _factor(steps, read_day(row.get("日期")))
        pre_close = _own_reference(row) if last is None else reference_price(last, factor, TICK)
        last = AKSHARE.row(BARS, BAR, row, symbol=symbol, pre_close=pre_close, adj_factor=factor)
        yield last


def _factor(steps: Sequence[Step], on: Any) -> float | None:
    """The factor in force on a day: the last step not after it."""
    past = bisect_right(steps, on, key=lambda step: step[0]) if isinstance(on, date) else 0
    return steps[past - 1][1] if past else None


def _own_reference(row: Row) -> float | None:
    close, change = row.get("收盘"), row.get("涨跌额")
    return None if close is None or change is None else round(close - change, TICK)


def valuation(symbol: str, row: Row) -> Row:
    told = AKSHARE.row(VALUATIONS, VALUATION, row, symbol=symbol)
    return told | {"circ_mv": told.get("circ_mv") or None}


def report(symbol: str, row: Row) -> Row:
    """Eastmoney keeps the figures as last corrected, under the day they were first announced."""
    return AKSHARE.row(REPORTS, REPORT, row, symbol=symbol)


def dividend(symbol: str, row: Row) -> Row | None:
    """One that was carried out, known from the announcement of its dates; a plan is no dividend yet."""
    if row.get("方案进度") != IMPLEMENTED:
        return None
    planned, told, record_date, ex_date = (
        read_day(row.get(name)) for name in ("预案公告日", "最新公告日期", "股权登记日", "除权除息日")
    )
    settled = isinstance(told, date) and isinstance(planned, date) and told > planned
    known = told if settled else record_date or ex_date or told
    return AKSHARE.row(DIVIDENDS, DIVIDEND, row, symbol=symbol, announced_on=known)


def company(listing: Listing, row: Row) -> Row | None:
    """A company of the list; B shares stand in the same lists and are left out."""
    told = AKSHARE.row(COMPANIES, listing.columns, row)
    symbol = infer(told.get("symbol", ""))
    if symbol is None:
        return None
    name = re.sub(r"\s", "", told.get("name", ""))
    board = board_of(Symbol.parse(symbol))
    return told | {
        "symbol": symbol,
        "name": name,
        "board": board.value if board else "",
        "pinyin": initials(name),
    }


def notice(symbol: str, row: Row) -> Row:
    """Visible from `display_time` on, which is usually the evening before the day printed on it."""
    seen = AKSHARE.read_moment(row.get("display_time"))
    page = NOTICE_PAGE.format(code=symbol[:6], art_code=row.get("art_code"))
    return _news("announcement", symbol, row.get("title"), page, seen or read_day(row.get("notice_date")))


def article(symbol: str, row: Row) -> Row:
    title = re.sub(r"\(?</?em>\)?", "", str(row.get("title") or ""))
    seen = AKSHARE.read_moment(row.get("date"))
    return _news("news", symbol, title, row.get("url"), seen or read_day(row.get("date")))


def _news(kind: str, symbol: str, title: Any, url: Any, known: Any) -> Row:
    """`known` is a moment, or a day by whose evening it was out."""
    told = {"kind": kind, "symbol": symbol, "title": title, "url": url, "source": AKSHARE.name}
    return told | known_from(known if isinstance(known, datetime) else AKSHARE.moment(known))
