"""The models of the desk over HTTP. A key goes in and never comes out."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from moot.modules.llm_platform.application.config_service import (
    PRESETS,
    ConfigBody,
    ConfigPatch,
    ConfigService,
    ConfigView,
    Preset,
)
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/llm-platform", tags=["models"])

Responses = dict[int | str, dict[str, Any]]
BAD_REQUEST: Responses = {
    400: {"model": ErrorBody, "description": "the request cannot be accepted; nothing was changed"}
}
NOT_FOUND: Responses = {404: {"model": ErrorBody, "description": "no model has this alias"}}
DUPLICATE: Responses = {409: {"model": ErrorBody, "description": "another model has this alias"}}


def config_service(request: Request) -> ConfigService:
    service: ConfigService = request.app.state.llm_platform.config_service()
    return service


Service = Annotated[ConfigService, Depends(config_service)]


@router.get("/presets", summary="Vendors and local servers known by name")
async def presets() -> list[Preset]:
    return list(PRESETS.values())


@router.get("/configs", summary="List the models, the preferred first")
async def configs(service: Service, workspace: Workspace) -> list[ConfigView]:
    return await service.list(workspace)


@router.post("/configs", summary="Add a model", status_code=201, responses=BAD_REQUEST | DUPLICATE)
async def create(body: ConfigBody, service: Service, workspace: Workspace) -> ConfigView:
    return await service.create(body, workspace)


@router.post("/configs/refresh", summary="Read the stored models again")
async def refresh(service: Service, workspace: Workspace) -> list[ConfigView]:
    return await service.refresh(workspace)


@router.get("/configs/{alias}", summary="One model", responses=NOT_FOUND)
async def config(alias: str, service: Service, workspace: Workspace) -> ConfigView:
    return await service.get(alias, workspace)


@router.patch("/configs/{alias}", summary="Change a model", responses=BAD_REQUEST | NOT_FOUND)
async def change(alias: str, patch: ConfigPatch, service: Service, workspace: Workspace) -> ConfigView:
    """Only the fields sent change; a null puts one back to its default."""
    return await service.update(alias, patch, workspace)


@router.delete(
    "/configs/{alias}", summary="Remove a model", status_code=204, responses=BAD_REQUEST | NOT_FOUND
)
async def remove(alias: str, service: Service, workspace: Workspace) -> None:
    await service.remove(alias, workspace)
