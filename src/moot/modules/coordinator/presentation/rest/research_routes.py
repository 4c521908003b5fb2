"""One request, the whole desk; and running again what failed. The client says how long it waits: for the answer, for
the answer but not at any price, or only for a receipt."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field, StrictBool

from moot.modules.coordinator.application.contest import ContestBody, ContestResult
from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody, ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import ResearchSession, SessionHistory, Started
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.coordinator.domain.exceptions import SessionWaiting
from moot.shared.domain.clock import Moment
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Caller, Reader, Workspace, reader_of, unless_gone
from moot.shared.presentation.errors import refusals

router = APIRouter(prefix="/coordinator")
expert_router = APIRouter(prefix="/research", tags=["research"])
T = TypeVar("T")

FURTHER = ("events", "report", "decisions", "cancel")


def container(request: Request) -> CoordinatorContainer:
    found: CoordinatorContainer = request.app.state.coordinator
    return found


Coordinator = Annotated[CoordinatorContainer, Depends(container)]


class Found(NamedTuple):
    """A session of the path: `about` is its id and its workspace, by which the history knows it."""

    history: SessionHistory
    about: tuple[UUID, str]


async def find_session(
    session_id: Annotated[str, Path(description="its id, the beginning of it, or `last`")],
    coordinator: Coordinator,
    workspace: Workspace,
) -> Found:
    history = coordinator.session_history()
    return Found(history, (await history.find(session_id, workspace), workspace))


OneSession = Annotated[Found, Depends(find_session)]


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


RECEIPT: dict[int | str, dict[str, Any]] = {
    202: {"model": Started, "description": "accepted; it runs in the background, or waits for a person"}
}


REFUSALS = refusals(
    {
        400: "the request cannot be accepted; nothing was started",
        409: "the key stands for another request, or the run was cancelled",
        429: "the desk is at its limit; Retry-After says when to come back",
        500: "every selected expert failed, or Moot itself did",
        503: "the desk is closing, or cannot store what it accepts",
    }
)


@dataclass
class Order:
    """How a request wants to be answered, in whose name."""

    request: Request
    coordinator: Coordinator
    workspace: Workspace
    caller: Caller
    idempotency_key: Key = None
    prefer: Prefer = None

    @property
    def service(self) -> ResearchOrchestrationService:
        return self.coordinator.research_orchestration_service()

    async def research(self, mode: Mode, asked: dict[str, Any]) -> ResearchResult | Response:
        self.request.state.locale = asked["locale"]
        return await self.answer(mode, self.service.execute, self.service.start, asked)

    async def answer(
        self,
        mode: Mode,
        now: Callable[..., Coroutine[Any, Any, ResearchResult]],
        later: Callable[..., Coroutine[Any, Any, ResearchSession]],
        *asked: Any,
        **more: Any,
    ) -> ResearchResult | Response:
        """By `now`, which waits and is cancelled with its client, or by `later`, which begins a session."""
        by = {"workspace": self.workspace, "requested_by": self.caller}
        mode = self._mode(mode)
        if mode == "sync":
            return await self.wait(now(*asked, **more, **by))
        session = await later(*asked, **more, **by, idempotency_key=self.idempotency_key)
        if mode == "async":
            return self._receipt(session.id, session.status)
        return await self.wait(self.coordinator.sessions.outcome(session.id, self.workspace))

    def _mode(self, mode: Mode) -> Mode:
        """Who names a key will ask again after a broken line: they must find their session, not a cancelled one."""
        wishes = (self.prefer or "").replace(";", ",").lower().split(",")
        if "respond-async" in (wish.strip() for wish in wishes):
            return "async"
        return "detached" if mode == "sync" and self.idempotency_key is not None else mode

    async def wait(self, work: Coroutine[Any, Any, T]) -> T | Response:
        """What `work` comes to; where a person has to decide first, a receipt."""
        try:
            return await unless_gone(self.request, work)
        except SessionWaiting as e:
            locale = getattr(self.request.state, "locale", None) or reader_of(self.request)
            asked = e.needed.asked(locale) if e.needed else {}
            return self._receipt(UUID(e.details["session_id"]), "waiting", **asked)

    def _receipt(self, session_id: UUID, status: str, **asked: Any) -> JSONResponse:
        """202 with where to look: the session, its events, its report, its decisions, and how to stop it."""
        here = str(self.request.app.url_path_for("session", session_id=str(session_id)))
        links = {"session": here} | {name: f"{here}/{name}" for name in FURTHER}
        body = Started(session_id=session_id, status=status, links=links, **asked)
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
    responses=RECEIPT | REFUSALS,
)
async def research(body: ResearchOrder, order: Ordered, reader: Reader) -> ResearchResult | Response:
    """Ask the selected experts in parallel, let bull and bear argue over the findings, and have a judge rule."""
    asked = {"locale": reader, **body.model_dump(exclude_unset=True, exclude={"mode"})}
    return await order.research(body.mode, asked)


class ExpertOrder(Strict):
    """A question to one expert; `options` are what that expert understands."""

    symbol: str = Field(examples=["900001.DEMO"])
    options: dict[str, Any] = Field(default_factory=dict)
    as_of: Moment | None = Field(default=None, description="what was known then, as for the whole desk")
    locale: Locale | None = None
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    mode: AskedMode = "sync"


@expert_router.post(
    "/{expert}",
    summary="Ask one expert alone",
    response_model=ResearchResult,
    responses=RECEIPT | REFUSALS,
)
async def ask_expert(
    expert: ExpertType, body: ExpertOrder, order: Ordered, reader: Reader
) -> ResearchResult | Response:
    """A session like any other, of this expert and without a debate: its view, its claims and its evidence."""
    asked = {"locale": reader, **body.model_dump(exclude_none=True, exclude={"mode", "options"})}
    asked |= {"experts": [expert], "skip_debate": True}
    asked |= {"options": {expert.value: body.options}} if body.options else {}
    return await order.research(body.mode, asked)


class RetryBody(Strict):
    """May be left out."""

    skip_debate: StrictBool | None = Field(
        default=None, description="leave out debate and verdict; null: as the session did"
    )
    mode: AskedMode = "sync"


DEFAULTS = RetryBody()
UNLESS_ENDED = {404: "there is no such session", 409: "the session is still running"}


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
    responses=RECEIPT
    | refusals(
        {
            400: "nothing failed in that session, or this is not an id",
            **UNLESS_ENDED,
            500: "every expert failed again, or Moot itself did",
        }
    ),
)
async def retry(one: OneSession, order: Ordered, body: RetryBody = DEFAULTS) -> ResearchResult | Response:
    """Opens a new session, as of the same moment, and answers with it; what had succeeded is reused."""
    now, later = order.service.retry, order.service.start_retry
    return await order.answer(body.mode, now, later, one.about[0], skip_debate=body.skip_debate)


@router.post(
    "/research/sessions/{session_id}/contest",
    tags=["sessions"],
    summary="What the verdict would be if claims were struck, weighed otherwise, or answered",
    response_model=ContestResult,
    responses=RECEIPT
    | refusals(
        {
            400: "there is no such claim, the move cannot be made, or nothing was argued in that session",
            **UNLESS_ENDED,
        }
    ),
)
async def contest(one: OneSession, body: ContestBody, order: Ordered) -> ContestResult | Response:
    """Weighs the argument on record again and has it ruled on by the rules, without a model. What comes of it is a
    session of its own, linked to the one it contests; it never counts as a verdict on the symbol."""
    session_id, workspace = one.about
    contesting = order.coordinator.contest_service().contest
    return await order.wait(
        contesting(session_id, body.moves, workspace=workspace, requested_by=order.caller)
    )
