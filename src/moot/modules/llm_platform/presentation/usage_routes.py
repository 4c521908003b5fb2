"""What the desk has used, over HTTP."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from moot.modules.llm_platform.application.spending import By, UsageReport, UsageService
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/llm-platform", tags=["models"])


def usage_service(request: Request) -> UsageService:
    found: UsageService = request.app.state.llm_platform.usage_service()
    return found


@router.get(
    "/usage",
    summary="Calls, tokens and cost by model, agent or day",
    responses={400: {"model": ErrorBody}, 503: {"model": ErrorBody, "description": "nothing is stored"}},
)
async def usage(
    service: Annotated[UsageService, Depends(usage_service)],
    workspace: Workspace,
    by: By = "model",
    since: Annotated[
        date | None, Query(description="first day (UTC); default: since there is a record")
    ] = None,
) -> UsageReport:
    return await service.usage(by, workspace, since)
