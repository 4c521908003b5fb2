"""Track record: what shares did after the desk had ruled on them, and how to measure more than a handful."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from fastapi import APIRouter, Response

from moot.modules.coordinator.application.session_history import ResearchSession, SessionFilter
from moot.modules.coordinator.application.session_queue import WHAT_IF
from moot.shared.domain.claims import Action
from moot.shared.domain.errors import AppError
from moot.shared.domain.symbol import Symbol
from moot.web.page import Page, Reader
from moot.web.sessions import name_shares

router = APIRouter()

MOST_SHOWN = 50
ACTIONS: tuple[Action, ...] = get_args(Action)
CALENDAR_DAYS = 2
"""At most, for each session of an exchange, holidays included."""


@dataclass(frozen=True)
class Ruled:
    """A verdict and what came after it: from the open of the next session to the close `passed` sessions on."""

    session: ResearchSession
    passed: int = 0
    since: float | None = None
    """As a fraction; None: no session has passed, or prices cannot be had."""

    @property
    def due(self) -> bool:
        """Its horizon has passed."""
        return self.passed >= self.session.horizon


@dataclass(frozen=True)
class Summary:
    action: str
    total: int
    ruled: Sequence[Ruled]

    @property
    def due(self) -> list[float]:
        return [one.since for one in self.ruled if one.due and one.since is not None]

    @property
    def mean(self) -> float | None:
        return sum(self.due) / len(self.due) if self.due else None


@router.get("/track-record")
async def show(page: Reader) -> Response:
    summaries = [await _summarise(page, action) for action in ACTIONS]
    ruled = [one for summary in summaries for one in summary.ruled]
    ruled.sort(key=lambda one: one.session.created_at, reverse=True)
    names = await name_shares(page, [one.session for one in ruled])
    return page.render("track_record.html", summaries=summaries, ruled=ruled, names=names, most=MOST_SHOWN)


async def _summarise(page: Page, action: str) -> Summary:
    """Of the newest; a what-if is no verdict of the desk."""
    wanted = SessionFilter.model_validate(
        {"workspace_id": page.workspace, "verdict_action": action, "page_size": MOST_SHOWN}
    )
    history = page.desk.coordinator.session_history()
    found = await history.sessions(wanted)
    kept = [session for session in found.items if not session.contest]
    contested = await history.sessions(wanted.model_copy(update={"trigger_source": WHAT_IF, "page_size": 1}))
    return Summary(
        action, found.total - contested.total, await asyncio.gather(*(_follow(page, one) for one in kept))
    )


async def _follow(page: Page, session: ResearchSession) -> Ruled:
    symbol, market = Symbol.parse(session.symbol), page.desk.market_data.market_data()
    then, today = symbol.local_date(session.as_of), symbol.local_date(page.now)
    last = min(today, then + timedelta(days=CALENDAR_DAYS * session.horizon + 14))
    with suppress(AppError):
        bars = await market.daily_bars(symbol, then, last, as_of=page.now, adjusted=True)
        after = [bar for bar in bars if bar.trade_date > then][: session.horizon]
        if after:
            return Ruled(session, len(after), after[-1].close / after[0].open - 1)
    return Ruled(session)
