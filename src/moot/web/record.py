"""The record of a session: what ran when, every call with what was asked and answered, what the rules decided, and
whether all of it is still what was written and comes out again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Response

from moot.modules.coordinator.application.replay import Replay
from moot.modules.coordinator.application.session_history import SessionDetail
from moot.modules.coordinator.presentation.rest.research_routes import Found, OneSession
from moot.shared.domain.errors import NotFound
from moot.web.charts import Span
from moot.web.formats import seconds
from moot.web.page import SAY, Page, Reader
from moot.web.report import read_decisions, tell_decision
from moot.web.sessions import find_company

router = APIRouter()

CALLED = {"models": "models", "data": "others"}
"""By the address of a call, as the history calls them."""
MOST_SHOWN = 400
"""Calls of a session in a list; a thousand more would make a page that nobody can use."""


TEXTS = {
    "system": "system_message",
    "prompt": "prompt_text",
    "reasoning": "reasoning_text",
    "answer": "completion_text",
    "tools": "tool_calls",
    "params": "request_params",
    "response": "response_data",
}
"""What was said in a call, by how the page calls it; a call has those of its kind."""


class Call(NamedTuple):
    number: int
    row: Mapping[str, Any]

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        for name, column in TEXTS.items():
            if said := self.row.get(column):
                yield name, said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, indent=2)

    @property
    def pruned(self) -> bool:
        kept = (self.row[column] for column in ("completion_text", "response_data") if column in self.row)
        return self.row["status"] == "success" and not any(kept)


@router.get("/sessions/{session_id}/record")
async def show_record(page: Reader, one: OneSession) -> Response:
    return await _show(page, one)


@router.post("/sessions/{session_id}/replay")
async def replay(page: Reader, one: OneSession) -> Response:
    """Runs it again from its record, without a network; it leaves no trace."""
    replayed = await page.desk.coordinator.replay_service().replay(*one.about)
    if "hx-request" in page.request.headers:
        return page.render("record_replay.html", replayed=replayed)
    return await _show(page, one, replayed)


@router.get("/sessions/{session_id}/calls/{to}/{number}")
async def show_call(page: Reader, one: OneSession, to: str, number: int) -> Response:
    """One call with its texts, as a part of the record or a page of its own."""
    found = await one.history.calls(*one.about, CALLED[to]) if to in CALLED else []  # type: ignore[arg-type]
    if not 1 <= number <= len(found):
        raise NotFound(SAY("record.no_such_call", number=number))
    template = "record_call.html" if "hx-request" in page.request.headers else "record_call_page.html"
    return page.render(template, call=Call(number, found[number - 1]), session_id=one.about[0])


async def _show(page: Page, one: Found, replayed: Replay | None = None) -> Response:
    session = await one.history.session(*one.about)
    calls = {to: await _list(one, to) for to in CALLED}
    return page.render(
        "record.html",
        session=session,
        company=await find_company(page, session.symbol),
        spans=_spans(page, session),
        calls={to: rows[:MOST_SHOWN] for to, rows in calls.items()},
        more={to: len(rows[MOST_SHOWN:]) for to, rows in calls.items()},
        currency=page.desk.settings.currency,
        decisions=[(one, tell_decision(one, page)) for one in await read_decisions(page, session.id)],
        verified=await one.history.verify(*one.about, page.locale) if session.ended else None,
        replayed=replayed,
    )


async def _list(one: Found, to: str) -> Sequence[Call]:
    rows = await one.history.calls(*one.about, CALLED[to], include_text=False)  # type: ignore[arg-type]
    return [Call(number, row) for number, row in enumerate(rows, 1)]


def _spans(page: Page, session: SessionDetail) -> list[Span]:
    """Nodes that ran here, each as long as it took."""
    return [
        Span(
            page.say(f"node.{node.node_type}"),
            node.started_at,
            node.completed_at or node.started_at,
            node.status,
            seconds(page.locale, node.duration_ms),
        )
        for node in session.nodes
        if not node.reused
    ]
