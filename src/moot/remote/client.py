"""The SDK over HTTP.

    async with RemoteMoot("https://desk.example", "moot_…") as desk:
        result = await desk.research("900001.DEMO")

`Moot(base_url=…, api_key=…)` gives the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import UUID

from moot.modules.coordinator.application.contest import ContestResult, Move
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.run import Watch, show
from moot.modules.coordinator.application.session_history import (
    SessionDetail,
    SessionEvent,
    SessionPage,
    Started,
)
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed, SessionCancelled
from moot.modules.intake.application.intake_service import Conversation
from moot.modules.jobs.application.batches import BatchPage, BatchResults, BatchView
from moot.modules.jobs.application.schedules import ScheduleList, ScheduleView
from moot.modules.jobs.application.watch import DEFAULT_LIST, Watchlist
from moot.modules.market_data.application.sql import QueryResult
from moot.remote.connection import Connection
from moot.remote.desk import Body, Desk, Id, as_id
from moot.shared.domain.audit import Verification
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.settings import load_settings

RESEARCH = "/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
SQL = "/market-data/sql"
INTAKE = "/coordinator/intake"
WATCHLISTS = "/watchlists"
BATCHES = "/batches"
SCHEDULES = "/schedules"


class RemoteMoot(Desk):
    """`locale`: the language of answers and errors; by default that of the settings, or else of the desk there.
    `timeout`: seconds for a run."""

    def __init__(
        self, base_url: str, api_key: str = "", *, locale: Locale | None = None, timeout: float = 600.0
    ) -> None:
        self.locale = locale or load_settings().locale
        self._connection = Connection(base_url, api_key, locale=self.locale, timeout=timeout)

    def __repr__(self) -> str:
        return f"RemoteMoot({self._connection.url!r})"

    async def __aexit__(self, *_error: object) -> None:
        await self._connection.close()

    async def _research(self, question: Body, watch: Watch | None) -> ResearchResult:
        """Who stops waiting stops the run. Somebody who watches has it run in the background and follows it."""
        return await self._run(RESEARCH, question, watch, question.get("locale"))

    async def retry(
        self, session_id: Id, *, skip_debate: bool | None = None, watch: Watch | None = None
    ) -> ResearchResult:
        path, asked = f"{RESEARCH}/{as_id(session_id)}/retry", {"skip_debate": skip_debate}
        return await self._run(path, asked, watch, self.locale)

    async def contest(self, session_id: Id, moves: Sequence[Move | Mapping[str, Any]]) -> ContestResult:
        path = f"{SESSIONS}/{as_id(session_id)}/contest"
        return await self._connection.post(ContestResult, path, {"moves": list(moves)})

    async def _start(self, question: Body, idempotency_key: str | None) -> UUID:
        headers = {"Accept-Language": question.get("locale"), "Idempotency-Key": idempotency_key}
        return await self._begin(RESEARCH, question, headers)

    def events(self, session_id: Id, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        async def ended() -> bool:
            return (await self.session(session_id)).ended

        return self._connection.follow(f"{SESSIONS}/{as_id(session_id)}/events", after, ended)

    async def cancel(self, session_id: Id) -> SessionDetail:
        return await self._connection.post(SessionDetail, f"{SESSIONS}/{as_id(session_id)}/cancel")

    async def result(self, session_id: Id) -> ResearchResult:
        return await self._connection.get(ResearchResult, f"{SESSIONS}/{as_id(session_id)}/report")

    async def sessions(self, symbol: str | None = None, *, page: int = 1, page_size: int = 20) -> SessionPage:
        return await self._connection.get(
            SessionPage, SESSIONS, symbol=symbol, page=page, page_size=page_size
        )

    async def session(self, session_id: Id) -> SessionDetail:
        return await self._connection.get(SessionDetail, f"{SESSIONS}/{as_id(session_id)}")

    async def verify(self, session_id: Id) -> Verification:
        return await self._connection.get(Verification, f"{SESSIONS}/{as_id(session_id)}/verification")

    async def watchlist(self, list_name: str | None = None) -> Watchlist:
        return await self._connection.get(Watchlist, WATCHLISTS, list_name=list_name)

    async def add_to_watchlist(self, *symbols: str, list_name: str = DEFAULT_LIST) -> Watchlist:
        body = {"symbols": symbols, "list_name": list_name}
        return await self._connection.post(Watchlist, WATCHLISTS, body)

    async def remove_from_watchlist(self, *symbols: str, list_name: str = DEFAULT_LIST) -> Watchlist:
        return await self._connection.delete(Watchlist, WATCHLISTS, symbol=symbols, list_name=list_name)

    async def _start_batch(self, request: Body) -> BatchView:
        return await self._connection.post(BatchView, BATCHES, request)

    async def batches(self, name: str | None = None, *, page: int = 1, page_size: int = 20) -> BatchPage:
        return await self._connection.get(BatchPage, BATCHES, name=name, page=page, page_size=page_size)

    async def batch(self, batch_id: UUID) -> BatchView:
        return await self._connection.get(BatchView, f"{BATCHES}/{batch_id}")

    async def batch_results(self, batch_id: UUID) -> BatchResults:
        return await self._connection.get(BatchResults, f"{BATCHES}/{batch_id}/results")

    async def pause_batch(self, batch_id: UUID) -> BatchView:
        return await self._connection.post(BatchView, f"{BATCHES}/{batch_id}/pause")

    async def resume_batch(self, batch_id: UUID) -> BatchView:
        return await self._connection.post(BatchView, f"{BATCHES}/{batch_id}/resume")

    async def cancel_batch(self, batch_id: UUID) -> BatchView:
        return await self._connection.post(BatchView, f"{BATCHES}/{batch_id}/cancel")

    async def schedules(self) -> ScheduleList:
        return await self._connection.get(ScheduleList, SCHEDULES)

    async def schedule(self, name: str) -> ScheduleView:
        return await self._connection.get(ScheduleView, _path_of(name))

    async def _add_schedule(self, body: Body) -> ScheduleView:
        return await self._connection.post(ScheduleView, SCHEDULES, body)

    async def pause_schedule(self, name: str) -> ScheduleView:
        return await self._connection.post(ScheduleView, f"{_path_of(name)}/pause")

    async def resume_schedule(self, name: str) -> ScheduleView:
        return await self._connection.post(ScheduleView, f"{_path_of(name)}/resume")

    async def remove_schedule(self, name: str) -> ScheduleView:
        return await self._connection.delete(ScheduleView, _path_of(name))

    async def run_schedule(self, name: str) -> ScheduleView:
        return await self._connection.post(ScheduleView, f"{_path_of(name)}/run")

    async def _ask(self, question: Body) -> Conversation:
        return await self._connection.post(Conversation, INTAKE, question)

    async def _answer_plan(self, thread: UUID, said: Body) -> Conversation:
        return await self._connection.post(Conversation, f"{INTAKE}/{thread}/feedback", said)

    async def conversation(self, thread: UUID) -> Conversation:
        return await self._connection.get(Conversation, f"{INTAKE}/{thread}")

    async def _query(self, query: Body, locale: Locale | None) -> QueryResult:
        return await self._connection.post(QueryResult, SQL, query, {"Accept-Language": locale})

    async def _run(
        self, path: str, asked: Body, watch: Watch | None, locale: Locale | None
    ) -> ResearchResult:
        headers = {"Accept-Language": locale}
        if watch is None:
            return await self._connection.post(ResearchResult, path, asked, headers)
        return await self._follow(await self._begin(path, asked, headers), watch)

    async def _begin(self, path: str, asked: Body, headers: Mapping[str, str | None]) -> UUID:
        in_background = {**asked, "mode": "async"}
        return (await self._connection.post(Started, path, in_background, headers)).session_id

    async def _follow(self, session_id: UUID, watch: Watch) -> ResearchResult:
        """An error on the way names the session, which goes on without us."""
        try:
            async for event in self.events(session_id):
                show(watch, event)
                if event.type == "done" and event.data["status"] == "cancelled":
                    raise SessionCancelled(session_id)
            result = await self.result(session_id)
        except asyncio.CancelledError:
            with suppress(AppError):
                await self.cancel(session_id)
            raise
        except AppError as e:
            e.details.setdefault("session_id", str(session_id))
            raise
        if result.overall_status == "failed":
            raise AllExpertsFailed(result)
        return result


def _path_of(name: str) -> str:
    return f"{SCHEDULES}/{quote(name, safe='')}"
