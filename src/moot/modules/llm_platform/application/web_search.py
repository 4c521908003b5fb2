"""The one door to the web: whoever searches it or reads a page of it does so here, and it is on the record."""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import structlog

from moot.modules.llm_platform.domain.exceptions import (
    ReplayMismatch,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.domain.search import (
    Page,
    RecordedSearch,
    SearchAudit,
    Searches,
    WebSearchProvider,
    WebSearchRequest,
    WebSearchResponse,
    refine,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.guard import Dependency, Guard, LeftAlone, let_through
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx

__all__ = ["Page", "WebPageService", "WebSearchRequest", "WebSearchService"]

logger = structlog.get_logger(__name__)

SEARCH, READ = "web-search", "read-page"
PRESENT = timedelta(days=1)
"""A session this young asks the web of today; an older one must not see what came after it."""

Origin = Literal["live", "cache", "record"]


class WebSearchService:
    """What the provider found, or the cache still holds, without what is no use to whoever asks.

    A session that goes on, or is replayed, from its record is told what it was told before.
    """

    def __init__(
        self,
        provider: WebSearchProvider,
        audit: SearchAudit,
        kept: Searches | None,
        clock: Clock,
        guard: Guard = let_through,
    ) -> None:
        self._provider, self._audit, self._kept = provider, audit, kept
        self._clock, self._guard = clock, guard

    async def search(self, request: WebSearchRequest, *, as_of: datetime | None = None) -> WebSearchResponse:
        """What was public at `as_of`; None: now. Raises what the provider raises.

        On replay `ReplayMismatch`, when there is no such search on record.
        """
        context = current_execution_ctx.get()
        if context is not None and context.answers != "live":
            found = await self._from_record(request, context)
            if found is not None and found.response is not None:
                return _refine(found.response, _past(as_of, found.asked_at))
        past = _past(as_of, self._clock.now())
        if past is not None:
            request = _drop_dates(request)
        response = await self._from_cache(request) or await self._ask(request)
        return _refine(response, past)

    async def _from_record(
        self, request: WebSearchRequest, context: ExecutionContext
    ) -> RecordedSearch | None:
        """What the session was told when it asked, or how that failed; a replay never has to ask again."""
        found = None
        if self._kept is not None and context.session_id:
            found = await self._kept.find(UUID(context.session_id), [request, _drop_dates(request)])
        if context.answers == "replay":
            if found is None:
                said = SAY("record.no_search", query=request.query)
                raise ReplayMismatch(said, query=request.query, difference=[])
            if found.response is None:
                raise _recall_failure(found)
        elif found is not None and found.response is not None:  # on the record too: not asked again
            await self._note(found.request, found.response, "record", found.service)
        return found

    async def _from_cache(self, request: WebSearchRequest) -> WebSearchResponse | None:
        if self._kept is None:
            return None
        try:
            response = await self._kept.get(request.key(self._provider.name))
        except Exception:  # bulkhead: a broken cache costs a request, not the answer
            logger.warning("search cache not read", query=request.query, exc_info=True)
            return None
        if response is not None:
            await self._note(request, response, "cache", self._provider.name)
        return response

    async def _ask(self, request: WebSearchRequest) -> WebSearchResponse:
        """A service that is left alone is out of reach, on the record as well: a replay is told the same."""
        async with self._call(request, "live", self._provider.name) as call:
            try:
                async with self._guard(Dependency(f"{SEARCH}:{self._provider.name}"), _service_failed):
                    answer = await self._provider.search(request)
            except LeftAlone as alone:
                raise WebSearchConnectionError(alone.message, retry_after=alone.retry_after) from None
            call |= {"response_data": answer.body, "status_code": answer.status_code}
        if self._kept is not None:
            try:
                await self._kept.put(request.key(self._provider.name), request, answer.response)
            except Exception:  # bulkhead: an answer that cannot be kept is an answer all the same
                logger.warning("search cache not written", query=request.query, exc_info=True)
        return answer.response

    async def _note(
        self, request: WebSearchRequest, response: WebSearchResponse, origin: Origin, service: str
    ) -> None:
        async with self._call(request, origin, service) as call:
            call["response_data"] = response.model_dump_json()

    def _call(
        self, request: WebSearchRequest, origin: Origin, service: str
    ) -> AbstractAsyncContextManager[dict[str, Any]]:
        params = request.model_dump(mode="json")
        return _on_record(self._audit, service, SEARCH, params, request.key(service), origin)


class WebPageService:
    """`fetch` raises `PageRefused` or `PageFailed`, which say why."""

    def __init__(self, fetch: Callable[[str], Awaitable[Page]], audit: SearchAudit) -> None:
        self._fetch, self._audit = fetch, audit

    async def read(self, url: str) -> Page:
        """The page's own words, written by strangers."""
        digest = hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()
        async with _on_record(self._audit, "web", READ, {"url": url}, digest) as call:
            page = await self._fetch(url)
            call["response_data"] = page.text
        return page


@asynccontextmanager
async def _on_record(
    audit: SearchAudit,
    service: str,
    operation: str,
    params: Mapping[str, Any],
    digest: str,
    origin: Origin = "live",
) -> AsyncIterator[dict[str, Any]]:
    """The intent before, the outcome after, however the call ends; the block adds what was answered."""
    call_id = await audit.begin(service, operation, params, origin=origin, request_digest=digest)
    started, status = time.monotonic(), "success"
    told = dict.fromkeys(("status_code", "response_data", "error_message"))
    try:
        yield told
    except BaseException as error:
        status, told["status_code"] = "failed", getattr(error, "status_code", None)
        told["error_message"] = str(error) or type(error).__name__
        raise
    finally:
        took = round((time.monotonic() - started) * 1000)
        await audit.end(call_id, status=status, latency_ms=took, **told)


def _refine(response: WebSearchResponse, past: datetime | None) -> WebSearchResponse:
    return response.model_copy(update={"results": refine(response.results, as_of=past)})


def _service_failed(error: Exception) -> bool:
    return isinstance(error, WebSearchConnectionError) or (isinstance(error, WebSearchError) and error.outage)


def _past(as_of: datetime | None, asked_at: datetime) -> datetime | None:
    """`as_of`, if it lay in the past when the question was asked."""
    return as_of if as_of and as_of < asked_at - PRESENT else None


def _drop_dates(request: WebSearchRequest) -> WebSearchRequest:
    """The last month is counted from today, and says nothing about then."""
    return request.model_copy(update={"freshness": "noLimit"})


def _recall_failure(found: RecordedSearch) -> WebSearchError | WebSearchConnectionError:
    """The failure on record, in its own words."""
    said = found.error_message or found.service
    if found.status_code is None:
        return WebSearchConnectionError(said)
    return WebSearchError(said, status_code=found.status_code)
