"""Tushare Pro on localhost: the true envelope over tables a test gives it, and the faults of the real one."""

import json
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import httpx
from pydantic import SecretStr

from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.modules.market_data.infrastructure.providers.tushare import TushareProvider

RANGE_COLUMNS = ("trade_date", "ann_date", "date")
TOKEN = "canary-3f9a1c7e5b"
FREE = Pace(calls=10_000, per_seconds=0.01, concurrency=4)


@dataclass(frozen=True)
class Fault:
    """An answer that is not the one asked for; `{token}` in it becomes the caller's token."""

    body: str = ""
    status: int = 200
    hang: bool = False
    reset: bool = False


def refusal(code: int, text: str) -> Fault:
    return Fault(json.dumps({"request_id": "r", "code": code, "msg": text, "data": None}, ensure_ascii=False))


RATE = refusal(
    40203, "抱歉，您每分钟最多访问该接口500次，权限的具体详情访问：https://tushare.pro/document/1。"
)
DAILY_QUOTA = refusal(
    40203, "抱歉，您每天最多访问该接口5次，权限的具体详情访问：https://tushare.pro/document/1。"
)
NO_PERMISSION = refusal(
    40203, "抱歉，您没有接口(x)访问权限，权限的具体详情访问：https://tushare.pro/document/1。"
)
OLD_NO_PERMISSION = refusal(2002, "权限不足")
BAD_TOKEN = refusal(40101, "您的token不对，请确认。")
ODD = refusal(-2001, "参数校验失败: {token}")
SERVER_ERROR = Fault("<html>502 for {token}</html>", status=502)
FORBIDDEN = Fault("no", status=403)
HTML = Fault("<html>Please sign in, {token}</html>")
BROKEN = Fault('{"code": 0, "data": {"fields": ["ts_code"], "items": [["600')
NO_DATA = Fault('{"request_id": "r", "code": 0, "msg": null, "data": null}')
NULL_ITEMS = Fault(
    '{"code": 0, "msg": "", "data": {"fields": ["ts_code"], "items": null, "has_more": false}}'
)
SHORT_ROW = Fault('{"code": 0, "data": {"fields": ["ts_code", "trade_date"], "items": [["600519.SH"]]}}')
HANG = Fault(hang=True)
RESET = Fault(reset=True)


class TushareServer:
    """`tables` are rows by interface, newest first as on the wire; they are filtered and cut as the service would.

    `largest_page` caps an answer, `backwards` sends its columns in another order than they were asked for, `allowed`
    is (calls, seconds) on the server's own clock: what comes beyond is refused and counted in `beyond`.
    """

    def __init__(
        self,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        *,
        largest_page: int = 6000,
        allowed: tuple[int, float] | None = None,
        latency: float = 0.0,
        ignores_offset: bool = False,
        backwards: bool = False,
    ) -> None:
        self.tables = {api: list(rows) for api, rows in (tables or {}).items()}
        self.largest_page, self.allowed, self.latency = largest_page, allowed, latency
        self.ignores_offset, self.backwards = ignores_offset, backwards
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.always: dict[str, Fault] = {}
        self.requests: list[dict[str, Any]] = []
        self.beyond = 0
        self._arrivals: deque[float] = deque()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def script(self, api: str, *faults: Fault) -> None:
        """The next answers of `api`, before it answers as it should again."""
        self.faults[api].extend(faults)

    def calls(self) -> Counter[str]:
        return Counter(request["api_name"] for request in self.requests)

    def __enter__(self) -> Self:
        stub = self

        class Handler(_Handler):
            server_of = stub

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, request: dict[str, Any]) -> Fault:
        api = request["api_name"]
        with self._lock:
            self.requests.append(request)
            if self._too_many():
                return RATE
            if self.faults[api]:
                return self.faults[api].popleft()
        if self.latency:
            time.sleep(self.latency)
        return self.always.get(api) or Fault(json.dumps(self._envelope(request), ensure_ascii=False))

    def wait(self) -> None:
        self._over.wait(10)

    def _too_many(self) -> bool:
        if self.allowed is None:
            return False
        calls, seconds = self.allowed
        now = time.monotonic()
        while self._arrivals and self._arrivals[0] <= now - seconds:
            self._arrivals.popleft()
        self._arrivals.append(now)
        self.beyond += len(self._arrivals) > calls
        return len(self._arrivals) > calls

    def _envelope(self, request: dict[str, Any]) -> dict[str, Any]:
        params = request["params"]
        rows = [row for row in self.tables.get(request["api_name"], []) if _matches(row, params)]
        offset = 0 if self.ignores_offset else params.get("offset", 0)
        size = min(params.get("limit", self.largest_page), self.largest_page)
        there = list(dict.fromkeys(column for row in rows for column in row))
        asked = [name for name in request["fields"].split(",") if name] or there
        fields = [name for name in asked if name in there][:: -1 if self.backwards else 1]
        items = [[row.get(name) for name in fields] for row in rows[offset : offset + size]]
        data = {"fields": fields, "items": items, "has_more": len(rows) > offset + size, "count": -1}
        return {"request_id": "stub", "code": 0, "msg": "", "data": data, "detail": None}


def _matches(row: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    narrowed = [name for name in ("ts_code", "list_status", "suspend_type") if name in params and name in row]
    same = all(row[name] == params[name] for name in narrowed)
    on = next((row[name] for name in RANGE_COLUMNS if row.get(name)), None)
    if on is None or "start_date" not in params:
        return same
    return same and params["start_date"] <= str(on) <= params["end_date"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # one packet an answer
    server_of: TushareServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server_of.answer(request)
        if answer.hang:
            self.server_of.wait()
        if answer.hang or answer.reset:
            self.close_connection = True
            return
        body = answer.body.replace("{token}", request["token"]).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return None


@asynccontextmanager
async def provider(server: TushareServer, **changes: Any) -> AsyncIterator[TushareProvider]:
    """A provider that asks `server`, as fast as it can unless told otherwise."""
    settings: dict[str, Any] = {
        "token": SecretStr(TOKEN),
        "base_url": server.url,
        "pace": FREE,
        "pauses": (0.0, 0.0, 0.0),
        "client": lambda: httpx.AsyncClient(verify=False),  # spares reading the certificates each time
    }
    opened = TushareProvider(**settings | changes)
    try:
        yield opened
    finally:
        await opened.aclose()
