"""Watch-lists and notifications over HTTP. Places that are told are added on the desk's own machine only: what is
sent from it reaches its network."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from moot.modules.jobs.application.destinations import DestinationView
from moot.modules.jobs.application.watch import DEFAULT_LIST, WatchBody, Watchlist, Watchlists
from moot.modules.jobs.container import JobsContainer
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import refusals

watching = APIRouter(prefix="/watchlists", tags=["watch-lists"])
telling = APIRouter(prefix="/notifications", tags=["notifications"])

BAD_REQUEST = refusals({400: "a symbol that nobody knows, or too many of them"})
NOT_STORED = refusals({503: "nothing is stored"})


def watchlists(request: Request, workspace: Workspace) -> Watchlists:
    jobs: JobsContainer = request.app.state.jobs
    return jobs.watchlists(workspace)


Lists = Annotated[Watchlists, Depends(watchlists)]
OneList = Annotated[str, Query(description="which list")]


@watching.get("", summary="What is watched, with the last verdict on each", responses=NOT_STORED)
async def watched(
    lists: Lists, list_name: Annotated[str | None, Query(description="that list only")] = None
) -> Watchlist:
    return await lists.list(list_name)


@watching.post("", summary="Put symbols on a list", responses={**BAD_REQUEST, **NOT_STORED})
async def add(body: WatchBody, lists: Lists) -> Watchlist:
    """All of them or, where one means no share or several, none. One that is on the list stays on it."""
    return await lists.add(body.symbols, body.list_name)


@watching.delete(
    "",
    summary="Take symbols off a list",
    responses={**BAD_REQUEST, **refusals({404: "not on the list"}), **NOT_STORED},
)
async def remove(
    lists: Lists,
    symbol: Annotated[list[str], Query(description="a code in any spelling, or a name; may be repeated")],
    list_name: OneList = DEFAULT_LIST,
) -> Watchlist:
    return await lists.remove(symbol, list_name)


@telling.get(
    "/destinations",
    summary="Where notifications go, how many went there, and what was wrong last",
    responses=NOT_STORED,
)
async def destinations(request: Request, workspace: Workspace) -> list[DestinationView]:
    """Without what is secret of an address."""
    jobs: JobsContainer = request.app.state.jobs
    return await jobs.destinations(workspace).list()
