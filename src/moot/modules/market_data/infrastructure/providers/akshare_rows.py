"""What AKShare reads in our words: which function has what of whom, its columns and units (in `akshare.toml`).

What is missing in a row stays so, to be refused by name.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.spelling import infer, initials
from moot.modules.market_data.domain.trading_rules import board_of
from moot.modules.market_data.infrastructure.providers import outside, rows
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.shared.domain.symbol import Market, Symbol

AKSHARE = rows.Source("akshare", Market.CN)
COLUMNS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("akshare.toml").read_text(encoding="utf-8"))
ENGLISH, CHINESE = COLUMNS["english"], COLUMNS["chinese"]
SINA, TENCENT, SHANGHAI, SHENZHEN, BEIJING = "sina", "tencent", "sse", "szse", "bse"
"""The hosts beside Eastmoney."""
NOTICE_PAGE = "https://data.eastmoney.com/notices/detail/{code}/{art_code}.html"
DAYS_BEFORE = timedelta(days=40)
"""Days asked for before the first one, for the close that its reference price rests on."""
LOT = 100
TICK = 2
"""Decimals of a price; the exchanges round reference prices to them."""

Step = tuple[date, float]


@dataclass(frozen=True)
class Quotes:
    """Where days can be had: the code with or without its exchange, days as `days` formats them or whole (None)."""

    function: str
    columns: rows.Columns
    days: str | None = "%Y%m%d"
    host: str = ""
    prefixed: bool = True
    more: dict[str, Any] = field(default_factory=dict)

    def ask(self, symbol: str, start: date, end: date) -> Row:
        code, _, exchange = symbol.lower().partition(".")
        asked = {"symbol": f"{exchange}{code}" if self.prefixed else code.upper()}
        if self.days:
            asked |= {"start_date": start.strftime(self.days), "end_date": end.strftime(self.days)}
        return asked | self.more


IN_TIME = {"timeout": outside.REQUEST_SECONDS}
QUOTES = (
    Quotes("stock_zh_a_hist", CHINESE, prefixed=False, more={"period": "daily", "adjust": "", **IN_TIME}),
    Quotes("stock_zh_a_daily", ENGLISH, None, SINA),
    Quotes("stock_zh_a_hist_tx", ENGLISH, "%Y-%m-%d", TENCENT, more=IN_TIME),
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

    def __str__(self) -> str:
        return " ".join((self.function, *self.params.values()))


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


RENAMED = Listing("stock_info_sz_change_name", {}, SHENZHEN, {"symbol": "简称变更"})


def company(
    listing: Listing, row: Row, renamed: Mapping[str, list[Row]], industries: Mapping[str, Any]
) -> Row | None:
    """A company of the list; B shares stand in the same lists and are left out.

    `renamed`, oldest first, and `industries` are by code.
    """
    told = AKSHARE.row(facts.COMPANIES, listing.columns, row)
    symbol = infer(told.get("symbol", ""))
    if symbol is None:
        return None
    code, name = symbol[:6], re.sub(r"\s", "", told.get("name", ""))
    return {
        **told,
        "symbol": symbol,
        "name": name,
        "board": str(board_of(Symbol.parse(symbol)) or ""),
        "pinyin": initials(name),
        "industry": industries.get(code) or told["industry"],
        **_names(renamed.get(code, []), told.get("list_date"), name),
    }


def _names(changes: Sequence[Row], listed: Any, name: str) -> Row:
    """Since when it was called what, and the names it has no longer."""
    if not changes or not isinstance(listed, date):
        return {}
    since = [
        (changes[0].get("变更前简称"), listed),
        *((row.get("变更后简称"), row.get("变更日期")) for row in changes),
    ]
    names = [{"name": re.sub(r"\s", "", str(called)), "start": day} for called, day in since]
    former = dict.fromkeys(each["name"] for each in names if each["name"] != name)
    return {"names": names, "aliases": list(former)}


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
    seen, printed = row.get("display_time"), row.get("notice_date")
    return _item("announcement", symbol, row.get("title"), page, seen, printed)


def article(symbol: str, row: Row) -> Row:
    title = re.sub(r"\(?</?em>\)?", "", str(row.get("title") or ""))
    return _item("news", symbol, title, row.get("url"), row.get("date"), row.get("date"))


def _item(kind: str, symbol: str, title: Any, url: Any, seen: Any, printed: Any) -> Row:
    """Known from the moment it was seen; where none is told, by the evening of the day printed on it."""
    known = AKSHARE.read_moment(seen) or AKSHARE.moment(rows.read_day(printed))
    told = {"kind": kind, "symbol": symbol, "title": title, "url": url, "source": AKSHARE.name}
    return told | rows.known_from(known)


INDEX_QUOTES = (
    Quotes("stock_zh_index_daily_em", {**ENGLISH, "volume": ("volume", LOT)}),
    Quotes("stock_zh_index_daily", ENGLISH, None, SINA),  # without amounts
)
INDUSTRY_QUOTES = (Quotes("stock_board_industry_hist_em", CHINESE, prefixed=False),)


def index_bars(columns: rows.Columns, days: Sequence[Row], **named: Any) -> Iterator[Row]:
    """The close before is that of the day before: the first day is there for it alone."""
    before: Any = None
    for row in days:
        told = AKSHARE.row(facts.INDEX_BARS, columns, row, **named)
        if before is not None:
            yield {**told, "pre_close": before}
        before = told.get("close", before)
