"""Batches, watch-lists, schedules and notifications over HTTP. Places that are told are added on the desk's own
machine only: what is sent from it reaches its network."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from moot.modules.jobs.application.batch_report import MEDIA, render
from moot.modules.jobs.application.batches import (
    BatchPage,
    BatchRequest,
    BatchResults,
    BatchService,
    BatchView,
    Format,
)
from moot.modules.jobs.application.destinations import DestinationView
from moot.modules.jobs.application.schedules import ScheduleBody, ScheduleList, ScheduleService, ScheduleView
from moot.modules.jobs.application.watch import DEFAULT_LIST, WatchBody, Watchlist, WatchlistService
from moot.modules.jobs.container import JobsContainer
from moot.shared.domain.ids import LAST_PAGE, MOST_PER_PAGE
from moot.shared.presentation.caller import Caller, Reader, Workspace
from moot.shared.presentation.errors import refusals

watching = APIRouter(prefix="/watchlists", tags=["watch-lists"])
batching = APIRouter(prefix="/batches", tags=["batches"])
timing = APIRouter(prefix="/schedules", tags=["schedules"])
telling = APIRouter(prefix="/notifications", tags=["notifications"])

BAD_REQUEST = refusals({400: "a symbol that nobody knows, or too many of them"})
NOT_STORED = refusals({503: "nothing is stored"})


def watchlists(request: Request, workspace: Workspace) -> WatchlistService:
    jobs: JobsContainer = request.app.state.jobs
    return jobs.watchlists(workspace)


Lists = Annotated[WatchlistService, Depends(watchlists)]
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


def schedules(request: Request, workspace: Workspace, caller: Caller) -> ScheduleService:
    jobs: JobsContainer = request.app.state.jobs
    return jobs.schedules(workspace, caller)


Timed = Annotated[ScheduleService, Depends(schedules)]
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


def batches(request: Request, workspace: Workspace) -> BatchService:
    jobs: JobsContainer = request.app.state.jobs
    return jobs.batches(workspace)


Batches = Annotated[BatchService, Depends(batches)]


async def one_batch(
    batches: Batches,
    batch_id: Annotated[str, Path(description="its id, the beginning of it, or `last`")],
) -> UUID:
    return await batches.find_id(batch_id)


OneBatch = Annotated[UUID, Depends(one_batch)]
OF_ONE = {**refusals({404: "there is no such batch"}), **NOT_STORED}
TURNING = {**OF_ONE, **refusals({409: "it is not in a state for that"})}
AS_TEXT_ONLY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


@batching.post(
    "",
    summary="Look through many shares, and have the desk judge those that lead",
    status_code=202,
    responses={**refusals({400: "a universe with something in it that means no share"}), **NOT_STORED},
)
async def start(body: BatchRequest, batches: Batches, caller: Caller, reader: Reader) -> BatchView:
    """It is stored when this answers; a worker sees to it."""
    if "locale" not in body.model_fields_set:
        body = body.model_copy(update={"locale": reader})
    return await batches.start(body, requested_by=caller)


@batching.get("", summary="The batches, newest first", responses=NOT_STORED)
async def find_all(
    batches: Batches,
    name: Annotated[str | None, Query(description="only those of this name")] = None,
    page: Annotated[int, Query(ge=1, le=LAST_PAGE)] = 1,
    page_size: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = 20,
) -> BatchPage:
    return await batches.find_all(name, page=page, page_size=page_size)


@batching.get("/{batch_id}", summary="One batch, and how far it is", responses=OF_ONE)
async def batch(batches: Batches, batch_id: OneBatch) -> BatchView:
    return await batches.find(batch_id)


@batching.post("/{batch_id}/pause", summary="Let nothing new begin", responses=TURNING)
async def pause(batches: Batches, batch_id: OneBatch) -> BatchView:
    """What runs comes to its end."""
    return await batches.pause(batch_id)


@batching.post("/{batch_id}/resume", summary="Go on with one that was paused", responses=TURNING)
async def resume(batches: Batches, batch_id: OneBatch) -> BatchView:
    return await batches.resume(batch_id)


@batching.post("/{batch_id}/cancel", summary="Cancel what waits and what runs", responses=TURNING)
async def cancel(batches: Batches, batch_id: OneBatch) -> BatchView:
    """What another process runs stops when that looks up: `ended_at` tells that all has."""
    return await batches.cancel(batch_id)


@batching.get(
    "/{batch_id}/results",
    summary="The ranked table, as far as there is one: JSON, CSV, Parquet or HTML",
    response_model=BatchResults,
    responses={**OF_ONE, 200: {"content": {media_type: {} for media_type in MEDIA.values()}}},
)
async def results(
    batches: Batches,
    batch_id: OneBatch,
    reader: Reader,
    to: Annotated[Format, Query(alias="format", description="json, csv, parquet or html")] = "json",
) -> Response:
    """Text in a CSV is never a formula, and in HTML never a tag."""
    found = await batches.results(batch_id)
    headers = AS_TEXT_ONLY | {"Content-Language": reader}
    if to in ("csv", "parquet"):
        headers["Content-Disposition"] = f'attachment; filename="batch-{batch_id}.{to}"'
    return Response(render(found, to, reader), media_type=MEDIA[to], headers=headers)
