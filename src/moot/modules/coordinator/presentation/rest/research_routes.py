"""One request, the whole desk; and running again what failed. The client says how long it waits: for the answer, for
the answer but not at any price, or only for a receipt."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, StrictBool

from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody, ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import ResearchSession
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.coordinator.domain.exceptions import SessionWaiting
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Caller, Workspace, unless_gone
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator")

FURTHER = ("events", "report", "decisions", "cancel")


def container(request: Request) -> CoordinatorContainer:
    found: CoordinatorContainer = request.app.state.coordinator
    return found


Coordinator = Annotated[CoordinatorContainer, Depends(container)]


def research_service(coordinator: Coordinator) -> ResearchOrchestrationService:
    return coordinator.research_orchestration_service()


Service = Annotated[ResearchOrchestrationService, Depends(research_service)]

Mode = Literal["sync", "async", "detached"]
AskedMode = Annotated[
    Mode,
    Field(
        description="sync: wait; hanging up cancels. detached: wait; hanging up does not. async: 202 at once"
    ),
]
Key = Annotated[
    str | None, Header(description="the same key and body give the same session, however often they are sent")
]
Prefer = Annotated[str | None, Header(description="respond-async: as mode async (RFC 7240)")]


class Started(BaseModel):
    """A receipt: the session is stored and will run, whatever happens to this process."""

    session_id: UUID
    status: str
    links: dict[str, str]


RECEIPT: dict[int | str, dict[str, Any]] = {
    202: {"model": Started, "description": "accepted; it runs in the background"}
}


class Order:
    """How a request wants to be answered, in whose name."""

    def __init__(
        self,
        request: Request,
        coordinator: Coordinator,
        workspace: Workspace,
        caller: Caller,
        idempotency_key: Key = None,
        prefer: Prefer = None,
    ) -> None:
        self._request, self._runs, self._workspace = request, coordinator.sessions, workspace
        self._caller, self._key, self._prefer = caller, idempotency_key, prefer

    async def answer(
        self,
        mode: Mode,
        now: Callable[..., Coroutine[Any, Any, ResearchResult]],
        later: Callable[..., Coroutine[Any, Any, ResearchSession]],
        *asked: Any,
        **more: Any,
    ) -> ResearchResult | Response:
        """By `now`, which waits and is cancelled with its client, or by `later`, which begins a session."""
        by = {"workspace": self._workspace, "requested_by": self._caller}
        mode = self._mode(mode)
        if mode == "sync":
            return await self._wait(now(*asked, **more, **by))
        session = await later(*asked, **more, **by, idempotency_key=self._key)
        if mode == "async":
            return self._receipt(session.id, session.status)
        return await self._wait(self._runs.outcome(session.id, self._workspace))

    def _mode(self, mode: Mode) -> Mode:
        """Who names a key will ask again after a broken line: they must find their session, not a cancelled one."""
        wishes = (self._prefer or "").replace(";", ",").lower().split(",")
        if "respond-async" in (wish.strip() for wish in wishes):
            return "async"
        return "detached" if mode == "sync" and self._key is not None else mode

    async def _wait(self, work: Coroutine[Any, Any, ResearchResult]) -> ResearchResult | Response:
        try:
            return await unless_gone(self._request, work)
        except SessionWaiting as e:
            return self._receipt(UUID(e.details["session_id"]), "waiting")

    def _receipt(self, session_id: UUID, status: str) -> JSONResponse:
        """202 with where to look: the session, its events, its report, its decisions, and how to stop it."""
        here = str(self._request.app.url_path_for("session", session_id=str(session_id)))
        links = {"session": here} | {name: f"{here}/{name}" for name in FURTHER}
        body = Started(session_id=session_id, status=status, links=links)
        headers = {"Location": here, "Preference-Applied": "respond-async"}
        return JSONResponse(body.model_dump(mode="json"), 202, headers)


Ordered = Annotated[Order, Depends()]


class ResearchOrder(ResearchBody):
    mode: AskedMode = "sync"


@router.post(
    "/research",
    tags=["research"],
    summary="Research a symbol",
    response_model=ResearchResult,
    responses={
        **RECEIPT,
        400: {"model": ErrorBody, "description": "the request cannot be accepted; nothing was started"},
        409: {
            "model": ErrorBody,
            "description": "the key stands for another request, or the run was cancelled",
        },
        429: {
            "model": ErrorBody,
            "description": "the desk is at its limit; Retry-After says when to come back",
        },
        500: {"model": ErrorBody, "description": "every selected expert failed, or Moot itself did"},
        503: {"model": ErrorBody, "description": "the desk is closing, or cannot store what it accepts"},
    },
)
async def research(
    request: Request, body: ResearchOrder, service: Service, order: Ordered
) -> ResearchResult | Response:
    """Ask the selected experts in parallel, let bull and bear argue over the findings, and have a judge rule."""
    if "locale" in body.model_fields_set:
        request.state.locale = body.locale
    asked = body.model_dump(exclude_unset=True, exclude={"mode"})
    return await order.answer(body.mode, service.execute, service.start, asked)


class RetryBody(Strict):
    """May be left out."""

    skip_debate: StrictBool | None = Field(
        default=None, description="leave out debate and verdict; null: as the session did"
    )
    mode: AskedMode = "sync"


DEFAULTS = RetryBody()


@router.post(
    "/research/sessions/{session_id}/retry",
    tags=["sessions"],
    summary="Another path to the same",
    response_model=ResearchResult,
    responses=RECEIPT,
)
@router.post(
    "/research/{session_id}/retry",
    tags=["research"],
    summary="Run again what failed in a session",
    response_model=ResearchResult,
    responses={
        **RECEIPT,
        400: {"model": ErrorBody, "description": "nothing failed in that session, or this is not an id"},
        404: {"model": ErrorBody, "description": "there is no such session"},
        409: {"model": ErrorBody, "description": "the session is still running"},
        500: {"model": ErrorBody, "description": "every expert failed again, or Moot itself did"},
    },
)
async def retry(
    session_id: UUID, service: Service, order: Ordered, body: RetryBody = DEFAULTS
) -> ResearchResult | Response:
    """Opens a new session, as of the same moment, and answers with it; what had succeeded is reused."""
    return await order.answer(
        body.mode, service.retry, service.start_retry, session_id, skip_debate=body.skip_debate
    )
