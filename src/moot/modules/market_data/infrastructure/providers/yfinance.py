"""Yahoo Finance as a provider, through yfinance: US shares, their dividends, statements and news.

yfinance is asked beside the loop; what it swallows is told apart here: unknown, limited, broken. Yahoo's prices are
after all later splits, its quarters stand alone: both are undone. A bar is raw again, with a factor that starts at 1
on the first day of all. A report's flows are summed up from the start of the calendar year, as every other source has
them, and are absent where a quarter of the year is.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from functools import cached_property, partial
from itertools import accumulate
from operator import mul
from types import ModuleType
from typing import Any, TypeVar

from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DEEP,
    DIVIDENDS,
    MACRO,
    NEWS,
    REPORTS,
    VALUATIONS,
    Dataset,
)
from moot.modules.market_data.domain.provider import screen
from moot.modules.market_data.infrastructure.providers import outside, rows
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.shared.domain.facts import Company, quarter_of
from moot.shared.domain.symbol import Market

T = TypeVar("T")
Lines = Mapping[str, float]
Statements = Mapping[date, Lines]
"""By the last day of the period: the lines of all statements together."""
YAHOO = rows.Source("yfinance", Market.US)
OPENING = time(9, 30)
CENTS = 4
PRICES = {"open": "Open", "high": "High", "low": "Low", "close": "Close"}
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
    """Without a key. What it `lacks` it says; a report counts as known from its deadline.

    The whole history of a share is one answer, and factors must not depend on the range asked for: it is read whole.
    """

    name = YAHOO.name
    market = Market.US
    pace = outside.Pace(calls=30, per_seconds=60, concurrency=2)
    lacks = (COMPANIES, VALUATIONS, MACRO, *DEEP)

    def readers(self) -> dict[Dataset[Any], Reader]:
        return {
            BARS: partial(self._tell, "history", _whole_history, bars),
            REPORTS: partial(self._tell, "statements", _statements, reports),
            DIVIDENDS: partial(self._tell, "history", _whole_history, dividends),
            NEWS: partial(self._tell, "news", lambda ticker: list(ticker.get_news(count=ARTICLES)), news),
        }

    async def company(self, symbol: str) -> Company | None:
        """One company, by its symbol; nothing if Yahoo does not know it or not since when it trades."""
        told = await self._tell("info", lambda ticker: dict(ticker.info), company, symbol)
        return next(iter(screen(COMPANIES, told)), None)

    async def _tell(
        self,
        operation: str,
        read: Callable[[Any], T],
        tell: Callable[[str, T], Iterable[Row]],
        symbol: str,
        *_: object,
    ) -> list[Row]:
        """What `read` gets from the symbol's ticker; nothing for a symbol Yahoo does not know."""
        self._require_market(symbol)
        spelled = symbol.replace(".", "-")

        def ask() -> T | None:
            data = importlib.import_module("yfinance.data")
            data.YfData.cache_get.cache_clear()  # it keeps failures as well
            try:
                return read(self.library().Ticker(spelled, session=self._session))
            except OSError as e:  # the network, unless Yahoo said plainly that there is no such symbol
                if getattr(getattr(e, "response", None), "status_code", None) == UNKNOWN:
                    return None
                raise

        found = await self.ask(operation, {"symbol": spelled}, ask, lambda: self._is_unknown(spelled))
        return list(tell(symbol, found)) if found else []

    def library(self) -> ModuleType:
        library = super().library()
        importlib.import_module("yfinance.config").YfConfig.debug.hide_exceptions = False
        return library

    def errors(self) -> outside.Errors:
        told = self.library().exceptions
        return (told.YFRateLimitError,), (told.YFException, *outside.MISREAD)

    def _is_unknown(self, spelled: str) -> bool:
        data, const = (importlib.import_module(f"yfinance.{name}") for name in ("data", "const"))
        url, asked = f"{const._BASE_URL_}{CHART_PATH}{spelled}", {"range": "1d", "interval": "1d"}
        yahoo = data.YfData(session=self._session)
        try:
            answer = yahoo.get(url, params=asked, timeout=outside.REQUEST_SECONDS)
        except self.library().exceptions.YFException:
            return False
        return bool(answer.status_code == UNKNOWN)

    @cached_property
    def _session(self) -> Any:
        """A browser's session, as yfinance would make one, that takes no error page for an answer."""
        http = importlib.import_module("curl_cffi.requests")

        class StrictSession(http.Session):  # type: ignore[misc, name-defined]  # an optional library
            def request(self, *args: Any, **kwargs: Any) -> Any:
                answer = super().request(*args, **kwargs)
                if answer.status_code >= 500:
                    raise http.exceptions.HTTPError(f"HTTP {answer.status_code}", 0, answer)
                return answer

        return StrictSession(impersonate="chrome")


def _whole_history(ticker: Any) -> list[Row]:
    frame = ticker.history(
        period="max",
        interval="1d",
        auto_adjust=False,
        actions=True,
        keepna=True,
        timeout=outside.REQUEST_SECONDS,
    )
    days = zip(frame.index, rows.read_frame(frame), strict=True)
    return [{"Date": index.date(), **row} for index, row in days]


def _statements(ticker: Any) -> tuple[Statements, Statements]:
    """Quarterly and annual statements, those of a period together."""
    return _merge_statements(ticker, "quarterly"), _merge_statements(ticker, "yearly")


def _merge_statements(ticker: Any, frequency: str) -> Statements:
    merged: dict[date, dict[str, float]] = {}
    for read in (ticker.get_income_stmt, ticker.get_balance_sheet, ticker.get_cash_flow):
        for end, lines in read(freq=frequency).items():
            if there := lines.dropna().astype(float).to_dict():
                merged.setdefault(end.date(), {}).update(there)
    return merged


def bars(symbol: str, history: list[Row]) -> Iterator[Row]:
    """`before` is the last close there was, on today's shares."""
    factor: float = 1.0
    before: float | None = None
    for row, later in _with_later_splits(history):
        paid = row["Dividends"] or 0.0
        reference = None if before is None else before - paid
        if before is not None and reference is not None and reference > 0:
            factor *= before / reference
        factor *= row["Stock Splits"] or 1.0
        before = row["Close"] if row["Close"] is not None else before
        told = {"symbol": symbol, "trade_date": row["Date"], "pre_close": _times(reference, later)}
        prices = {ours: _times(row[theirs], later) for ours, theirs in PRICES.items()}
        traded = {**prices, "volume": None if row["Volume"] is None else round(row["Volume"] / later)}
        amount = rows.estimate_amount(traded)
        yield YAHOO.tell(BARS, {**told, "adj_factor": factor, **traded, "amount": amount})


def dividends(symbol: str, history: list[Row]) -> Iterator[Row]:
    """Yahoo tells neither period nor announcement: both are taken to be the ex-date, when at last it was known."""
    for row, later in _with_later_splits(history):
        split, paid = row["Stock Splits"] or 1.0, row["Dividends"] or 0.0
        if split == 1.0 and not paid:
            continue
        payout = {"cash_per_share": round(paid * later, CENTS + 2), "bonus_per_share": split - 1.0}
        days = dict.fromkeys(("period_end", "announced_on", "ex_date"), row["Date"])
        times = rows.known_from(YAHOO.moment(row["Date"], OPENING))
        yield YAHOO.tell(DIVIDENDS, {"symbol": symbol, **days, **payout, **times})


def reports(symbol: str, statements: tuple[Statements, Statements]) -> Iterator[Row]:
    """One report a quarter, and older full years where the year is the calendar's."""
    quarterly, annual = statements
    full_years = {end: lines for end, lines in annual.items() if quarter_of(end)[1] == 4}
    every: dict[date, Lines] = {**full_years, **quarterly}
    for end, lines in sorted(every.items()):
        sums = _pick(full_years[end], FLOWS) if end in full_years else _so_far(end, quarterly)
        opening = next((lines for e, lines in every.items() if quarter_of(e) == (end.year - 1, 4)), {})
        deadline = rows.statutory_deadline(end, Market.US, annual=end in annual)
        told = {"symbol": symbol, "period_end": end, "announced_on": deadline}
        yield YAHOO.tell(REPORTS, {**told, **_figures(lines, sums, opening)})


def news(symbol: str, articles: Iterable[Row]) -> Iterator[Row]:
    """The newest articles, as far back as Yahoo keeps them."""
    for content in (article.get("content") or {} for article in articles):
        page = content.get("canonicalUrl") or content.get("clickThroughUrl") or {}
        title = content.get("title")
        item = {"kind": "news", "symbol": symbol, "title": title, "title_en": title, "url": page.get("url")}
        yield YAHOO.tell(NEWS, {**item, **rows.known_from(YAHOO.read_moment(content.get("pubDate")))})


def company(symbol: str, info: Row) -> Iterator[Row]:
    name = info.get("longName") or info.get("shortName")
    first = info.get("firstTradeDateMilliseconds")
    industry = info.get("industry") or ""
    listed = None if first is None else datetime.fromtimestamp(first / 1000, UTC).date()
    names = {"name": name, "name_en": name, "industry": industry, "industry_en": industry}
    yield YAHOO.tell(COMPANIES, {"symbol": symbol, "list_date": listed, **names})


def _figures(lines: Lines, sums: Mapping[str, float], opening: Lines) -> Row:
    """The indicators, each from lines that are there."""
    stocks = _pick(lines, STOCKS)
    shares, equity = lines.get("OrdinarySharesNumber"), stocks.get("equity")
    assets, owed = lines.get("CurrentAssets"), lines.get("CurrentLiabilities")
    profit, revenue, capex = (sums.get(name) for name in ("net_profit", "total_revenue", "capex"))
    before = opening.get("StockholdersEquity")
    mean = (before + equity) / 2 if before is not None and equity is not None else None
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
    year, quarter = quarter_of(end)
    mine = [lines for e, lines in quarterly.items() if quarter_of(e)[0] == year and e <= end]
    if len(mine) != quarter:
        return {}
    each = [_pick(lines, FLOWS) for lines in mine]
    return {
        name: sum(flows[name] for flows in each) for name in FLOWS if all(name in flows for flows in each)
    }


def _pick(lines: Lines, columns: Mapping[str, str]) -> dict[str, float]:
    return {ours: lines[theirs] for ours, theirs in columns.items() if theirs in lines}


def _with_later_splits(history: list[Row]) -> Iterator[tuple[Row, float]]:
    """Each day, and how many shares of today one share of that day became."""
    splits = (row["Stock Splits"] or 1.0 for row in reversed(history))
    return zip(history, [1.0, *accumulate(splits, mul)][-2::-1], strict=True)


def _times(value: float | None, by: float) -> float | None:
    return None if value is None else round(value * by, CENTS)


def _ratio(part: float | None, whole: float | None, times: int = 1) -> float | None:
    return None if part is None or not whole else times * (part / whole)
