"""The one door to the web's search services: every search passes here and is on the record."""

import time
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import structlog

from moot.modules.llm_platform.domain.exceptions import (
    ReplayMismatch,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.domain.search import (
    RecordedSearch,
    SearchAnswer,
    SearchAudit,
    SearchCache,
    SearchRecord,
    WebSearchProvider,
    WebSearchRequest,
    WebSearchResponse,
    refine,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.guard import Dependency, Guard, LeftAlone, unguarded
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx

__all__ = ["WebSearchRequest", "WebSearchService"]

logger = structlog.get_logger(__name__)

OPERATION = "web-search"
PRESENT = timedelta(days=1)
"""A session this young asks the web of today; an older one must not see what came after it."""


class WebSearchService:
    """What the provider found, or the cache still holds, without what is no use to the session that asks.

    A session that goes on, or is replayed, from its record is told what it was told before.
    """

    def __init__(
        self,
        provider: WebSearchProvider,
        audit: SearchAudit,
        cache: SearchCache | None,
        clock: Clock,
        record: SearchRecord | None = None,
        guard: Guard = unguarded,
    ) -> None:
        self._provider, self._audit, self._cache, self._clock = provider, audit, cache, clock
        self._record, self._guard = record, guard

    async def search(self, request: WebSearchRequest) -> WebSearchResponse:
        """Raises what the provider raises; on replay `ReplayMismatch`, when there is no such search on record."""
        context = current_execution_ctx.get()
        if context is not None and context.answers != "live":
            recorded = await self._recorded(request, context)
            if recorded is not None:
                return recorded
        past = _past_moment(self._clock.now())
        if past is not None:
            request = _undated(request)
        response = await self._remembered(request) or await self._found(request)
        return self._refined(request, response, past)

    def _refined(
        self, request: WebSearchRequest, response: WebSearchResponse, past: datetime | None
    ) -> WebSearchResponse:
        results = refine(response.results, as_of=past)
        logger.info(
            "web search",
            service=self._provider.name,
            query=request.query,
            found=len(response.results),
            kept=len(results),
        )
        return response.model_copy(update={"results": results})

    async def _recorded(
        self, request: WebSearchRequest, context: ExecutionContext
    ) -> WebSearchResponse | None:
        """What the session was told when it asked; None when it has to ask again, which a replay never does.

        Whether it asked as a session of the past is judged by the moment it asked, not by the present one.
        """
        found = await self._on_record(request, context.session_id)
        if found is None and context.answers == "replay":
            raise ReplayMismatch(
                SAY("record.no_search", query=request.query), query=request.query, difference=[]
            )
        if found is None or (found.response is None and context.answers == "resume"):
            return None
        if found.response is None:
            raise _failed_before(found)
        if context.answers == "resume":
            await self._note(found, found.response)
        return self._refined(request, found.response, _past_moment(found.asked_at))

    async def _on_record(self, request: WebSearchRequest, session_id: str) -> RecordedSearch | None:
        if self._record is None or not session_id:
            return None
        return await self._record.find(UUID(session_id), [request, _undated(request)])

    async def _note(self, found: RecordedSearch, response: WebSearchResponse) -> None:
        """On the record too: that this was not asked again."""
        call_id = await self._begin(found.request, "record", found.service)
        body = response.model_dump_json()
        await self._end(call_id, time.monotonic(), SearchAnswer(response=response, body=body))

    async def _remembered(self, request: WebSearchRequest) -> WebSearchResponse | None:
        started = time.monotonic()
        response = await self._from_cache(request)
        if response is not None:
            call_id = await self._begin(request, "cache")
            await self._end(
                call_id, started, SearchAnswer(response=response, body=response.model_dump_json())
            )
        return response

    async def _found(self, request: WebSearchRequest) -> WebSearchResponse:
        call_id = await self._begin(request, "live")
        started = time.monotonic()
        try:
            answer = await self._asked(request)
        except BaseException as error:
            await self._end(call_id, started, error)
            raise
        await self._end(call_id, started, answer)
        await self._to_cache(request, answer.response)
        return answer.response

    async def _asked(self, request: WebSearchRequest) -> SearchAnswer:
        """A service that is left alone is out of reach, on the record as well: a replay is told the same."""
        try:
            async with self._guard(Dependency(f"{OPERATION}:{self._provider.name}"), _service_failed):
                return await self._provider.search(request)
        except LeftAlone as alone:
            raise WebSearchConnectionError(alone.message, retry_after=alone.retry_after) from None

    async def _begin(
        self, request: WebSearchRequest, origin: Literal["live", "cache", "record"], service: str = ""
    ) -> UUID | None:
        name = service or self._provider.name
        params = request.model_dump(mode="json")
        return await self._audit.begin(
            name, OPERATION, params, origin=origin, request_digest=request.key(name)
        )

    async def _end(self, call_id: UUID | None, started: float, outcome: SearchAnswer | BaseException) -> None:
        answer = outcome if isinstance(outcome, SearchAnswer) else None
        status_code = outcome.status_code if isinstance(outcome, SearchAnswer | WebSearchError) else None
        await self._audit.end(
            call_id,
            status="success" if answer else "failed",
            latency_ms=round((time.monotonic() - started) * 1000),
            status_code=status_code,
            response_data=answer.body if answer else None,
            error_message=None if answer else str(outcome) or type(outcome).__name__,
        )

    async def _from_cache(self, request: WebSearchRequest) -> WebSearchResponse | None:
        if self._cache is None:
            return None
        try:
            return await self._cache.get(request.key(self._provider.name))
        except Exception:  # bulkhead: a broken cache costs a request, not the answer
            logger.warning("search cache not read", query=request.query, exc_info=True)
            return None

    async def _to_cache(self, request: WebSearchRequest, response: WebSearchResponse) -> None:
        if self._cache is None:
            return
        try:
            await self._cache.put(request.key(self._provider.name), request, response)
        except Exception:  # bulkhead: an answer that cannot be kept is an answer all the same
            logger.warning("search cache not written", query=request.query, exc_info=True)


def _service_failed(error: Exception) -> bool:
    return isinstance(error, WebSearchConnectionError) or (isinstance(error, WebSearchError) and error.outage)


def _past_moment(now: datetime) -> datetime | None:
    """The session's moment, if it lies in the past of `now`."""
    context = current_execution_ctx.get()
    as_of = context.as_of if context else None
    return as_of if as_of and as_of < now - PRESENT else None


def _undated(request: WebSearchRequest) -> WebSearchRequest:
    """The last month is counted from today, and says nothing about then."""
    return request.model_copy(update={"freshness": "noLimit"})


def _failed_before(found: RecordedSearch) -> WebSearchError | WebSearchConnectionError:
    """The failure on record, in its own words."""
    said = found.error_message or SAY("record.search_failed", service=found.service)
    if found.status_code is None:
        return WebSearchConnectionError(said)
    return WebSearchError(said, status_code=found.status_code)
