"""Yahoo Finance as a provider, through yfinance: US shares, their dividends, statements and news.

yfinance is asked beside the loop; what it swallows is told apart here: unknown, limited, broken. Yahoo's prices are
after all later splits, its quarters stand alone: both are undone. A bar is raw again, with a factor that starts at 1
on the first day of all. A report's flows are summed up from the start of the calendar year, as every other source has
them, and are absent where a quarter of the year is.
"""

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DIVIDENDS, NEWS, REPORTS, Company, Dataset
from moot.modules.market_data.domain.provider import screen
from moot.modules.market_data.infrastructure.providers import outside
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.modules.market_data.infrastructure.providers.rows import (
    Source,
    estimate_amount,
    known_from,
    statutory_deadline,
)
from moot.shared.domain.symbol import Market

T = TypeVar("T")
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
ARTICLES = 100
CHART_PATH = "/v8/finance/chart/"
UNKNOWN = 404


class YfinanceProvider(outside.LibrarySource):
    """Without a key. No list of companies and no history of valuations; a report counts as known from its deadline.

    The whole history of a share is one answer, and factors must not depend on the range asked for: it is read whole.
    """

    name = YAHOO.name
    market = Market.US
    pace = outside.Pace(calls=30, per_seconds=60, concurrency=2)

    def readers(self) -> dict[Dataset[Any], Reader]:
        return {
            BARS: self._bars,
            REPORTS: self._reports,
            DIVIDENDS: self._dividends,
            NEWS: self._news,
        }

    async def company(self, symbol: str) -> Company | None:
        """One company, by its symbol; nothing if Yahoo does not know it or not since when it trades."""
        info = await self._ask("info", symbol, lambda ticker: dict(ticker.info))
        rows = [company(symbol, info)] if info else []
        return next(iter(screen(COMPANIES, rows)), None)

    async def _bars(self, symbol: str, *_: object) -> list[Row]:
        return list(bars(symbol, await self._history(symbol)))

    async def _reports(self, symbol: str, *_: object) -> list[Row]:
        tables = await self._ask("statements", symbol, _statements)
        return list(reports(symbol, *tables)) if tables else []

    async def _dividends(self, symbol: str, *_: object) -> list[Row]:
        return list(dividends(symbol, await self._history(symbol)))

    async def _news(self, symbol: str, *_: object) -> list[Row]:
        """The newest articles, as far back as Yahoo keeps them."""
        found = await self._ask("news", symbol, lambda ticker: list(ticker.get_news(count=ARTICLES)))
        return [news(symbol, article) for article in found or []]

    async def _history(self, symbol: str) -> list[Row]:
        return await self._ask("history", symbol, _whole_history) or []

    async def _ask(self, operation: str, symbol: str, read: Callable[[Any], T]) -> T | None:
        """What `read` gets from the symbol's ticker; nothing for a symbol Yahoo does not know."""
        self._require_market(symbol)
        spelled = symbol.replace(".", "-")

        def ask() -> T | None:
            importlib.import_module(
                "yfinance.data"
            ).YfData.cache_get.cache_clear()  # it keeps failures as well
            try:
                return read(self.library().Ticker(spelled, session=self._session))
            except OSError as e:  # the network, unless Yahoo said plainly that there is no such symbol
                if getattr(getattr(e, "response", None), "status_code", None) == UNKNOWN:
                    return None
                raise

        return await self.ask(operation, {"symbol": spelled}, ask, lambda: self._is_unknown(spelled))

    def library(self) -> ModuleType:
        library = super().library()
        importlib.import_module("yfinance.config").YfConfig.debug.hide_exceptions = False
        return library

    def errors(self) -> outside.Errors:
        told = self.library().exceptions
        return (told.YFRateLimitError,), (told.YFException, *outside.MISREAD)

    def _is_unknown(self, spelled: str) -> bool:
        data, const = (importlib.import_module(f"yfinance.{name}") for name in ("data", "const"))
        url = f"{const._BASE_URL_}{CHART_PATH}{spelled}"
        asked = {"range": "1d", "interval": "1d"}
        try:
            answer = data.YfData(session=self._session).get(
                url, params=asked, timeout=outside.REQUEST_SECONDS
            )
        except self.library().exceptions.YFException:
            return False
        return bool(answer.status_code == UNKNOWN)

    @cached_property
    def _session(self) -> Any:
        return _strict_session()


def _whole_history(ticker: Any) -> list[Row]:
    frame = ticker.history(
        period="max",
        interval="1d",
        auto_adjust=False,
        actions=True,
        keepna=True,
        timeout=outside.REQUEST_SECONDS,
    )
    return _plain_history(frame)


def _statements(ticker: Any) -> tuple[Statements, Statements]:
    """Quarterly and annual statements."""
    readers = (ticker.get_income_stmt, ticker.get_balance_sheet, ticker.get_cash_flow)
    quarterly, annual = (
        _plain_statements(*(read(freq=frequency) for read in readers))
        for frequency in ("quarterly", "yearly")
    )
    return quarterly, annual


def _strict_session() -> Any:
    """A browser's session, as yfinance would make one, that takes no error page for an answer."""
    http = importlib.import_module("curl_cffi.requests")

    class StrictSession(http.Session):  # type: ignore[misc, name-defined]  # an optional library
        def request(self, *args: Any, **kwargs: Any) -> Any:
            answer = super().request(*args, **kwargs)
            if answer.status_code >= 500:
                raise http.exceptions.HTTPError(f"HTTP {answer.status_code}", 0, answer)
            return answer

    return StrictSession(impersonate="chrome")


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
        yield YAHOO.tell(BARS, {**told, "adj_factor": factor, **_restore_traded(row, later)})


def _restore_traded(row: Row, later: float) -> Row:
    prices = {ours: _times(row[theirs], later) for ours, theirs in PRICES.items()}
    traded = {**prices, "volume": None if row["Volume"] is None else round(row["Volume"] / later)}
    return {**traded, "amount": estimate_amount(traded)}


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


def _plain_history(frame: Any) -> list[Row]:
    """A price table as plain rows, `None` for every hole in it."""
    return [
        {"Date": index.date(), **{name: _plain(row[name]) for name in HISTORY}}
        for index, row in frame.iterrows()
    ]


def _plain_statements(*tables: Any) -> dict[date, dict[str, float]]:
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
