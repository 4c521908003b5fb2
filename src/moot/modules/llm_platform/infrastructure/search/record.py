"""Searches on the record, read back by the same code that read them when they were live."""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import structlog

from moot.modules.llm_platform.domain.call_record import ExternalCallItem
from moot.modules.llm_platform.domain.search import RecordedSearch, WebSearchRequest, WebSearchResponse
from moot.modules.llm_platform.infrastructure.call_log_reader import SqlCallLogReader
from moot.modules.llm_platform.infrastructure.search import bocha, searxng
from moot.modules.llm_platform.infrastructure.search.bocha import BochaSearch
from moot.modules.llm_platform.infrastructure.search.demo import DemoSearch
from moot.modules.llm_platform.infrastructure.search.searxng import SearxngSearch

logger = structlog.get_logger(__name__)


def normalised(request: WebSearchRequest, body: str) -> WebSearchResponse:
    """As the cache and the demo market's search write it."""
    return WebSearchResponse.model_validate_json(body)


READERS: Mapping[str, Callable[[WebSearchRequest, str], WebSearchResponse]] = {
    BochaSearch.name: bocha.read,
    SearxngSearch.name: searxng.read,
    DemoSearch.name: normalised,
}


class SqlSearchRecord:
    """A `SearchRecord` over the call logs."""

    def __init__(self, reader: SqlCallLogReader) -> None:
        self._reader = reader

    async def find(self, session_id: UUID, requests: Sequence[WebSearchRequest]) -> RecordedSearch | None:
        asked = {request.key(name): request for request in requests for name in READERS}
        calls = await self._reader.asked_before(session_id, list(asked))
        searches = [_search(asked[call.request_digest or ""], call) for call in reversed(calls)]
        known = [search for search in searches if search is not None]
        return next((search for search in known if search.response), known[0] if known else None)


def _search(request: WebSearchRequest, call: ExternalCallItem) -> RecordedSearch | None:
    response = None
    if call.status == "success":
        response = _response(request, call)
        if response is None:
            return None
    return RecordedSearch(
        service=call.service_name,
        request=request,
        asked_at=call.created_at,
        response=response,
        status_code=call.status_code,
        error_message=call.error_message,
    )


def _response(request: WebSearchRequest, call: ExternalCallItem) -> WebSearchResponse | None:
    """None for a body that was pruned, or that nobody can read any more."""
    if not call.response_data:
        return None
    read = normalised if call.origin == "cache" else READERS[call.service_name]
    try:
        return read(request, call.response_data)
    except ValueError:
        logger.warning("recorded search not read", call_id=str(call.id), service=call.service_name)
        return None
