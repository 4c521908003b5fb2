"""The web on localhost: a server that answers as it is told, and search services, caches and records in memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from aiohttp import web
from multidict import CIMultiDict

from moot.modules.llm_platform.application.web_search import (
    SearchAnswer,
    Searches,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchResultItem,
)


@dataclass(frozen=True)
class Reply:
    """`hang` never answers, `reset` hangs up instead, `drip` sends the body over and over and never ends."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    reset: bool = False
    drip: bool = False


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    json: Any


class LocalWeb:
    """`replies` by path; a path that is not there is 404. Everything asked for is in `asked`."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.asked: list[Asked] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        sent = await request.json() if request.can_read_body else None
        self.asked.append(
            Asked(request.method, request.path, dict(request.headers), dict(request.query), sent)
        )
        reply = self.replies.get(request.path, Reply("nothing here", status=404))
        if reply.hang:
            await asyncio.Event().wait()
        if reply.reset and request.transport:
            request.transport.abort()
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        if reply.drip:
            return await self._drip(request, reply, body)
        return web.Response(body=body, status=reply.status, headers=CIMultiDict(reply.headers))

    @staticmethod
    async def _drip(request: web.Request, reply: Reply, body: bytes) -> web.StreamResponse:
        answer = web.StreamResponse(headers=CIMultiDict(reply.headers))
        await answer.prepare(request)
        while True:
            await answer.write(body)
            await asyncio.sleep(0.02)


@asynccontextmanager
async def local_web() -> AsyncIterator[LocalWeb]:
    served = LocalWeb()
    runner = web.ServerRunner(web.Server(served.answer), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        await runner.cleanup()


class FakeSearch:
    """Finds what it is given, or raises it."""

    name = "fake"

    def __init__(self, found: list[WebSearchResultItem] | BaseException, *, name: str = "fake") -> None:
        self.found, self.name = found, name
        self.asked: list[WebSearchRequest] = []

    async def search(self, request: WebSearchRequest) -> SearchAnswer:
        self.asked.append(request)
        if isinstance(self.found, BaseException):
            raise self.found
        response = WebSearchResponse(query=request.query, total_matches=len(self.found), results=self.found)
        return SearchAnswer(response=response, status_code=200, body="as it came")

    async def aclose(self) -> None:
        return None


class FakeSearchAudit:
    """One dict per call: the intent, and what the outcome added to it. `broken` keeps nothing and says so."""

    def __init__(self, *, broken: bool = False) -> None:
        self.calls: dict[UUID, dict[str, Any]] = {}
        self._broken = broken

    @property
    def only(self) -> dict[str, Any]:
        (call,) = self.calls.values()
        return call

    async def begin(
        self,
        service_name: str,
        operation: str,
        request_params: Mapping[str, Any],
        *,
        origin: str,
        attempt: int = 1,
        request_digest: str,
    ) -> UUID | None:
        if self._broken:
            raise RuntimeError("no call may go unrecorded")
        call_id = uuid4()
        self.calls[call_id] = {
            "service_name": service_name,
            "operation": operation,
            "request_params": dict(request_params),
            "origin": origin,
            "attempt": attempt,
            "request_digest": request_digest,
            "status": "started",
        }
        return call_id

    async def end(self, call_id: UUID | None, **outcome: Any) -> None:
        assert call_id is not None
        self.calls[call_id] |= outcome


class FakeCache(Searches):
    def __init__(self, *, fails: bool = False) -> None:
        self.kept: dict[str, WebSearchResponse] = {}
        self._fails = fails

    async def get(self, key: str) -> WebSearchResponse | None:
        self._perhaps_fail()
        return self.kept.get(key)

    async def put(self, key: str, request: WebSearchRequest, response: WebSearchResponse) -> None:
        self._perhaps_fail()
        self.kept[key] = response

    async def cleanup_expired(self) -> int:
        return 0

    def _perhaps_fail(self) -> None:
        if self._fails:
            raise RuntimeError("disk full")
