"""A session while it runs: what it tells, as server-sent events, and how to stop it."""

import time
from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from moot.modules.coordinator.application.session_history import SessionDetail, SessionEvent
from moot.modules.coordinator.presentation.rest.research_routes import Runs
from moot.modules.coordinator.presentation.rest.session_routes import OF_ONE, History
from moot.shared.domain.validation import refused
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator/research/sessions", tags=["sessions"])

QUIET_SECONDS = 15
"""After so much silence a line is sent that means nothing, so that nobody takes the stream for dead."""
COME_BACK_MS = 2000
MOST_DIGITS = 9
EVENTS = {
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
    "description": "`id`: number, `event`: session | node_started | node_retrying | node_finished | node_failed | "
    "decision | debate | verdict | done, `data`: JSON. Ends after `done`",
}


@router.get(
    "/{session_id}/events",
    summary="What a session tells, from the beginning and as it happens",
    response_class=StreamingResponse,
    responses={**OF_ONE, 200: EVENTS},
)
async def events(
    session_id: UUID,
    history: History,
    runs: Runs,
    workspace: Workspace,
    last_event_id: Annotated[str | None, Header(description="go on after this event")] = None,
    after: Annotated[
        int, Query(ge=0, lt=10**MOST_DIGITS, description="the same, for clients that cannot set headers")
    ] = 0,
) -> StreamingResponse:
    """Complete for whoever joins late or comes back; a session that has ended tells its whole story at once."""
    last = after if last_event_id is None else _number(last_event_id)
    told = history.events(session_id, workspace, after=last, closing=lambda: runs.closing)
    first = await anext(told, None)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(first, told), media_type="text/event-stream", headers=headers)


@router.post(
    "/{session_id}/cancel",
    summary="Stop a session",
    response_model=SessionDetail,
    responses={
        **OF_ONE,
        202: {"model": SessionDetail, "description": "another process runs it, and has been asked to stop"},
        409: {"model": ErrorBody, "description": "the session has ended"},
    },
)
async def cancel(
    session_id: UUID, history: History, runs: Runs, workspace: Workspace, response: Response
) -> SessionDetail:
    """All experts stop, what was spent is settled, and the session is left as `cancelled`."""
    await runs.cancel(session_id, workspace)
    session = await history.session(session_id, workspace)
    if not session.ended:
        response.status_code = 202
    return session


async def _stream(
    first: SessionEvent | None, told: AsyncIterator[SessionEvent | None]
) -> AsyncIterator[bytes]:
    yield f"retry: {COME_BACK_MS}\n\n".encode()
    if first is not None:
        yield _frame(first)
    spoken = time.monotonic()
    async for event in told:
        if event is not None:
            yield _frame(event)
        elif time.monotonic() - spoken > QUIET_SECONDS:
            yield b": still here\n\n"
        else:
            continue
        spoken = time.monotonic()


def _frame(event: SessionEvent) -> bytes:
    data = to_json({**event.data, "at": event.at})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.encode(), data)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise refused("int_parsing", "Last-Event-ID", text)
    return int(text)
