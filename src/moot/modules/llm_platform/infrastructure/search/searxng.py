"""SearXNG, a search service to run oneself. Its JSON format must be switched on (`search.formats`)."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from moot.modules.llm_platform.domain.exceptions import WebSearchConfigError
from moot.modules.llm_platform.domain.search import (
    Freshness,
    SearchAnswer,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchResultItem,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.infrastructure.search.wire import (
    JsonService,
    inner,
    kept_object,
    moment,
    pages,
    text,
)

TIME_RANGE: dict[Freshness | None, str] = {
    "oneDay": "day",
    "oneWeek": "week",
    "oneMonth": "month",
    "oneYear": "year",
}


class SearxngSearch:
    """It has no summaries, and gives as many results as its engines do: the first `count` are kept."""

    name = "searxng"

    def __init__(self, base_url: str, *, timeout: float = 30.0) -> None:
        self._base_url = base_url.strip()
        self._service = JsonService(self.name, self._base_url, timeout)

    async def search(self, request: WebSearchRequest) -> SearchAnswer:
        if not self._base_url:
            raise WebSearchConfigError(SAY("search.no_address"))
        params = {"q": request.query, "format": "json"}
        if request.freshness in TIME_RANGE:
            params["time_range"] = TIME_RANGE[request.freshness]
        status, body, found = await self._service.ask("GET", "/search", params=params)
        return SearchAnswer(response=_response(request, found), status_code=status, body=body)

    async def aclose(self) -> None:
        await self._service.aclose()


def read(request: WebSearchRequest, body: str) -> WebSearchResponse:
    """What a body says that was kept on the record."""
    return _response(request, kept_object(body))


def _response(request: WebSearchRequest, found: Mapping[str, Any]) -> WebSearchResponse:
    total = inner(found, "number_of_results")
    first = islice(pages(inner(found, "results")), request.count)
    return WebSearchResponse(
        query=request.query,
        total_matches=total if isinstance(total, int) and total > 0 else None,  # 0: the engines did not say
        results=[_item(entry) for entry in first],
    )


def _item(entry: Mapping[str, Any]) -> WebSearchResultItem:
    return WebSearchResultItem(
        title=text(entry, "title"),
        url=text(entry, "url"),
        snippet=text(entry, "content"),
        site_name=text(entry, "engine") or None,
        published_date=moment(text(entry, "publishedDate")),
    )
