"""All pages there are, and how an application gets them. A page adds itself with one line of `PAGES`."""

from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles

from moot.web import compare, entry, record, report, research, sessions, today
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
    Place("research", research.router, "/research", "research"),
    Place("sessions", sessions.router, "/sessions"),
    Place("report", report.router),
    Place("record", record.router),
    Place("compare", compare.router, "/compare"),
    Place("entry", entry.router),
)


def install_console(app: FastAPI) -> None:
    """Needs `desk` in the application's state. Pages are not in the OpenAPI document: they are for people."""
    app.state.pages = {place.name for place in PAGES}
    app.state.navigation = [place for place in PAGES if place.path]
    app.state.error_page = show_error
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    for place in PAGES:
        app.include_router(place.router, include_in_schema=False)
