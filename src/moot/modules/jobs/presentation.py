"""Watch-lists, schedules and notifications over HTTP. Places that are told are added on the desk's own machine only:
what is sent from it reaches its network."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from moot.modules.jobs.application.destinations import DestinationView
from moot.modules.jobs.application.schedules import ScheduleBody, ScheduleList, Schedules, ScheduleView
from moot.modules.jobs.application.watch import DEFAULT_LIST, WatchBody, Watchlist, Watchlists
from moot.modules.jobs.container import JobsContainer
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import refusals

watching = APIRouter(prefix="/watchlists", tags=["watch-lists"])
timing = APIRouter(prefix="/schedules", tags=["schedules"])
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


def schedules(request: Request, workspace: Workspace, caller: Caller) -> Schedules:
    jobs: JobsContainer = request.app.state.jobs
    return jobs.schedules(workspace, caller)


Timed = Annotated[Schedules, Depends(schedules)]
ScheduleName = Annotated[str, Path(description="the schedule's name")]
UNKNOWN = {**refusals({404: "no schedule of that name"}), **NOT_STORED}


@timing.get("", summary="What is researched without being asked again", responses=NOT_STORED)
async def list_schedules(timed: Timed) -> ScheduleList:
    """Each with its last run."""
    return await timed.list()


@timing.post(
    "",
    summary="Research something on trading days from now on",
    responses={
        **refusals({400: "what could not be researched now", 409: "the name is taken"}),
        **NOT_STORED,
    },
)
async def add_schedule(body: ScheduleBody, timed: Timed) -> ScheduleView:
    return await timed.add(body)


@timing.get("/{name}", summary="A schedule, with its latest runs", responses=UNKNOWN)
async def show_schedule(name: ScheduleName, timed: Timed) -> ScheduleView:
    return await timed.find(name)


@timing.delete("/{name}", summary="Research it no more", responses=UNKNOWN)
async def remove_schedule(name: ScheduleName, timed: Timed) -> ScheduleView:
    """A batch that has begun goes on, what had still to begin does not."""
    return await timed.remove(name)


@timing.post("/{name}/pause", summary="Let nothing fall due until it is resumed", responses=UNKNOWN)
async def pause_schedule(name: ScheduleName, timed: Timed) -> ScheduleView:
    return await timed.pause(name)


@timing.post("/{name}/resume", summary="Go on with the next due moment", responses=UNKNOWN)
async def resume_schedule(name: ScheduleName, timed: Timed) -> ScheduleView:
    """What would have been due meanwhile is not made up for."""
    return await timed.resume(name)


@timing.post("/{name}/run", summary="Once more, as of now", responses=UNKNOWN)
async def run_schedule(name: ScheduleName, timed: Timed) -> ScheduleView:
    """It waits for a worker; the next due moment stays as it is."""
    return await timed.run_now(name)


@telling.get(
    "/destinations",
    summary="Where notifications go, how many went there, and what was wrong last",
    responses=NOT_STORED,
)
async def destinations(request: Request, workspace: Workspace) -> list[DestinationView]:
    """Without what is secret of an address."""
    jobs: JobsContainer = request.app.state.jobs
    return await jobs.destinations(workspace).list()
