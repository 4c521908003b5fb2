"""Yahoo Finance as a provider, through yfinance: US shares, their dividends, statements and news.

yfinance is asked beside the loop; what it swallows is told apart here: unknown, limited, broken.
"""

import importlib
import json
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DIVIDENDS, NEWS, REPORTS, Company, Dataset
from moot.modules.market_data.domain.provider import NotOffered, screen
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import yfinance_rows
from moot.modules.market_data.infrastructure.providers.outside import (
    MISREAD,
    REQUEST_SECONDS,
    OutsideSource,
    Pace,
    Reader,
    Row,
    Trouble,
    in_thread,
)
from moot.modules.market_data.infrastructure.providers.yfinance_rows import (
    YAHOO,
    Statements,
    plain_history,
    plain_statements,
)
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market

ARTICLES = 100
CHART_PATH = "/v8/finance/chart/"
UNKNOWN = 404

T = TypeVar("T")


class YfinanceProvider(OutsideSource):
    """Without a key. No list of companies and no history of valuations; a report counts as known from its deadline.

    The whole history of a share is one answer, and factors must not depend on the range asked for: it is read whole.
    """

    name = YAHOO.name
    market = Market.US
    pace = Pace(calls=30, per_seconds=60, concurrency=2)

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
        rows = [yfinance_rows.company(symbol, info)] if info else []
        return next(iter(screen(COMPANIES, rows)), None)

    async def _bars(self, symbol: str, *_: object) -> list[Row]:
        return list(yfinance_rows.bars(symbol, await self._history(symbol)))

    async def _reports(self, symbol: str, *_: object) -> list[Row]:
        tables = await self._ask("statements", symbol, _statements)
        return list(yfinance_rows.reports(symbol, *tables)) if tables else []

    async def _dividends(self, symbol: str, *_: object) -> list[Row]:
        return list(yfinance_rows.dividends(symbol, await self._history(symbol)))

    async def _news(self, symbol: str, *_: object) -> list[Row]:
        """The newest articles, as far back as Yahoo keeps them."""
        found = await self._ask("news", symbol, lambda ticker: list(ticker.get_news(count=ARTICLES)))
        return [yfinance_rows.news(symbol, article) for article in found or []]

    async def _history(self, symbol: str) -> list[Row]:
        return await self._ask("history", symbol, _whole_history) or []

    async def _ask(self, operation: str, symbol: str, read: Callable[[Any], T]) -> T | None:
        """What `read` gets from the symbol's ticker; nothing for a symbol Yahoo does not know."""
        self._require_market(symbol)
        spelled = symbol.replace(".", "-")
        errors = (await in_thread(lambda: self._library)).exceptions  # loading it takes a while

        async def attempt() -> T | None:
            try:
                return await in_thread(lambda: read(self._ticker(spelled)))
            except errors.YFRateLimitError as e:
                raise Trouble(Unavailable(SAY("yfinance.rate")), passing=True) from e
            except json.JSONDecodeError as e:
                raise Trouble(_unreadable(operation), passing=True) from e
            except OSError as e:  # the network, unless Yahoo said plainly that there is no such symbol
                if getattr(getattr(e, "response", None), "status_code", None) == UNKNOWN:
                    return None
                raise
            except (errors.YFException, *MISREAD) as e:
                if await in_thread(lambda: self._is_unknown(spelled)):
                    return None
                raise Trouble(_unreadable(operation)) from e

        return await self.call(operation, {"symbol": spelled}, attempt)

    def _ticker(self, spelled: str) -> Any:
        data = importlib.import_module("yfinance.data")
        data.YfData.cache_get.cache_clear()  # it keeps failures as well; the lake is what remembers answers
        return self._library.Ticker(spelled, session=self._session)

    def _is_unknown(self, spelled: str) -> bool:
        data, const = (importlib.import_module(f"yfinance.{name}") for name in ("data", "const"))
        url = f"{const._BASE_URL_}{CHART_PATH}{spelled}"
        asked = {"range": "1d", "interval": "1d"}
        try:
            answer = data.YfData(session=self._session).get(url, params=asked, timeout=REQUEST_SECONDS)
        except self._library.exceptions.YFException:
            return False
        return bool(answer.status_code == UNKNOWN)

    @cached_property
    def _library(self) -> ModuleType:
        try:
            library = importlib.import_module("yfinance")
        except ImportError as e:
            raise NotOffered(SAY("yfinance.not_installed")) from e
        importlib.import_module("yfinance.config").YfConfig.debug.hide_exceptions = False
        return library

    @cached_property
    def _session(self) -> Any:
        return _strict_session()


def _whole_history(ticker: Any) -> list[Row]:
    frame = ticker.history(
        period="max", interval="1d", auto_adjust=False, actions=True, keepna=True, timeout=REQUEST_SECONDS
    )
    return plain_history(frame)


def _statements(ticker: Any) -> tuple[Statements, Statements]:
    """Quarterly and annual statements."""
    readers = (ticker.get_income_stmt, ticker.get_balance_sheet, ticker.get_cash_flow)
    quarterly, annual = (
        plain_statements(*(read(freq=frequency) for read in readers)) for frequency in ("quarterly", "yearly")
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


def _unreadable(operation: str) -> Unavailable:
    return Unavailable(SAY("yfinance.unreadable", operation=operation))
