"""yfinance's tickers, asked beside the loop; what it swallows is told apart here: unknown, limited, broken."""

import importlib
import json
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers.outside import Outside, Trouble
from moot.modules.market_data.infrastructure.providers.threads import in_thread
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market, Symbol

SOURCE = "yfinance"
REQUEST_SECONDS = 15.0
CHART_PATH = "/v8/finance/chart/"
UNKNOWN = 404
MISREAD = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What yfinance raises over an answer it did not expect."""

T = TypeVar("T")


class YahooClient:
    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def ask(self, operation: str, symbol: str, read: Callable[[Any], T]) -> T | None:
        """What `read` gets from the symbol's ticker; nothing for a symbol Yahoo does not know."""
        if Symbol.parse(symbol).market is not Market.US:
            raise NotOffered(SAY("yfinance.market", symbol=symbol))
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

        return await self._outside.call(operation, {"symbol": spelled}, attempt)

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
