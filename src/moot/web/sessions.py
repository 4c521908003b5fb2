"""Sessions: the list of them, and one as it runs, node by node."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult, view_of
from moot.modules.coordinator.application.session_history import (
    NodeProgress,
    ResearchSession,
    SessionDetail,
    SessionPage,
    SessionQuery,
    SessionStatus,
    VerdictAction,
)
from moot.modules.coordinator.presentation.rest.research_routes import Found, OneSession
from moot.modules.coordinator.presentation.rest.session_routes import take_seat
from moot.shared.domain.brief import add_costs
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Company
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import validate
from moot.web.page import Page, Reader
from moot.web.research import service_of, sign
from moot.web.stream import follow

router = APIRouter()

NOTHING = SessionPage(total=0, page=1, page_size=1, items=[])
RETRYABLE = ("failed", "partial", "cancelled")


@router.get("/sessions")
async def list_sessions(page: Reader) -> Response:
    error, found = None, NOTHING
    try:
        wanted = validate(SessionQuery, page.filters).of(page.workspace)
        found = await page.desk.coordinator.session_history().sessions(wanted)
    except InvalidInput as e:
        error = e
    return page.render(
        "sessions.html",
        error=error,
        asked=page.filters,
        found=found,
        names=await name_shares(page, found.items),
        statuses=get_args(SessionStatus),
        actions=get_args(VerdictAction),
    )


@router.get("/sessions/{session_id}")
async def show_session(page: Reader, one: OneSession) -> Response:
    live = await look(one, page)
    company = await find_company(page, live.session.symbol)
    return page.render("session.html", live=live, company=company)


@router.get("/sessions/{session_id}/live", response_class=EventSourceResponse)
async def watch_session(
    page: Reader, one: Annotated[Found, Depends(take_seat)]
) -> AsyncIterator[ServerSentEvent]:
    runs = page.desk.coordinator.sessions

    async def write() -> str:
        return page.write("session_live.html", live=await look(one, page))

    async def ended() -> bool:
        return (await one.history.session(*one.about)).ended

    told = one.history.events(*one.about, closing=lambda: runs.closing)
    async for event in follow(told, write, ended):
        yield event


@router.post("/sessions/{session_id}/cancel")
async def cancel(page: Reader, one: OneSession) -> Response:
    await page.desk.coordinator.sessions.cancel(*one.about)
    return page.go(f"/sessions/{one.about[0]}")


@router.post("/sessions/{session_id}/retry")
async def retry(page: Reader, one: OneSession) -> Response:
    session = await service_of(page).start_retry(one.about[0], **sign(page))
    return page.go(f"/sessions/{session.id}")


async def find_company(page: Page, symbol: str) -> Company | None:
    """None where nobody lists it any more, or who would know cannot be reached."""
    with suppress(AppError):
        return await page.desk.market_data.directory().listed(Symbol.parse(symbol))
    return None


async def name_shares(page: Page, sessions: Iterable[ResearchSession]) -> dict[str, str]:
    """What the companies of these sessions are called in the reader's language; empty where nobody knows."""
    symbols = list(dict.fromkeys(session.symbol for session in sessions))
    companies = await asyncio.gather(*(find_company(page, symbol) for symbol in symbols))
    chinese = page.locale == "zh-CN"
    names = ((one.name if chinese else one.name_en or one.name) if one else "" for one in companies)
    return dict(zip(symbols, names, strict=True))


@dataclass(frozen=True)
class Node:
    """A node of the graph as it is shown: how far it is, what it says, and what its model calls have taken."""

    progress: NodeProgress
    duration_ms: float | None
    signal: str | None
    confidence: float | None
    reused: bool
    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True)
class Live:
    """A session as it stands. `result` is there when it has ended."""

    session: SessionDetail
    nodes: dict[str, Node]
    currency: str
    result: ResearchResult | None

    @property
    def experts(self) -> list[Node]:
        return [node for name, node in self.nodes.items() if name in set(ExpertType)]

    @property
    def ruling(self) -> list[Node]:
        return [node for name, node in self.nodes.items() if name not in set(ExpertType)]

    @property
    def calls(self) -> int:
        return sum(node.calls for node in self.nodes.values())

    @property
    def tokens(self) -> int:
        return sum(node.tokens for node in self.nodes.values())

    @property
    def cost(self) -> float | None:
        """None: not every model has a price."""
        return add_costs(node.cost for node in self.nodes.values())

    @property
    def retryable(self) -> bool:
        return self.session.status in RETRYABLE or self.session.verdict_status == "failed"


async def look(one: Found, page: Page) -> Live:
    session = await one.history.session(*one.about)
    calls = await one.history.calls(*one.about, "models", include_text=False)
    result = await one.history.result(*one.about) if session.ended else None
    return Live(session, _nodes(session, calls), page.desk.settings.currency, result)


def _nodes(session: SessionDetail, calls: Iterable[Mapping[str, Any]]) -> dict[str, Node]:
    made: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for call in calls:
        by = "caller_agent" if call["caller_module"] == "research" else "caller_module"
        made[call[by]].append(call)
    left = {node.node_type: node for node in session.nodes}
    reused = [NodeProgress(node=name, status=row.status) for name, row in left.items() if row.reused]
    nodes = {}
    for progress in [*reused, *session.progress]:
        name, row = progress.node, left.get(progress.node)
        nodes[name] = Node(
            progress=progress,
            duration_ms=row.duration_ms if row else None,
            **view_of(name, (row and row.result_data) or {}),
            reused=bool(row and row.reused),
            calls=len(made[name]),
            tokens=sum(call["total_tokens"] or 0 for call in made[name]),
            cost=add_costs(call["cost"] for call in made[name]),
        )
    return nodes
