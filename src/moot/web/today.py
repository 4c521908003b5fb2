"""Today: what is watched and what came of it, what runs, and what waits for somebody."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from moot.modules.coordinator.application.session_history import ResearchSession, SessionFilter
from moot.modules.jobs.application.watch import Watched
from moot.shared.domain.errors import AppError, InvalidInput, NotFound
from moot.shared.domain.facts import Company, DailyBar
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.presentation.caller import wants_page
from moot.web.page import Form, Page, Reader
from moot.web.sessions import name_shares


class ForPeople(APIRoute):
    """Where a program is answered too, by a route of the API behind this one."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if wants_page(Request(scope)) else (Match.NONE, {})


router = APIRouter()
front = APIRouter(route_class=ForPeople)

BACK = 90
"""Days of prices beside a watched share."""
MOST_WATCHED = 30
MOST_SHOWN = 8


@dataclass(frozen=True)
class Line:
    """A watched share: its last verdict, what has happened since, and what comes next."""

    watched: Watched
    closes: Sequence[float] = ()
    price: DailyBar | None = None
    since_verdict: float | None = None
    """How far the price has gone since, as a fraction."""
    news: int = 0
    """Headlines since."""
    next_dates: Sequence[dict[str, Any]] = ()
    locale: str = ""
    """The language in which those are told."""

    @property
    def turned(self) -> bool:
        """The last verdict is another than the one before."""
        last, before = self.watched.last, self.watched.before
        return bool(last and before and last.action != before.action)


@front.get("/")
async def today(page: Reader) -> Response:
    return await _show(page)


@router.post("/watch")
async def watch(page: Reader, form: Form) -> Response:
    try:
        await page.desk.jobs.watchlists(page.workspace).add([form.get("symbol", "")])
    except InvalidInput as e:
        return await _show(page, e, given=form.get("symbol", ""))
    return page.go("/")


@router.post("/watch/remove")
async def unwatch(page: Reader, form: Form) -> Response:
    with suppress(NotFound):  # somebody else was faster
        lists = page.desk.jobs.watchlists(page.workspace)
        await lists.remove([form.get("symbol", "")], form.get("list_name", "default"))
    return page.go("/")


async def _show(page: Page, error: AppError | None = None, given: str = "") -> Response:
    running, recent = await _sessions(page)
    asked = await page.desk.governance.escalations.list_waiting(page.workspace, page_size=MOST_SHOWN)
    watched = (await page.desk.jobs.watchlists(page.workspace).list()).items
    lines = await asyncio.gather(*(_line(page, one) for one in watched[:MOST_WATCHED]))
    new_here = not (watched or recent)
    return page.render(
        "today.html",
        error=error,
        given=given,
        lines=lines,
        more=len(watched) - len(lines),
        running=running,
        names=await name_shares(page, [*running, *recent]),
        recent=[session for session in recent if session.ended][:MOST_SHOWN],
        waiting=asked.items,
        companies=await _demo_companies(page) if new_here else [],
    )


async def _sessions(page: Page) -> tuple[list[ResearchSession], list[ResearchSession]]:
    """Those under way, and the newest of all."""
    history = page.desk.coordinator.session_history()
    wanted = SessionFilter(workspace_id=page.workspace, page_size=MOST_SHOWN)
    running: list[ResearchSession] = []
    for status in ("running", "queued", "waiting"):
        found = await history.sessions(wanted.model_copy(update={"status": status}))
        running += found.items
    return running, (await history.sessions(wanted)).items


async def _line(page: Page, watched: Watched) -> Line:
    """Whatever cannot be had is left out: the list is there without it."""
    told: dict[str, Any] = {}
    with suppress(AppError):
        told |= await _prices(page, watched)
    if watched.last is not None:
        history = page.desk.coordinator.session_history()
        with suppress(AppError):
            result = await history.result(watched.last.session_id, page.workspace)
            told["locale"] = result.locale
            told["next_dates"] = result.verdict.get("next_dates", []) if result.verdict else []
    return Line(watched, **told)


async def _prices(page: Page, watched: Watched) -> dict[str, Any]:
    market, symbol = page.desk.market_data.market_data(), Symbol.parse(watched.symbol)
    now = page.now
    day = symbol.local_date(now)
    bars = await market.daily_bars(symbol, day - timedelta(days=BACK), day, as_of=now, adjusted=True)
    told: dict[str, Any] = {"closes": [bar.close for bar in bars], "price": bars[-1] if bars else None}
    last = watched.last
    if last is None or not bars:
        return told
    then = symbol.local_date(last.as_of)
    ruled_on = next((bar for bar in reversed(bars) if bar.trade_date <= then), bars[0])
    days = (day - then).days
    news = await market.news(symbol, days, as_of=now) if days > 0 else []
    since = bars[-1].close / ruled_on.close - 1
    new = [item for item in news if item.symbol == symbol.text and item.available_at > last.as_of]
    return told | {"since_verdict": since, "news": len(new)}


async def _demo_companies(page: Page) -> list[Company]:
    listed = await page.desk.market_data.directory().list_companies(Market.DEMO)
    return list(listed.values())[:MOST_SHOWN]


router.include_router(front)
