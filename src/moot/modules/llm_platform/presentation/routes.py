"""Models over HTTP: which there are, what they answer, what they used; and the web, searched on their behalf.

A key goes in and never comes out. Calls are recorded and budgeted like every other.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from moot.modules.llm_platform.application.call_logs import By, UsageReport
from moot.modules.llm_platform.application.config_service import (
    PRESETS,
    ConfigBody,
    ConfigPatch,
    ConfigService,
    ConfigView,
    Preset,
)
from moot.modules.llm_platform.application.llm_service import ChatResult
from moot.modules.llm_platform.application.web_search import WebSearchRequest, WebSearchResponse
from moot.modules.llm_platform.container import LLMPlatformContainer
from moot.modules.llm_platform.domain.chat import compose
from moot.shared.domain.clock import Day
from moot.shared.domain.validation import Strict
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import ErrorBody, refusals

router = APIRouter(prefix="/llm-platform", tags=["models"])

BAD_REQUEST = refusals({400: "the request cannot be accepted; nothing was changed"})
NOT_FOUND = refusals({404: "no model has this alias"})
DUPLICATE = refusals({409: "another model has this alias"})


def llm_platform(request: Request) -> LLMPlatformContainer:
    found: LLMPlatformContainer = request.app.state.llm_platform
    return found


Platform = Annotated[LLMPlatformContainer, Depends(llm_platform)]


def config_service(platform: Platform, caller: Caller) -> ConfigService:
    """Whoever comes with a key is a guest."""
    return platform.config_service(for_guest=caller is not None)


Configs = Annotated[ConfigService, Depends(config_service)]


@router.get("/presets", summary="Vendors and local servers known by name")
async def presets() -> list[Preset]:
    return list(PRESETS.values())


@router.get("/configs", summary="List the models, the preferred first")
async def configs(service: Configs, workspace: Workspace) -> list[ConfigView]:
    return await service.list(workspace)


@router.post("/configs", summary="Add a model", status_code=201, responses=BAD_REQUEST | DUPLICATE)
async def create(body: ConfigBody, service: Configs, workspace: Workspace) -> ConfigView:
    return await service.create(body, workspace)


@router.post("/configs/refresh", summary="Read the stored models again")
async def refresh(service: Configs, workspace: Workspace) -> list[ConfigView]:
    return await service.list(workspace)


@router.get("/configs/{alias}", summary="One model", responses=NOT_FOUND)
async def config(alias: str, service: Configs, workspace: Workspace) -> ConfigView:
    return await service.get(alias, workspace)


@router.patch("/configs/{alias}", summary="Change a model", responses=BAD_REQUEST | NOT_FOUND)
async def change(alias: str, patch: ConfigPatch, service: Configs, workspace: Workspace) -> ConfigView:
    """Only the fields sent change; a null puts one back to its default."""
    return await service.update(alias, patch, workspace)


@router.delete(
    "/configs/{alias}", summary="Remove a model", status_code=204, responses=BAD_REQUEST | NOT_FOUND
)
async def remove(alias: str, service: Configs, workspace: Workspace) -> None:
    await service.remove(alias, workspace)


@router.get(
    "/usage",
    summary="Calls, tokens and cost by model, agent or day",
    responses={400: {"model": ErrorBody}, **refusals({503: "nothing is stored"})},
)
async def usage(
    platform: Platform,
    workspace: Workspace,
    by: By = "model",
    since: Annotated[Day | None, Query(description="first day (UTC); default: all days")] = None,
) -> UsageReport:
    return await platform.usage_service().usage(by, workspace, since)


class GenerateBody(Strict):
    prompt: str = Field(min_length=1)
    system_message: str | None = None
    alias: str | None = Field(default=None, description="this model alone")
    tags: list[str] | None = Field(
        default=None, max_length=100, description="a model that holds all of these"
    )
    temperature: float = Field(default=0.7, ge=0, le=2)


@router.post(
    "/chat/generate",
    summary="What a model answers to a prompt",
    responses={400: {"model": ErrorBody}, **refusals({503: "no model answered, or the budget is spent"})},
)
async def generate(body: GenerateBody, platform: Platform, workspace: Workspace) -> ChatResult:
    with ExecutionContext(workspace=workspace).active():
        messages = compose(body.prompt, body.system_message)
        how = body.model_dump(exclude={"prompt", "system_message"})
        return await platform.llm_service().chat(messages, **how, caller_module="api")


@router.post(
    "/web-search",
    summary="Search the web; newest first, undated last",
    responses=refusals({503: "no search is set up, or none answered"}),
)
async def web_search(asked: WebSearchRequest, platform: Platform, workspace: Workspace) -> WebSearchResponse:
    with ExecutionContext(workspace=workspace).active():
        return await platform.web_search.search(asked)
