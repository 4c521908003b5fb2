"""Notifications over HTTP: where they go and how they fare. Places are added on the desk's own machine only: what
is sent from it reaches its network."""

from fastapi import APIRouter, Request

from moot.modules.jobs.application.destinations import DestinationView
from moot.modules.jobs.container import JobsContainer
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import refusals

router = APIRouter(prefix="/notifications", tags=["notifications"])


@router.get(
    "/destinations",
    summary="Where notifications go, how many went there, and what was wrong last",
    responses=refusals({503: "nothing is stored"}),
)
async def destinations(request: Request, workspace: Workspace) -> list[DestinationView]:
    """Without what is secret of an address."""
    jobs: JobsContainer = request.app.state.jobs
    return await jobs.destinations(workspace).list()
