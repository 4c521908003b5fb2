"""Bocha's web search: one POST, a Bing-shaped answer in an envelope of its own."""

from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from moot.modules.llm_platform.domain.exceptions import WebSearchConfigError
from moot.modules.llm_platform.domain.search import (
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
    said,
    text,
)


class BochaSearch:
    name = "bochai"

    def __init__(self, api_key: SecretStr, base_url: str, *, timeout: float = 30.0) -> None:
        self._key = api_key.get_secret_value().strip()
        self._service = JsonService(self.name, base_url, timeout, secret=self._key)

    async def search(self, request: WebSearchRequest) -> SearchAnswer:
        if not self._key:
            raise WebSearchConfigError(SAY("search.no_key"))
        status, body, found = await self._service.ask(
            "POST",
            "/v1/web-search",
            json=request.model_dump(exclude_none=True),
            headers={"Authorization": f"Bearer {self._key}"},
        )
        if (code := found.get("code", 200)) not in (200, "200"):
            raise self._service.refused(status, said(found), code=code)
        return SearchAnswer(response=_response(request, found), status_code=status, body=body)

    async def aclose(self) -> None:
        await self._service.aclose()


def read(request: WebSearchRequest, body: str) -> WebSearchResponse:
    """What a body says that was kept on the record."""
    return _response(request, kept_object(body))


def _response(request: WebSearchRequest, found: Mapping[str, Any]) -> WebSearchResponse:
    total = inner(found, "data", "webPages", "totalEstimatedMatches")
    listed = pages(inner(found, "data", "webPages", "value"))
    return WebSearchResponse(
        query=request.query,
        total_matches=total if isinstance(total, int) else None,
        results=[_item(entry) for entry in listed],
    )


def _item(entry: Mapping[str, Any]) -> WebSearchResultItem:
    """`dateLastCrawled` is not read: it has a Z that does not mean UTC, and a crawl is no publication."""
    return WebSearchResultItem(
        title=text(entry, "name"),
        url=text(entry, "url"),
        snippet=text(entry, "snippet"),
        summary=text(entry, "summary") or None,
        site_name=text(entry, "siteName") or None,
        published_date=moment(text(entry, "datePublished")),
    )
