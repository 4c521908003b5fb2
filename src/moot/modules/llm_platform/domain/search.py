"""Searching the web and reading a page: what is asked, what is found, and the ports to who searches and keeps."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field, StringConstraints

from moot.shared.domain.errors import InvalidInput, UpstreamFailed
from moot.shared.domain.validation import Strict

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


class RecordedSearch(BaseModel, frozen=True):
    """A search a session made before: what `service` found at `asked_at`, or why it failed (`response` None)."""

    service: str
    request: WebSearchRequest
    asked_at: AwareDatetime
    response: WebSearchResponse | None = None
    status_code: int | None = None
    error_message: str | None = None


class WebSearchProvider(Protocol):
    """`name` is how the service is called on the record. One call is one request; no retry, no cache, no record.

    Raises `WebSearchError` (an HTTP error, with its status), `WebSearchConnectionError` (network, time-out) or
    `WebSearchConfigError` (no key, found out when it is called, never when it is made).
    """

    name: str

    async def search(self, request: WebSearchRequest) -> SearchAnswer: ...


class Searches(Protocol):
    """Keeps responses as the provider gave them, each for its `CACHE_HOURS`; knows what sessions searched before."""

    async def get(self, key: str) -> WebSearchResponse | None:
        """None when there is none, or none that is still good. What it raises costs no search."""

    async def put(self, key: str, request: WebSearchRequest, response: WebSearchResponse) -> None: ...

    async def find(self, session_id: UUID, requests: Sequence[WebSearchRequest]) -> RecordedSearch | None:
        """The newest answer to one of `requests`, or else its newest failure; None when neither can be read."""


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


class PageRefused(InvalidInput):
    """The page was not read, because of where it lies or what it is; no other attempt changes that."""

    code = "PAGE_REFUSED"


class PageFailed(UpstreamFailed):
    """The page could have been read, but did not come."""

    code = "PAGE_FAILED"


def refine(
    results: Iterable[WebSearchResultItem], *, as_of: datetime | None = None
) -> list[WebSearchResultItem]:
    """Each page once, those that say something, newest first and undated last.

    With `as_of` only what was certainly public by then: a page without a date may have been written later.
    """
    once: dict[str, WebSearchResultItem] = {}
    for item in results:
        public = as_of is None or (item.published_date is not None and item.published_date <= as_of)
        if public and _says_something(item):
            once.setdefault(same_page(item.url), item)
    return sorted(once.values(), key=lambda item: item.published_date or UNDATED, reverse=True)


def same_page(url: str) -> str:
    """The URL without what makes no difference to where it leads. The query string does make one."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:  # no URL at all: the same only as itself
        return url
    host = parts.netloc.lower().removesuffix(f":{DEFAULT_PORTS.get(parts.scheme)}")
    path = "" if parts.path == "/" else parts.path
    return parts._replace(netloc=host, path=path, fragment="").geturl()


def _says_something(item: WebSearchResultItem) -> bool:
    return bool(item.title.strip() and (item.snippet.strip() or (item.summary or "").strip()))
