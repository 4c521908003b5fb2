"""Searches of the web: the services that make them over HTTP, a cache for a while, and the record to read them from.

Bocha and an instance of SearXNG both answer carelessly, so nothing is believed to be there before it is looked at.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar
from uuid import UUID

import aiohttp
import structlog
from pydantic import SecretStr
from sqlalchemy import delete, select

from moot.modules.llm_platform.application.web_search import (
    CACHE_HOURS,
    RecordedSearch,
    SearchAnswer,
    Searches,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchResultItem,
)
from moot.modules.llm_platform.domain.call_record import ExternalCallItem
from moot.modules.llm_platform.domain.exceptions import (
    WebSearchConfigError,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.infrastructure.call_journal import SqlCallLogs
from moot.modules.llm_platform.infrastructure.public_web import read_body
from moot.modules.llm_platform.infrastructure.tables import WebSearchCacheRow
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.tables import ExternalAPICallLog
from moot.shared.infrastructure.transactions import upsert

logger = structlog.get_logger(__name__)

LARGEST_ANSWER = 8_000_000
TOLD = 200
"""Characters of a service's own words that are passed on when it refuses."""

LAST_ON_EARTH = timezone(timedelta(hours=-12))
"""A time without a zone is taken for the latest moment it can mean, so that nothing is believed known too early."""

TIME_RANGE = {"oneDay": "day", "oneWeek": "week", "oneMonth": "month", "oneYear": "year"}

Found = Mapping[str, Any]


class JsonSearch:
    """The way to one service. `api_key` is taken out of whatever it says back.

    `pages` and `total` are where it puts what it found; `fields` how it names what is said of a page.
    """

    name: str
    pages: tuple[str, ...]
    total: tuple[str, ...]
    fields: ClassVar[Mapping[str, str]]

    def __init__(self, base_url: str, api_key: SecretStr | None = None, *, timeout: float = 30.0) -> None:
        self._base_url = base_url.strip().rstrip("/")
        self._secret = api_key.get_secret_value().strip() if api_key else ""
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(timeout=self._timeout, trust_env=True)

    async def aclose(self) -> None:
        if "_session" in vars(self):
            await self._session.close()

    @classmethod
    def read(cls, request: WebSearchRequest, found: Found) -> WebSearchResponse:
        """The first `count` pages. A total of 0: the engines did not say."""
        total, entries = _inner(found, *cls.total), _pages(_inner(found, *cls.pages))
        return WebSearchResponse(
            query=request.query,
            total_matches=total if isinstance(total, int) and total > 0 else None,
            results=[cls._page(entry) for entry in islice(entries, request.count)],
        )

    @classmethod
    def _page(cls, entry: Found) -> WebSearchResultItem:
        said = {name: _text(entry, key) for name, key in cls.fields.items()}
        unsaid = {name: said.get(name) or None for name in ("summary", "site_name")}
        dated = {"published_date": _moment(said["published_date"])}
        return WebSearchResultItem.model_validate(said | unsaid | dated)

    async def _ask(self, asked: WebSearchRequest, method: str, path: str, **sent: Any) -> SearchAnswer:
        """What was found, and the body as the record will hold it."""
        url = self._base_url + path
        try:
            async with self._session.request(method, url, allow_redirects=False, **sent) as answer:
                status, raw = answer.status, await read_body(answer, LARGEST_ANSWER)
            if len(raw) > LARGEST_ANSWER:
                raise aiohttp.ClientPayloadError("too large")
        except (aiohttp.ClientError, OSError) as e:  # by kind only: its text may quote the request
            message = SAY("search.unreachable", service=self.name, error=type(e).__name__)
            raise WebSearchConnectionError(message) from e
        body = raw.decode("utf-8", "replace")
        found = json_object(body)
        if status != 200:
            raise self._make_refusal(status, _said(found) or body)
        if found is None:
            raise WebSearchError(SAY("search.unreadable", service=self.name), status_code=status)
        if (code := found.get("code", 200)) not in (200, "200"):
            raise self._make_refusal(status, _said(found), code)
        kept = REDACT(body)
        response = self.read(asked, found if kept == body else json_object(kept) or found)
        return SearchAnswer(response=response, status_code=status, body=kept)

    def _make_refusal(self, status: int, words: str, code: object = None) -> WebSearchError:
        """`code` is what the body said where the status said otherwise."""
        quoted = words.replace(self._secret, "***") if self._secret else words
        message = SAY("search.refused", service=self.name, code=code or status, said=quoted[:TOLD].strip())
        return WebSearchError(message, status_code=status)


class BochaSearch(JsonSearch):
    """One POST, a Bing-shaped answer in an envelope of its own.

    `dateLastCrawled` is not read: it has a Z that does not mean UTC, and a crawl is no publication.
    """

    name = "bochai"
    pages = ("data", "webPages", "value")
    total = ("data", "webPages", "totalEstimatedMatches")
    fields: ClassVar[Mapping[str, str]] = {
        **{"title": "name", "url": "url", "snippet": "snippet", "summary": "summary"},
        **{"site_name": "siteName", "published_date": "datePublished"},
    }

    async def search(self, request: WebSearchRequest) -> SearchAnswer:
        if not self._secret:
            raise WebSearchConfigError(SAY("search.no_key"))
        sent = request.model_dump(exclude_none=True)
        key = {"Authorization": f"Bearer {self._secret}"}
        return await self._ask(request, "POST", "/v1/web-search", json=sent, headers=key)


class SearxngSearch(JsonSearch):
    """It has no summaries, and gives as many results as its engines do.

    Its JSON format must be switched on (`search.formats`).
    """

    name = "searxng"
    pages, total = ("results",), ("number_of_results",)
    fields: ClassVar[Mapping[str, str]] = {
        **{"title": "title", "url": "url", "snippet": "content"},
        **{"site_name": "engine", "published_date": "publishedDate"},
    }

    async def search(self, request: WebSearchRequest) -> SearchAnswer:
        params = {"q": request.query, "format": "json"}
        if request.freshness in TIME_RANGE:
            params["time_range"] = TIME_RANGE[request.freshness]
        return await self._ask(request, "GET", "/search", params=params)


SERVICES = {service.name: service for service in (BochaSearch, SearxngSearch)}
"""For the record: a search is read back as it was read when it was live."""


def json_object(body: str) -> Found | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _said(found: Found | None) -> str:
    """A service's own words about what went wrong."""
    return next((_text(found, name) for name in ("message", "msg", "error") if _text(found, name)), "")


def _inner(found: object, *path: str) -> object:
    """What lies along `path`; None as soon as something is missing on the way."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _text(found: object, name: str) -> str:
    """Only text is text: a missing key, null or anything else is the empty string."""
    value = _inner(found, name)
    return value.strip() if isinstance(value, str) else ""


def _pages(listed: object) -> Iterator[Found]:
    """The entries that lead to a page: others cannot be quoted, and must not be clicked on."""
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping) and _text(entry, "url").lower().startswith(("http://", "https://")):
            yield entry


def _moment(written: str) -> datetime | None:
    """When, in UTC; None where the text is no moment."""
    try:
        when = datetime.fromisoformat(written)
        if when.tzinfo is None:
            when = when.replace(tzinfo=LAST_ON_EARTH)
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class SqlSearches(Searches):
    """Keeps what was found for a while, and finds what sessions searched, whichever service is configured now."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def get(self, key: str) -> WebSearchResponse | None:
        good = select(WebSearchCacheRow.response_data).where(
            WebSearchCacheRow.cache_key == key, WebSearchCacheRow.expires_at > self._clock.now()
        )
        kept = await self._database.scalar(good)
        return WebSearchResponse.model_validate_json(kept) if kept else None

    async def put(self, key: str, request: WebSearchRequest, response: WebSearchResponse) -> None:
        await self.cleanup_expired()
        now = self._clock.now()
        row = {
            "cache_key": key,
            "request_params": request.model_dump(mode="json"),
            "response_data": response.model_dump_json(),
            "created_at": now,
            "expires_at": now + timedelta(hours=CACHE_HOURS[request.freshness]),
        }
        await self._database.write(lambda db: upsert(db, WebSearchCacheRow, [row]))

    async def cleanup_expired(self) -> None:
        expired = delete(WebSearchCacheRow).where(WebSearchCacheRow.expires_at <= self._clock.now())
        await self._database.write(lambda db: db.execute(expired))

    async def find(self, session_id: UUID, requests: Sequence[WebSearchRequest]) -> RecordedSearch | None:
        """The newest answer, else the newest failure; what went on from the record is no answer of its own."""
        call = ExternalAPICallLog
        asked = {request.key(name): request for request in requests for name in SERVICES}
        calls = await SqlCallLogs(self._database, call, ExternalCallItem).find(
            call.session_id == session_id,
            call.request_digest.in_(asked),
            call.status.in_(("success", "failed")),
            call.origin != "record",
        )
        known = [
            RecordedSearch(item, request, response)
            for item in reversed(calls)
            for request in [asked[item.request_digest or ""]]
            for response in [_response(request, item)]
            if response or item.error_message
        ]
        return next((search for search in known if search.response), known[0] if known else None)


def _response(request: WebSearchRequest, call: ExternalCallItem) -> WebSearchResponse | None:
    """None for a body that was never there, was pruned, or that nobody can read any more."""
    found = json_object(call.response_data or "")
    if found is None:
        return None
    try:
        if call.origin == "cache":
            return WebSearchResponse.model_validate(found)
        return SERVICES[call.service_name].read(request, found)
    except ValueError:
        logger.warning("recorded search not read", call_id=str(call.id), service=call.service_name)
        return None
