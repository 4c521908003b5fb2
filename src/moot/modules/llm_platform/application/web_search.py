"""The one door to the web: whoever searches it or reads a page of it does so here, and it is on the record."""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from pydantic import AwareDatetime, BaseModel, Field, StringConstraints

from moot.modules.llm_platform.domain.call_record import ExternalCallItem
from moot.modules.llm_platform.domain.exceptions import (
    ReplayMismatch,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput, UpstreamFailed
from moot.shared.domain.guard import Dependency, Guard, LeftAlone, let_through
from moot.shared.domain.validation import Strict
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx

logger = structlog.get_logger(__name__)

SEARCH, READ = "web-search", "read-page"
PRESENT = timedelta(days=1)
"""A session this young asks the web of today; an older one must not see what came after it."""

Origin = Literal["live", "cache", "record"]
Freshness = Literal["oneDay", "oneWeek", "oneMonth", "oneYear", "noLimit"]
CACHE_HOURS = {"oneDay": 4, "oneWeek": 12, "oneMonth": 24, "oneYear": 48, "noLimit": 24, None: 24}
UNDATED = datetime.min.replace(tzinfo=UTC)
DEFAULT_PORTS = {"http": 80, "https": 443}


class WebSearchRequest(Strict):
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
    freshness: Freshness | None = None
    summary: bool = True
    count: int = Field(default=10, ge=1, le=50)

    def key(self, provider: str) -> str:
        """The same question to the same provider has the same key: for the cache, and as its digest on the record."""
        said = f"{self.query}|{self.freshness}|{self.summary}|{self.count}|{provider}"
        return hashlib.sha256(said.encode()).hexdigest()


class WebSearchResultItem(BaseModel, frozen=True):
    """A page somebody else wrote: quoted, never followed. `published_date` None: nobody said when."""

    title: str
    url: str
    snippet: str = ""
    summary: str | None = None
    site_name: str | None = None
    published_date: AwareDatetime | None = None


class WebSearchResponse(BaseModel, frozen=True):
    query: str
    total_matches: int | None = None
    results: list[WebSearchResultItem]


class SearchAnswer(BaseModel, frozen=True):
    """A provider's response, and for the record how it came: the HTTP status and the body."""

    response: WebSearchResponse
    status_code: int | None = None
    body: str = ""


class RecordedSearch(NamedTuple):
    """A search a session made before, and what it found; `response` None: the `call` says why it failed."""

    call: ExternalCallItem
    request: WebSearchRequest
    response: WebSearchResponse | None


class WebSearchProvider(Protocol):
    """`name` is how the service is called on the record. One call is one request; no retry, no cache, no record.

    Raises `WebSearchError` (an HTTP error, with its status), `WebSearchConnectionError` (network, time-out) or
    `WebSearchConfigError` (no key, found out when it is called, never when it is made).
    """

    name: str

    async def search(self, request: WebSearchRequest) -> SearchAnswer: ...


class Searches:
    """Keeps responses as the provider gave them, each for its `CACHE_HOURS`; knows what sessions searched before.

    This one is of a desk without persistence, and keeps nothing.
    """

    async def get(self, key: str) -> WebSearchResponse | None:
        """None when there is none, or none that is still good. What it raises costs no search."""
        return None

    async def put(self, key: str, request: WebSearchRequest, response: WebSearchResponse) -> None:
        """What it raises costs no answer."""

    async def find(self, session_id: UUID, requests: Sequence[WebSearchRequest]) -> RecordedSearch | None:
        """The newest answer to one of `requests`, or else its newest failure; None when neither can be read."""
        return None


class SearchAudit(Protocol):
    """Keeps searches: the intent before, the outcome after. `begin` raises only where none may go unrecorded."""

    async def begin(
        self, service_name: str, operation: str, request_params: Mapping[str, Any], **also: Any
    ) -> UUID | None: ...

    async def end(self, call_id: UUID | None, **outcome: Any) -> None: ...


class Page(BaseModel, frozen=True):
    """What a page says, as text. `url` is where it was found after all redirects. Quoted, never followed."""

    url: str
    title: str
    text: str


class PageRefused(InvalidInput, code="PAGE_REFUSED"):
    """The page was not read, because of where it lies or what it is; no other attempt changes that."""


class PageFailed(UpstreamFailed, code="PAGE_FAILED"):
    """The page could have been read, but did not come."""


class WebSearchService:
    """What the provider found, or the cache still holds, without what is no use to whoever asks.

    A session that goes on, or is replayed, from its record is told what it was told before.
    """

    def __init__(
        self,
        provider: WebSearchProvider,
        audit: SearchAudit,
        kept: Searches,
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
                return refine(found.response, as_of=_past(as_of, found.call.created_at))
        past = _past(as_of, self._clock.now())
        if past is not None:
            request = _drop_dates(request)
        response = await self._from_cache(request) or await self._ask(request)
        return refine(response, as_of=past)

    async def _from_record(
        self, request: WebSearchRequest, context: ExecutionContext
    ) -> RecordedSearch | None:
        """What the session was told when it asked, or how that failed; a replay never has to ask again."""
        found = None
        if context.session_id:
            found = await self._kept.find(UUID(context.session_id), [request, _drop_dates(request)])
        if context.answers == "replay":
            if found is None:
                said = SAY("record.no_search", query=request.query)
                raise ReplayMismatch(said, query=request.query, difference=[])
            if found.response is None:
                why, status = found.call.error_message or found.call.service_name, found.call.status_code
                raise WebSearchError(why, status_code=status) if status else WebSearchConnectionError(why)
        elif found is not None and found.response is not None:  # on the record too: not asked again
            await self._note(found.request, found.response, "record", found.call.service_name)
        return found

    async def _from_cache(self, request: WebSearchRequest) -> WebSearchResponse | None:
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
                async with self._guard(Dependency(f"{SEARCH}:{self._provider.name}")):
                    answer = await self._provider.search(request)
            except LeftAlone as alone:
                raise WebSearchConnectionError(alone.message, retry_after=alone.retry_after) from None
            call |= {"response_data": answer.body, "status_code": answer.status_code}
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


def _past(as_of: datetime | None, asked_at: datetime) -> datetime | None:
    """`as_of`, if it lay in the past when the question was asked."""
    return as_of if as_of and as_of < asked_at - PRESENT else None


def _drop_dates(request: WebSearchRequest) -> WebSearchRequest:
    """The last month is counted from today, and says nothing about then."""
    return request.model_copy(update={"freshness": "noLimit"})


def refine(response: WebSearchResponse, *, as_of: datetime | None = None) -> WebSearchResponse:
    """Each page once, those that say something, newest first and undated last.

    With `as_of` only what was certainly public by then: a page without a date may have been written later.
    """
    once: dict[str, WebSearchResultItem] = {}
    for item in response.results:
        public = as_of is None or (item.published_date is not None and item.published_date <= as_of)
        if public and item.title.strip() and (item.snippet.strip() or (item.summary or "").strip()):
            once.setdefault(same_page(item.url), item)
    newest = sorted(once.values(), key=lambda item: item.published_date or UNDATED, reverse=True)
    return response.model_copy(update={"results": newest})


def same_page(url: str) -> str:
    """The URL without what makes no difference to where it leads. The query string does make one."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:  # no URL at all: the same only as itself
        return url
    host = parts.netloc.lower().removesuffix(f":{DEFAULT_PORTS.get(parts.scheme)}")
    path = "" if parts.path == "/" else parts.path
    return parts._replace(netloc=host, path=path, fragment="").geturl()
