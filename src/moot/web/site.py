"""All pages there are, and how an application gets them. A page adds itself with one line of `PAGES`."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from moot.shared.presentation.caller import is_api
from moot.web import (
    approvals,
    ask,
    batches,
    compare,
    data,
    entry,
    record,
    report,
    research,
    rules,
    schedules,
    sessions,
    settings,
    today,
    track_record,
)
from moot.web.page import show_error


class Place(NamedTuple):
    """Where a page is found: `name` is its text below `nav`; whoever has not the `scope` does not see it offered.

    Without a `path` it is reached from other pages alone.
    """

    name: str
    router: APIRouter
    path: str = ""
    scope: str = "read"


PAGES = (
    Place("today", today.router, "/"),
    Place("ask", ask.router, "/ask"),
    Place("research", research.router, "/research", "research"),
    Place("sessions", sessions.router, "/sessions"),
    Place("report", report.router),
    Place("record", record.router),
    Place("compare", compare.router, "/compare"),
    Place("batches", batches.router, "/batches"),
    Place("schedules", schedules.router, "/schedules"),
    Place("approvals", approvals.router, "/approvals"),
    Place("rules", rules.router, "/rules"),
    Place("track_record", track_record.router, "/track-record"),
    Place("data", data.router, "/data"),
    Place("settings", settings.router, "/settings"),
    Place("entry", entry.router),
)


class Compressed(GZipMiddleware):
    """What people look at; what programs read may be a stream, which would be held back."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for_programs = scope["type"] != "http" or is_api(scope["path"])
        await (self.app if for_programs else super().__call__)(scope, receive, send)


def install_console(app: FastAPI) -> None:
    """Needs `desk` in the application's state. Pages are not in the OpenAPI document: they are for people."""
    app.state.navigation = [place for place in PAGES if place.path]
    app.state.error_page = show_error
    app.add_middleware(Compressed, compresslevel=6)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.router.routes.extend(_routes())


@cache
def _routes() -> list[BaseRoute]:
    """The same for all applications of a process."""
    whole = APIRouter()
    for place in PAGES:
        whole.include_router(place.router, include_in_schema=False)
    return whole.routes
