"""AKShare's rows in our words: units, days, times. What is missing stays missing, to be refused by name."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from moot.modules.market_data.domain.spelling import infer, initials
from moot.modules.market_data.domain.trading_rules import board_of
from moot.modules.market_data.infrastructure.providers import release_times
from moot.modules.market_data.infrastructure.providers.release_times import (
    ANNOUNCED_BY,
    MACRO_RELEASES,
    announcement_times,
    known_from,
    moment,
    of_day,
    statutory_deadline,
)
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

SOURCE = "akshare"
ZONE = TIME_ZONES[Market.CN]
LOT = 100
TICK = 2
"""Decimals of a price; the exchanges round reference prices to them."""
PER_TEN_SHARES = 10
IMPLEMENTED = "实施分配"
NOTICE_PAGE = "https://data.eastmoney.com/notices/detail/{code}/{art_code}.html"

Row = dict[str, Any]
Step = tuple[date, float]

VALUATION = {
    "close": "当日收盘价",
    "total_mv": "总市值",
    "circ_mv": "流通市值",
    "pe": "PE(静)",
    "pe_ttm": "PE(TTM)",
    "pb": "市净率",
    "ps_ttm": "市销率",
}
REPORT = {
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


@dataclass(frozen=True)
class Listing:
    """One of the exchanges' lists, and what its columns are called."""

    function: str
    code: str
    name: str
    listed: str
    params: Mapping[str, str] = field(default_factory=dict)
    industry: str = ""
    delisted: str = ""


LISTINGS = (
    Listing("stock_info_sh_name_code", "证券代码", "证券简称", "上市日期", {"symbol": "主板A股"}),
    Listing("stock_info_sh_name_code", "证券代码", "证券简称", "上市日期", {"symbol": "科创板"}),
    Listing(
        "stock_info_sz_name_code", "A股代码", "A股简称", "A股上市日期", {"symbol": "A股列表"}, "所属行业"
    ),
    Listing("stock_info_bj_name_code", "证券代码", "证券简称", "上市日期", industry="所属行业"),
    Listing("stock_info_sh_delist", "公司代码", "公司简称", "上市日期", delisted="暂停上市日期"),
    Listing("stock_info_sz_delist", "证券代码", "证券简称", "上市日期", delisted="终止上市日期"),
)


@dataclass(frozen=True)
class Series:
    """`column` of an AKShare function holds the figure; the release follows the series' timetable."""

    name: str
    function: str
    column: str
    page: str
    dated: str = "月份"


SERIES = (
    Series("pmi_manufacturing", "macro_china_pmi", "制造业-指数", "https://data.eastmoney.com/cjsj/pmi.html"),
    Series("cpi_yoy", "macro_china_cpi", "全国-同比增长", "https://data.eastmoney.com/cjsj/cpi.html"),
    Series("ppi_yoy", "macro_china_ppi", "当月同比增长", "https://data.eastmoney.com/cjsj/ppi.html"),
    Series(
        "m2_yoy",
        "macro_china_money_supply",
        "货币和准货币(M2)-同比增长",
        "https://data.eastmoney.com/cjsj/hbgyl.html",
    ),
    Series(
        "lpr_1y",
        "macro_china_lpr",
        "LPR1Y",
        "https://data.eastmoney.com/cjsj/globalRateLPR.html",
        "TRADE_DATE",
    ),
)


def bars(symbol: str, rows: Sequence[Row], steps: Sequence[Step]) -> Iterator[Row]:
    """Eastmoney's raw days with Sina's factors. The reference price is the close before, moved by the factor's step;
    the first day of all takes it from its own change.
    """
    last: Row | None = None
    for row in rows:
        on = day(row["日期"])
        factor = _factor(steps, on)
        pre_close = _own_reference(row) if last is None else _reference(last, factor)
        last = _bar(symbol, on, row, pre_close, factor)
        yield last


def _factor(steps: Sequence[Step], on: date | None) -> float | None:
    """The factor in force on a day: the last step not after it."""
    past = bisect_right(steps, on, key=lambda step: step[0]) if on else 0
    return steps[past - 1][1] if past else None


def _reference(last: Row, factor: float | None) -> float | None:
    if last["close"] is None or last["adj_factor"] is None or factor is None:
        return None
    return float(round(last["close"] * last["adj_factor"] / factor, TICK))


def _own_reference(row: Row) -> float | None:
    close, change = row["收盘"], row["涨跌额"]
    return None if close is None or change is None else round(close - change, TICK)


def _bar(symbol: str, on: date | None, row: Row, pre_close: float | None, factor: float | None) -> Row:
    lots = row["成交量"]
    return {
        **of_day(symbol, on, Market.CN, SOURCE),
        "open": row["开盘"],
        "high": row["最高"],
        "low": row["最低"],
        "close": row["收盘"],
        "pre_close": pre_close,
        "volume": None if lots is None else round(lots * LOT),
        "amount": row["成交额"],
        "adj_factor": factor,
    }


def valuation(symbol: str, row: Row) -> Row:
    figures = {ours: row[theirs] for ours, theirs in VALUATION.items()}
    on = of_day(symbol, day(row["数据日期"]), Market.CN, SOURCE)
    return {**on, **figures, "circ_mv": figures["circ_mv"] or None}


def report(symbol: str, row: Row) -> Row:
    """Eastmoney keeps the figures as last corrected, under the day they were first announced."""
    period_end = day(row["REPORT_DATE"])
    figures = {ours: row.get(theirs) for ours, theirs in REPORT.items()}
    identity = {"symbol": symbol, "period_end": period_end, "source": SOURCE}
    if period_end is None:
        return identity | figures
    announced = day(row.get("NOTICE_DATE")) or statutory_deadline(period_end, Market.CN)
    return identity | figures | announcement_times(period_end, announced, Market.CN)


def dividend(symbol: str, row: Row) -> Row | None:
    """One that was carried out, known from the announcement of its dates; a plan is no dividend yet."""
    if row["方案进度"] != IMPLEMENTED:
        return None
    planned, told = day(row["预案公告日"]), day(row["最新公告日期"])
    record_date, ex_date = day(row["股权登记日"]), day(row["除权除息日"])
    known = told if told and planned and told > planned else record_date or ex_date or told
    return {
        "symbol": symbol,
        "period_end": day(row["报告期"]),
        "announced_on": known,
        "record_date": record_date,
        "ex_date": ex_date,
        "cash_per_share": (row["现金分红-现金分红比例"] or 0) / PER_TEN_SHARES,
        "bonus_per_share": (row["送转股份-送转总比例"] or 0) / PER_TEN_SHARES,
        "source": SOURCE,
        **known_from(_evening(known)),
    }


def company(listing: Listing, row: Row) -> Row | None:
    """A company of the list; B shares stand in the same lists and are left out."""
    symbol = infer(str(row[listing.code]))
    if symbol is None:
        return None
    name = re.sub(r"\s", "", str(row[listing.name]))
    board = board_of(Symbol.parse(symbol))
    return {
        "symbol": symbol,
        "name": name,
        "name_en": "",
        "industry": (row[listing.industry] if listing.industry else None) or "",
        "industry_en": "",
        "list_date": day(row[listing.listed]),
        "delist_date": day(row[listing.delisted]) if listing.delisted else None,
        "board": board.value if board else "",
        "pinyin": initials(name),
        "source": SOURCE,
    }


def observations(series: Series, rows: Iterable[Row]) -> Iterator[Row]:
    monthly = MACRO_RELEASES[series.name].monthly
    for row in rows:
        value, dated = row[series.column], row[series.dated]
        if value is not None or monthly:  # without a value, it is a day on which this rate was not quoted
            period = _month(dated) if monthly else day(dated)
            yield release_times.observation(series.name, period, value, series.page, SOURCE)


def notice(symbol: str, row: Row) -> Row:
    """Visible from `display_time` on, which is usually the evening before the day printed on it."""
    seen = _clock(row.get("display_time"))
    printed = day(row.get("notice_date"))
    known = seen or _evening(printed)
    page = NOTICE_PAGE.format(code=symbol[:6], art_code=row.get("art_code"))
    return _news("announcement", symbol, row.get("title"), page, known)


def article(symbol: str, row: Row) -> Row:
    title = re.sub(r"\(?</?em>\)?", "", str(row.get("title") or ""))
    return _news("news", symbol, title, row.get("url"), _clock(row.get("date")))


def _news(kind: str, symbol: str, title: Any, url: Any, known: datetime | None) -> Row:
    told = {"kind": kind, "symbol": symbol, "title": title, "url": url, "source": SOURCE}
    return told | known_from(known)


def day(raw: Any) -> date | None:
    """A calendar day out of a date, a time or their usual spellings."""
    if isinstance(raw, datetime):
        return raw.date()
    if raw is None or isinstance(raw, date):
        return raw
    try:
        return date.fromisoformat(str(raw)[:10])
    except ValueError:
        return None


def _clock(raw: Any) -> datetime | None:
    """Beijing time, to the second or with milliseconds after a colon, as UTC."""
    for spelling in ("%Y-%m-%d %H:%M:%S:%f", "%Y-%m-%d %H:%M:%S"):
        try:
            return datetime.strptime(str(raw), spelling).replace(tzinfo=ZONE).astimezone(UTC)
        except ValueError:
            continue
    return None


def _evening(on: date | None) -> datetime | None:
    return moment(on, ANNOUNCED_BY, Market.CN) if on else None


def _month(raw: Any) -> date | None:
    found = re.match(r"(\d{4})年(\d{1,2})月", str(raw))
    return date(int(found[1]), int(found[2]), 1) if found else None
