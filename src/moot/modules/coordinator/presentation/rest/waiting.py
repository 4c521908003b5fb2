"""How long a client waits: for the answer, for the answer but not at any price, or only for a receipt."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.session_history import ResearchSession
from moot.modules.coordinator.domain.exceptions import SessionWaiting

Mode = Literal["sync", "async", "detached"]
AskedMode = Annotated[
    Mode,
    Field(
        description="sync: wait; hanging up cancels. detached: wait; hanging up does not. async: 202 at once"
    ),
]
IdempotencyKey = Annotated[
    str | None, Header(description="the same key and body give the same session, however often they are sent")
]
Prefer = Annotated[str | None, Header(description="respond-async: as mode async (RFC 7240)")]

CLIENT_GONE = 499
FURTHER = ("events", "report", "decisions", "cancel")


class Started(BaseModel):
    """A receipt: the session is stored and will run, whatever happens to this process."""

    session_id: UUID
    status: str
    links: dict[str, str]


RECEIPT: dict[int | str, dict[str, Any]] = {
    202: {"model": Started, "description": "accepted; it runs in the background"}
}


def chosen(mode: Mode, prefer: str | None, key: str | None) -> Mode:
    """A client that names a key will ask again after a broken line: it must find its session, not a cancelled one."""
    if prefer and "respond-async" in (part.strip().lower() for part in prefer.replace(";", ",").split(",")):
        return "async"
    return "detached" if mode == "sync" and key is not None else mode


def receipt(request: Request, session: ResearchSession) -> JSONResponse:
    """202 with where to look: the session, its events, its report, its decisions, and how to stop it."""
    return _receipt(request, session.id, session.status)


def _receipt(request: Request, session_id: UUID, status: str) -> JSONResponse:
    here = str(request.app.url_path_for("session", session_id=str(session_id)))
    links = {"session": here} | {name: f"{here}/{name}" for name in FURTHER}
    body = Started(session_id=session_id, status=status, links=links)
    headers = {"Location": here, "Preference-Applied": "respond-async"}
    return JSONResponse(body.model_dump(mode="json"), 202, headers)


async def unless_gone(
    request: Request, work: Coroutine[Any, Any, ResearchResult]
) -> ResearchResult | Response:
    """The answer; `work` is cancelled when the client hangs up first."""
    answer, gone = asyncio.create_task(work), asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return _answer(request, answer)
        answer.cancel()
        await asyncio.wait({answer})
        return Response(status_code=CLIENT_GONE)
    except asyncio.CancelledError:  # the server itself gives up on the request
        answer.cancel()
        raise
    finally:
        gone.cancel()


def _answer(request: Request, answer: asyncio.Task[ResearchResult]) -> ResearchResult | Response:
    try:
        return answer.result()
    except SessionWaiting as e:
        return _receipt(request, UUID(e.details["session_id"]), "waiting")


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
