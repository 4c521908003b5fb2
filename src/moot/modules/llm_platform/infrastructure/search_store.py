"""Searches that were made: kept for a while for whoever asks the same, and read back from the record."""

from collections.abc import Sequence
from uuid import UUID

import structlog
from sqlalchemy import Connection, delete, select

from moot.modules.llm_platform.domain.search import (
    CACHE_TIME,
    RecordedSearch,
    WebSearchRequest,
    WebSearchResponse,
)
from moot.modules.llm_platform.infrastructure.search_services import READERS, json_object
from moot.modules.llm_platform.infrastructure.tables import WebSearchCacheRow
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import ExternalAPICallLog
from moot.shared.infrastructure.transactions import transaction, upsert

logger = structlog.get_logger(__name__)

CLEANED_EVERY = 100
"""Writes after which a process takes away what has expired."""


class SqlSearchCache:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._written = 0

    async def get(self, key: str) -> WebSearchResponse | None:
        good = select(WebSearchCacheRow.response_data).where(
            WebSearchCacheRow.cache_key == key, WebSearchCacheRow.expires_at > self._clock.now()
        )
        async with transaction(self._database.session) as db:
            kept = await db.scalar(good)
        return WebSearchResponse.model_validate_json(kept) if kept else None

    async def put(self, key: str, request: WebSearchRequest, response: WebSearchResponse) -> None:
        now = self._clock.now()
        row = {
            "cache_key": key,
            "request_params": request.model_dump(mode="json"),
            "response_data": response.model_dump_json(),
            "created_at": now,
            "expires_at": now + CACHE_TIME[request.freshness],
        }

        def write(db: Connection) -> None:
            upsert(db, WebSearchCacheRow, [row])

        await self._database.write(write)
        self._written += 1
        if self._written % CLEANED_EVERY == 0:
            await self.cleanup_expired()

    async def cleanup_expired(self) -> None:
        expired = delete(WebSearchCacheRow).where(WebSearchCacheRow.expires_at <= self._clock.now())

        def write(db: Connection) -> None:
            db.execute(expired)

        await self._database.write(write)


class SqlSearchRecord:
    """What sessions have searched, whichever service is configured now."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, session_id: UUID, requests: Sequence[WebSearchRequest]) -> RecordedSearch | None:
        """The newest answer, else the newest failure; what went on from the record is no answer of its own."""
        call = ExternalAPICallLog
        asked = {request.key(name): request for request in requests for name in READERS}
        calls = select(call).where(
            call.session_id == session_id,
            call.request_digest.in_(asked),
            call.status.in_(("success", "failed")),
            call.origin != "record",
        )
        newest = calls.order_by(call.created_at.desc(), call.attempt.desc(), call.id.desc())
        async with transaction(self._database.session) as db:
            rows = list(await db.scalars(newest))
        searches = [_search(asked[row.request_digest or ""], row) for row in rows]
        known = [search for search in searches if search is not None]
        return next((search for search in known if search.response), known[0] if known else None)


def _search(request: WebSearchRequest, row: ExternalAPICallLog) -> RecordedSearch | None:
    response = _response(request, row) if row.status == "success" else None
    if row.status == "success" and response is None:
        return None
    return RecordedSearch(
        service=row.service_name,
        request=request,
        asked_at=row.created_at,
        response=response,
        status_code=row.status_code,
        error_message=row.error_message,
    )


def _response(request: WebSearchRequest, row: ExternalAPICallLog) -> WebSearchResponse | None:
    """None for a body that was pruned, or that nobody can read any more."""
    found = json_object(row.response_data or "")
    if found is None:
        return None
    try:
        return (
            WebSearchResponse.model_validate(found)
            if row.origin == "cache"
            else READERS[row.service_name](request, found)
        )
    except ValueError:
        logger.warning("recorded search not read", call_id=str(row.id), service=row.service_name)
        return None
