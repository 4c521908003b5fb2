"""The SDK over HTTP.

    async with RemoteMoot("https://desk.example", "moot_…") as desk:
        result = await desk.research("900001.DEMO")

`Moot(base_url=…, api_key=…)` gives the same.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel

from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, ResearchResult
from moot.modules.coordinator.application.node_results import whole
from moot.modules.coordinator.application.research_run import NodeEvent, ResearchRun, Watch
from moot.modules.coordinator.application.session_history import SessionDetail, SessionEvent, SessionPage
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed, SessionCancelled
from moot.modules.intake.application.intake_service import Conversation, PlanDecision, Style
from moot.modules.market_data.application.sql import QueryResult
from moot.remote.connection import Connection
from moot.remote.desk import Desk
from moot.remote.following import follow
from moot.shared.domain.audit import Verification
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.infrastructure.settings import load_settings

RESEARCH = "/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
SQL = "/market-data/sql"
INTAKE = "/coordinator/intake"


class Started(BaseModel):
    """Of the answer to a run that was begun in the background, what is needed to find it."""

    session_id: UUID


class RemoteMoot(Desk):
    """`locale`: the language of answers and errors, by default that of the settings; `timeout`: seconds for a run."""

    def __init__(
        self, base_url: str, api_key: str = "", *, locale: Locale | None = None, timeout: float = 600.0
    ) -> None:
        self._locale = locale or load_settings().locale or DEFAULT_LOCALE
        self._connection = Connection(base_url, api_key, locale=self._locale, timeout=timeout)

    def __repr__(self) -> str:
        return f"RemoteMoot({self._connection.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.close()

    async def research(
        self,
        symbol: str,
        experts: Sequence[str] = EXPERTS,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        skip_debate: bool = False,
        as_of: date | datetime | str | None = None,
        locale: Locale | None = None,
        max_cost: float | None = None,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Who stops waiting stops the run. Somebody who watches has it run in the background and follows it."""
        asked = self._question(symbol, experts, options, skip_debate, as_of, locale, max_cost)
        return await self._run(RESEARCH, asked, watch, asked["locale"])

    async def retry(
        self, session_id: UUID, *, skip_debate: bool = False, watch: Watch | None = None
    ) -> ResearchResult:
        return await self._run(
            f"{RESEARCH}/{session_id}/retry", {"skip_debate": skip_debate}, watch, self._locale
        )

    async def start(
        self,
        symbol: str,
        experts: Sequence[str] = EXPERTS,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        skip_debate: bool = False,
        as_of: date | datetime | str | None = None,
        locale: Locale | None = None,
        max_cost: float | None = None,
        idempotency_key: str | None = None,
    ) -> SessionDetail:
        asked = self._question(symbol, experts, options, skip_debate, as_of, locale, max_cost)
        headers = {"Accept-Language": asked["locale"]}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return await self.session(await self._begin(RESEARCH, asked, headers))

    def events(self, session_id: UUID, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        async def ended() -> bool:
            return (await self.session(session_id)).ended

        return follow(self._connection, f"{SESSIONS}/{session_id}/events", after, ended)

    async def cancel(self, session_id: UUID) -> SessionDetail:
        return await self._connection.post(SessionDetail, f"{SESSIONS}/{session_id}/cancel")

    async def result(self, session_id: UUID) -> ResearchResult:
        return await self._connection.get(ResearchResult, f"{SESSIONS}/{session_id}/report")

    async def sessions(self, symbol: str | None = None, *, page: int = 1, page_size: int = 20) -> SessionPage:
        return await self._connection.get(
            SessionPage, SESSIONS, symbol=symbol, page=page, page_size=page_size
        )

    async def session(self, session_id: UUID) -> SessionDetail:
        return await self._connection.get(SessionDetail, f"{SESSIONS}/{session_id}")

    async def verify(self, session_id: UUID) -> Verification:
        return await self._connection.get(Verification, f"{SESSIONS}/{session_id}/verification")

    async def ask(
        self,
        question: str,
        *,
        thread: UUID | None = None,
        style: Style = "research",
        accept_plan: bool = False,
        locale: str | None = None,
    ) -> Conversation:
        body = {
            "question": question,
            "thread_id": str(thread) if thread else None,
            "style": style,
            "auto_accepted_plan": accept_plan,
            "locale": locale,
        }
        return await self._connection.post(Conversation, INTAKE, body)

    async def answer_plan(self, thread: UUID, decision: PlanDecision, text: str = "") -> Conversation:
        body = {"decision": decision, "text": text}
        return await self._connection.post(Conversation, f"{INTAKE}/{thread}/feedback", body)

    async def conversation(self, thread: UUID) -> Conversation:
        return await self._connection.get(Conversation, f"{INTAKE}/{thread}")

    async def query(
        self, sql: str, *, as_of: date | datetime | str | None = None, locale: Locale | None = None
    ) -> QueryResult:
        headers = {"Accept-Language": locale or self._locale}
        return await self._connection.post(QueryResult, SQL, {"sql": sql, "as_of": as_of}, headers)

    def _question(
        self,
        symbol: str,
        experts: Sequence[str],
        options: Mapping[str, Mapping[str, Any]] | None,
        skip_debate: bool,
        as_of: date | datetime | str | None,
        locale: Locale | None,
        max_cost: float | None,
    ) -> dict[str, Any]:
        return {
            "symbol": symbol,
            "experts": list(experts),
            "options": options or {},
            "skip_debate": skip_debate,
            "as_of": as_of,
            "locale": locale or self._locale,
            "max_cost": max_cost,
        }

    async def _run(
        self, path: str, asked: Mapping[str, Any], watch: Watch | None, locale: Locale
    ) -> ResearchResult:
        headers = {"Accept-Language": locale}
        if watch is None:
            return await self._connection.post(ResearchResult, path, asked, headers)
        return await self._watched(await self._begin(path, asked, headers), watch)

    async def _begin(self, path: str, asked: Mapping[str, Any], headers: Mapping[str, str]) -> UUID:
        in_background = {**asked, "mode": "async"}
        return (await self._connection.post(Started, path, in_background, headers)).session_id

    async def _watched(self, session_id: UUID, watch: Watch) -> ResearchResult:
        """An error on the way names the session, which goes on without us."""
        tell = ResearchRun(watch).tell
        try:
            async for event in self.events(session_id):
                if seen := await self._seen(session_id, event):
                    tell(seen)
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

    async def _seen(self, session_id: UUID, event: SessionEvent) -> NodeEvent | None:
        """The event as the one who watches knows it. What was reused has not run, here as on a desk of one's own."""
        told = event.data
        if event.type == "node_started":
            return NodeEvent(told["node"], "started")
        if event.type == "node_retrying":
            return NodeEvent(told["node"], "retrying", error=told["reason"])
        if event.type == "node_failed":
            return NodeEvent(told["node"], "failed", told["duration_ms"], error=told["error"])
        if event.type != "node_finished" or told["reused"]:
            return None
        if told["status"] == "skipped":
            return NodeEvent(told["node"], "skipped", told["duration_ms"])
        result = await self._node_result(session_id, told["node"])
        return NodeEvent(told["node"], "finished", told["duration_ms"], result=result)

    async def _node_result(self, session_id: UUID, node_type: str) -> dict[str, Any] | None:
        """Events are short: what a node found is in the journal."""
        for node in (await self.session(session_id)).nodes:
            if node.node_type == node_type and node.status == "success":
                return whole(node)
        return None
