"""Searching the web over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from moot.modules.llm_platform.application.web_search import WebSearchService
from moot.modules.llm_platform.domain.search import WebSearchRequest, WebSearchResponse
from moot.shared.infrastructure.execution_context import on_behalf_of
from moot.shared.presentation.caller import Workspace

router = APIRouter(prefix="/llm-platform", tags=["models"])


def web_search_service(request: Request) -> WebSearchService:
    service: WebSearchService = request.app.state.llm_platform.web_search_service()
    return service


@router.post("/web-search", summary="Search the web; newest first, undated last")
async def web_search(
    asked: WebSearchRequest,
    service: Annotated[WebSearchService, Depends(web_search_service)],
    workspace: Workspace,
) -> WebSearchResponse:
    with on_behalf_of(workspace):
        return await service.search(asked)
