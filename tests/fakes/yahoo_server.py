"""Yahoo Finance on a local port: cookie, crumb, chart, statements, quote and news, in the shapes yfinance reads.

`redirect(monkeypatch)` sends every request of its session here, the host as the first part of the path.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

KNOWN = "BRK-B"
DAYS = [date(2024, 6, day) for day in (6, 7, 10, 11, 12, 13)]
PRICES = {  # after the split of 10 June, as Yahoo shows them; 12 June has a hole
    "open": [119.0, 120.5, 121.0, 121.8, None, 122.0],
    "high": [121.0, 122.0, 123.0, 122.5, None, 124.0],
    "low": [118.0, 120.0, 120.5, 120.9, None, 121.5],
    "close": [120.0, 121.0, 122.0, 121.5, None, 123.0],
    "volume": [5000, 6000, 7000, 8000, None, 9000],
}
QUARTERS = {
    "2024-03-31": {"TotalRevenue": 100.0, "GrossProfit": 40.0, "NetIncome": 10.0, "BasicEPS": 1.0}
    | {
        "OperatingCashFlow": 12.0,
        "CapitalExpenditure": -5.0,
        "TotalAssets": 500.0,
        "StockholdersEquity": 210.0,
    },
    "2024-06-30": {"TotalRevenue": 120.0, "GrossProfit": 50.0, "NetIncome": 14.0, "BasicEPS": 1.4}
    | {
        "OperatingCashFlow": 15.0,
        "CapitalExpenditure": -6.0,
        "TotalAssets": 520.0,
        "StockholdersEquity": 230.0,
    }
    | {"TotalLiabilitiesNetMinorityInterest": 290.0, "OrdinarySharesNumber": 10.0, "CurrentAssets": 90.0}
    | {"CurrentLiabilities": 60.0, "Inventory": 30.0},
    "2023-09-30": {"TotalRevenue": 94.0, "NetIncome": 8.0, "TotalAssets": 470.0, "StockholdersEquity": 185.0},
    "2023-12-31": {"TotalRevenue": 95.0, "NetIncome": 9.0, "TotalAssets": 480.0, "StockholdersEquity": 190.0},
}
YEARS = {
    "2023-12-31": {
        "TotalRevenue": 380.0,
        "NetIncome": 38.0,
        "StockholdersEquity": 190.0,
        "TotalAssets": 480.0,
    },
    "2022-12-31": {
        "TotalRevenue": 350.0,
        "NetIncome": 30.0,
        "StockholdersEquity": 160.0,
        "TotalAssets": 450.0,
    },
}
ARTICLES = [
    {
        "title": "Earnings beat",
        "pubDate": "2024-06-12T12:30:00Z",
        "canonicalUrl": {"url": "https://example.com/1"},
    },
    {
        "title": "Late night",
        "pubDate": "2024-06-13T02:30:00Z",
        "canonicalUrl": {"url": "https://example.com/2"},
    },
    {"title": "Undated", "pubDate": None, "canonicalUrl": {"url": "https://example.com/3"}},
]


@dataclass
class YahooServer:
    """What was asked is in `asked`; `broken` is an answer to give instead of data, `slow` seconds to wait before."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    broken: tuple[int, str] | None = None
    broken_for: int = 1_000_000
    slow: float = 0.0

    def answer(self, place: str, query: dict[str, str], body: bytes) -> tuple[int, str]:
        self.asked.append(place)
        host, _, path = place.partition("/")
        if path.endswith("getcrumb"):
            return 200, "crumb"
        if not host.startswith(("query", "finance.yahoo.com")):
            return 404, ""
        time.sleep(self.slow)
        if self.broken and self.broken_for > 0:
            self.broken_for -= 1
            return self.broken
        for part, page in PAGES.items():
            if part in path:
                status, answer = page(path, query, body)
                return status, json.dumps(answer)
        return 404, "{}"

    def redirect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from curl_cffi.requests import Session

        real = Session.request

        def request(session: Any, method: str, url: str, **kwargs: Any) -> Any:
            there = url.split("://", maxsplit=1)[1]
            return real(session, method, f"{self.url}/{there}", **kwargs)

        monkeypatch.setattr(Session, "request", request)


def _chart(path: str, _query: dict[str, str], _body: bytes) -> tuple[int, Any]:
    if not path.endswith(KNOWN):
        error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
        return 404, {"chart": {"result": None, "error": error}}
    stamps = [_opening(day) for day in DAYS]
    split = {"date": stamps[2], "numerator": 10.0, "denominator": 1.0, "splitRatio": "10:1"}
    paid = {"amount": 0.61, "date": stamps[3]}
    result = {
        "meta": _meta(stamps),
        "timestamp": stamps,
        "events": {"splits": {str(stamps[2]): split}, "dividends": {str(stamps[3]): paid}},
        "indicators": {"quote": [PRICES], "adjclose": [{"adjclose": PRICES["close"]}]},
    }
    return 200, {"chart": {"result": [result], "error": None}}


def _meta(stamps: list[int]) -> dict[str, Any]:
    session = {"timezone": "EDT", "start": stamps[-1], "end": stamps[-1] + 23400, "gmtoffset": -14400}
    return {
        "currency": "USD",
        "symbol": KNOWN,
        "exchangeName": "NYQ",
        "instrumentType": "EQUITY",
        "firstTradeDate": stamps[0],
        "regularMarketTime": stamps[-1] + 23400,
        "regularMarketPrice": 123.0,
        "gmtoffset": -14400,
        "timezone": "EDT",
        "exchangeTimezoneName": "America/New_York",
        "priceHint": 2,
        "currentTradingPeriod": {"pre": session, "regular": session, "post": session},
        "dataGranularity": "1d",
        "range": "max",
        "validRanges": ["1d", "5d", "1mo", "max"],
    }


def _opening(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 13, 30, tzinfo=UTC).timestamp())


def _series(path: str, query: dict[str, str], _body: bytes) -> tuple[int, Any]:
    """One block for each line asked for; a symbol Yahoo does not know has blocks without figures."""
    blocks = [_block(kind, path.endswith(KNOWN)) for kind in query["type"].split(",")]
    return 200, {"timeseries": {"result": blocks, "error": None}}


def _block(kind: str, known: bool) -> dict[str, Any]:
    meta = {"meta": {"symbol": [KNOWN], "type": [kind]}}
    quarterly = kind.startswith("quarterly")
    line = kind.removeprefix("quarterly").removeprefix("annual")
    table = QUARTERS if quarterly else YEARS
    found = {end: lines[line] for end, lines in table.items() if line in lines} if known else {}
    if not found:
        return meta
    values = [
        {"asOfDate": end, "periodType": "3M" if quarterly else "12M", "currencyCode": "USD"}
        | {"dataId": 1, "reportedValue": {"raw": value, "fmt": str(value)}}
        for end, value in found.items()
    ]
    stamps = [int(datetime.fromisoformat(f"{end}T00:00:00+00:00").timestamp()) for end in found]
    return {**meta, "timestamp": stamps, kind: values}


def _summary(path: str, _query: dict[str, str], _body: bytes) -> tuple[int, Any]:
    if not path.endswith(KNOWN):
        return 404, {"quoteSummary": {"result": None, "error": {"code": "Not Found", "description": "none"}}}
    profile = {"assetProfile": {"industry": "Insurance—Diversified", "sector": "Financial Services"}}
    kind = {"quoteType": {"longName": "Acme Holdings Inc.", "symbol": KNOWN, "quoteType": "EQUITY"}}
    return 200, {"quoteSummary": {"result": [{**profile, **kind}], "error": None}}


def _quote(_path: str, query: dict[str, str], _body: bytes) -> tuple[int, Any]:
    row = {"symbol": KNOWN, "longName": "Acme Holdings Inc.", "firstTradeDateMilliseconds": 831562200000}
    found = [row] if query["symbols"] == KNOWN else []
    return 200, {"quoteResponse": {"result": found, "error": None}}


def _news(_path: str, _query: dict[str, str], body: bytes) -> tuple[int, Any]:
    asked = json.loads(body)["serviceConfig"]["s"]
    stream = [{"id": str(n), "content": a} for n, a in enumerate(ARTICLES)] if asked == [KNOWN] else []
    return 200, {"data": {"tickerStream": {"stream": stream}}, "status": "OK"}


PAGES = {
    "v8/finance/chart/": _chart,
    "fundamentals-timeseries/": _series,
    "v10/finance/quoteSummary/": _summary,
    "v7/finance/quote": _quote,
    "xhr/ncp": _news,
}


@contextmanager
def yahoo_server() -> Iterator[YahooServer]:
    stub = YahooServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = stub.answer(asked.path.lstrip("/"), dict(parse_qsl(asked.query)), sent)
            raw = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
