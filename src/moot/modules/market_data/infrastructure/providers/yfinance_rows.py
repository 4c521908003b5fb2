"""Yahoo's tables in our words. Its prices are after all later splits, its quarters stand alone: both are undone.

A bar is raw again, with a factor that starts at 1 on the first day of all. A report's flows are summed up from the
start of the calendar year, as every other source has them, and are absent where a quarter of the year is.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DIVIDENDS, NEWS, REPORTS
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.rows import Source, known_from, statutory_deadline
from moot.shared.domain.symbol import Market

Lines = Mapping[str, float]
Statements = Mapping[date, Lines]
"""By the last day of the period: the lines of all statements together."""
YAHOO = Source("yfinance", Market.US)
OPENING = time(9, 30)
CENTS = 4
PRICES = {"open": "Open", "high": "High", "low": "Low", "close": "Close"}
HISTORY = (*PRICES.values(), "Volume", "Dividends", "Stock Splits")
FLOWS = {
    "total_revenue": "TotalRevenue",
    "operate_profit": "OperatingIncome",
    "net_profit": "NetIncome",
    "eps": "BasicEPS",
    "n_cashflow_act": "OperatingCashFlow",
    "gross_profit": "GrossProfit",
    "capex": "CapitalExpenditure",
}
STOCKS = {
    "total_assets": "TotalAssets",
    "total_liab": "TotalLiabilitiesNetMinorityInterest",
    "equity": "StockholdersEquity",
    "interestdebt": "TotalDebt",
    "netdebt": "NetDebt",
}


def bars(symbol: str, history: list[Row]) -> Iterator[Row]:
    """`before` is the last close there was, on today's shares."""
    factor: float = 1.0
    before: float | None = None
    for row, later in zip(history, _later_splits(history), strict=True):
        paid = row["Dividends"] or 0.0
        reference = None if before is None else before - paid
        if before is not None and reference is not None and reference > 0:
            factor *= before / reference
        factor *= row["Stock Splits"] or 1.0
        before = row["Close"] if row["Close"] is not None else before
        told = {"symbol": symbol, "trade_date": row["Date"], "pre_close": _times(reference, later)}
        yield YAHOO.tell(BARS, {**told, "adj_factor": factor, **_traded(row, later)})


def _traded(row: Row, later: float) -> Row:
    """Yahoo has no traded amount: it is volume times the mean of high, low and close."""
    prices = {ours: _times(row[theirs], later) for ours, theirs in PRICES.items()}
    volume = None if row["Volume"] is None else round(row["Volume"] / later)
    known = [price for name, price in prices.items() if name != "open" and price is not None]
    amount = volume * sum(known) / 3 if volume is not None and len(known) == 3 else None
    return {**prices, "volume": volume, "amount": amount}


def dividends(symbol: str, history: list[Row]) -> Iterator[Row]:
    """Yahoo tells neither period nor announcement: both are taken to be the ex-date, when at last it was known."""
    for row, later in zip(history, _later_splits(history), strict=True):
        split, paid = row["Stock Splits"] or 1.0, row["Dividends"] or 0.0
        if split == 1.0 and not paid:
            continue
        payout = {"cash_per_share": round(paid * later, CENTS + 2), "bonus_per_share": split - 1.0}
        days = dict.fromkeys(("period_end", "announced_on", "ex_date"), row["Date"])
        times = known_from(YAHOO.moment(row["Date"], OPENING))
        yield YAHOO.tell(DIVIDENDS, {"symbol": symbol, **days, **payout, **times})


def reports(symbol: str, quarterly: Statements, annual: Statements) -> Iterator[Row]:
    """One report a quarter, and older full years where the year is the calendar's."""
    older = {end: lines for end, lines in annual.items() if _quarter(end)[1] == 4 and end not in quarterly}
    every = {**older, **quarterly}
    for end, lines in sorted(every.items()):
        whole_year = annual.get(end) if _quarter(end)[1] == 4 else None
        sums = _pick(whole_year, FLOWS) if whole_year else _so_far(end, quarterly)
        opening = next((lines for e, lines in every.items() if _quarter(e) == (end.year - 1, 4)), {})
        deadline = statutory_deadline(end, Market.US, annual=end in annual)
        told = {"symbol": symbol, "period_end": end, "announced_on": deadline}
        yield YAHOO.tell(REPORTS, {**told, **_figures(lines, sums, opening)})


def news(symbol: str, article: Row) -> Row:
    content = article.get("content") or {}
    page = content.get("canonicalUrl") or content.get("clickThroughUrl") or {}
    title = content.get("title")
    item = {"kind": "news", "symbol": symbol, "title": title, "title_en": title, "url": page.get("url")}
    return YAHOO.tell(NEWS, {**item, **known_from(YAHOO.read_moment(content.get("pubDate")))})


def company(symbol: str, info: Row) -> Row:
    name = info.get("longName") or info.get("shortName")
    first = info.get("firstTradeDateMilliseconds")
    industry = info.get("industry") or ""
    listed = None if first is None else datetime.fromtimestamp(first / 1000, UTC).date()
    names = {"name": name, "name_en": name, "industry": industry, "industry_en": industry}
    return YAHOO.tell(COMPANIES, {"symbol": symbol, "list_date": listed, **names})


def _figures(lines: Lines, sums: Mapping[str, float], opening: Lines) -> Row:
    """The indicators, each from lines that are there."""
    stocks = _pick(lines, STOCKS)
    shares, equity, revenue = (
        lines.get("OrdinarySharesNumber"),
        stocks.get("equity"),
        sums.get("total_revenue"),
    )
    assets, owed = lines.get("CurrentAssets"), lines.get("CurrentLiabilities")
    profit, before = sums.get("net_profit"), opening.get("StockholdersEquity")
    mean = (before + equity) / 2 if before is not None and equity is not None else None
    capex = sums.get("capex")
    return {
        **{name: value for name, value in sums.items() if name != "gross_profit"},
        **stocks,
        "capex": None if capex is None else -capex,
        "gross_margin": _ratio(sums.get("gross_profit"), revenue, 100),
        "netprofit_margin": _ratio(profit, revenue, 100),
        "roe_waa": _ratio(profit, mean, 100),
        "bps": _ratio(equity, shares),
        "ocfps": _ratio(sums.get("n_cashflow_act"), shares),
        "total_revenue_ps": _ratio(revenue, shares),
        "current_ratio": _ratio(assets, owed),
        "quick_ratio": _ratio(None if assets is None else assets - lines.get("Inventory", 0.0), owed),
        "debt_to_assets": _ratio(stocks.get("total_liab"), stocks.get("total_assets"), 100),
    }


def _so_far(end: date, quarterly: Statements) -> dict[str, float]:
    """The flows of the calendar year up to `end`; a line that one of its quarters lacks has no sum."""
    year, quarter = _quarter(end)
    mine = [lines for e, lines in quarterly.items() if _quarter(e)[0] == year and e <= end]
    if len(mine) != quarter:
        return {}
    each = [_pick(lines, FLOWS) for lines in mine]
    return {
        name: sum(flows[name] for flows in each) for name in FLOWS if all(name in flows for flows in each)
    }


def _pick(lines: Lines, columns: Mapping[str, str]) -> dict[str, float]:
    return {ours: lines[theirs] for ours, theirs in columns.items() if theirs in lines}


def _later_splits(history: list[Row]) -> list[float]:
    """For each day, how many shares of today one share of that day became."""
    ratios, ratio = [], 1.0
    for row in reversed(history):
        ratios.append(ratio)
        ratio *= row["Stock Splits"] or 1.0
    return ratios[::-1]


def _quarter(day: date) -> tuple[int, int]:
    return day.year, (day.month - 1) // 3 + 1


def _times(value: float | None, by: float) -> float | None:
    return None if value is None else round(value * by, CENTS)


def _ratio(part: float | None, whole: float | None, times: int = 1) -> float | None:
    return None if part is None or not whole else times * (part / whole)


def plain_history(frame: Any) -> list[Row]:
    """A price table as plain rows, `None` for every hole in it."""
    return [
        {"Date": index.date(), **{name: _plain(row[name]) for name in HISTORY}}
        for index, row in frame.iterrows()
    ]


def plain_statements(*tables: Any) -> dict[date, dict[str, float]]:
    """Statements of one frequency, merged by period."""
    merged: dict[date, dict[str, float]] = {}
    for table in tables:
        for end in table.columns:
            lines = {line: _plain(value) for line, value in table[end].items()}
            there = {line: value for line, value in lines.items() if value is not None}
            if there:
                merged.setdefault(end.date(), {}).update(there)
    return merged


def _plain(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number
