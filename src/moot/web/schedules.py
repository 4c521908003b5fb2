"""Schedules: what is researched on trading days without being asked again, and what came of it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Response

from moot.modules.jobs.presentation import Timed
from moot.shared.domain.errors import AppError
from moot.web.batches import read_request
from moot.web.page import Flaws, Form, Page, Reader
from moot.web.research import ANSWERED

router = APIRouter()

TURNS = {"pause": "pause", "resume": "resume", "run": "run_now", "remove": "remove"}
EVERY = ("day", "week")


@router.get("/schedules")
async def list_schedules(page: Reader, timed: Timed) -> Response:
    return await _show_all(page, timed, page.request.query_params)


@router.post("/schedules")
async def add(page: Reader, form: Form, timed: Timed) -> Response:
    page.desk.work()
    try:
        request = {key: value for key, value in read_request(form, page).items() if key != "name"}
        body: dict[str, Any] = {name: form[name] for name in ("name", "at", "every") if name in form}
        added = await timed.add({"name": "", **body, "request": request})
    except ANSWERED as e:
        return await _show_all(page, timed, form, e)
    return page.go(f"/schedules/{quote(added.name)}")


@router.get("/schedules/{name}")
async def show(page: Reader, name: str, timed: Timed) -> Response:
    return page.render("schedule.html", one=await timed.find(name))


@router.post("/schedules/{name}/{turn}")
async def turn_schedule(page: Reader, name: str, turn: str, timed: Timed) -> Response:
    """The path is one of four: the guard lets no other in."""
    page.desk.work()
    await getattr(timed, TURNS.get(turn, "find"))(name)
    return page.go("/schedules" if turn == "remove" else f"/schedules/{quote(name)}")


async def _show_all(
    page: Page, timed: Timed, given: Mapping[str, str], error: AppError | None = None
) -> Response:
    flaws = Flaws.of(error, page)
    if "request" in flaws.fields:
        flaws = Flaws(flaws.message, flaws.fields | {"universe", "top", "max_cost"})
    found = (await timed.list()).items
    return page.render(
        "schedules.html", status=400 if error else 200, found=found, given=given, every=EVERY, flaws=flaws
    )
