"""Pages that the search service of the model platform finds, each as one line of untrusted text."""

import asyncio
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import structlog

from moot.modules.llm_platform.application.web_search import WebSearchRequest, WebSearchService
from moot.modules.research.application.expert_service import Findings, Passage, WebSearch
from moot.shared.domain.errors import AppError
from moot.shared.domain.symbol import Symbol

logger = structlog.get_logger(__name__)

LONGEST: Final = 300
MOST: Final = 4
"""Passages of a dimension that are read: everybody after the expert is shown them too, and pays for them."""
SOURCE: Final = "web"
ADDRESS: Final = r"""://[^\s<>"`\\]{1,500}"""
REAL_PAGE: Final = re.compile(rf"(?i:https?){ADDRESS}")
MADE_UP_PAGE: Final = re.compile(rf"demo{ADDRESS}")


async def find_on_web(
    service: WebSearchService, queries: Mapping[WebSearch, str], symbol: Symbol, as_of: datetime
) -> Findings:
    searches = [_search(service, search, query, symbol, as_of) for search, query in queries.items()]
    return dict(zip(queries, await asyncio.gather(*searches), strict=True))


async def _search(
    service: WebSearchService, search: WebSearch, query: str, symbol: Symbol, as_of: datetime
) -> list[Passage]:
    request = WebSearchRequest(query=query, freshness=search.freshness, count=search.count)
    try:
        response = await service.search(request, as_of=as_of)
    except AppError as e:
        logger.warning("web search failed", query=query, dimension=search.dimension, error=str(e))
        return []
    page = MADE_UP_PAGE if symbol.synthetic else REAL_PAGE
    return [
        Passage(
            text=_text(item.title, (item.summary or "").strip() or item.snippet),
            url=item.url,
            source=SOURCE,
            published=item.published_date and symbol.local_date(item.published_date),
            available_at=item.published_date or as_of,
        )
        for item in response.results
        # an address that cannot end a quotation, in the world the symbol belongs to
        if item.url.isprintable()
        and page.fullmatch(item.url)
        # a page without a date is left to the search, which lets none pass to a session of the past
        and (item.published_date is None or item.published_date <= as_of)
    ][:MOST]


def _text(title: str, said: str) -> str:
    """Many a text begins with its title. A number that is cut in two would be another number."""
    heading, text = _line(title), _line(said)
    whole = text if text.startswith(heading) else f"{heading}: {text}"
    if len(whole) <= LONGEST:
        return whole
    return whole[: LONGEST - 1].rstrip("0123456789.,%+- ") + "…"


def _line(text: str) -> str:
    """Nothing in it ends a line, or hides."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
