"""Questions over HTTP: answered as JSON, or told as server-sent events while they are being answered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Annotated, Any, Protocol
from uuid import UUID

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import BaseModel
from pydantic_core import to_json

from moot.modules.intake.application.intake_service import Conversation, Feedback, IntakeService, Question
from moot.modules.intake.application.metrics import IntakeMetrics, IntakeSnapshot
from moot.modules.intake.application.ports import Tell
from moot.modules.intake.domain.texts import SAY as SAY_HERE
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.messages import Locale
from moot.shared.domain.texts import SAY
from moot.shared.presentation.caller import Caller, Reader, Workspace, unless_gone
from moot.shared.presentation.errors import ErrorBody

logger = structlog.get_logger(__name__)
router = APIRouter(prefix="/coordinator/intake", tags=["intake"])

STREAM, LINES = "text/event-stream", "application/x-ndjson"
QUIET_SECONDS = 15
MOST_LISTED = 100
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Conversation,
        "content": {STREAM: {"schema": {"type": "string"}}},
        "description": "as JSON; with `Accept: text/event-stream` as events: message_chunk | tool_call | "
        "tool_result | plan | interrupt | step | citation | report | error | done, `data`: JSON. Ends after `done`",
    },
    400: {"model": ErrorBody, "description": "the request cannot be accepted; nothing was started"},
    404: {"model": ErrorBody, "description": "no such conversation here"},
    409: {"model": ErrorBody, "description": "the conversation is at another turn"},
}
OF_ONE: dict[int | str, dict[str, Any]] = {status: ANSWERS[status] for status in (400, 404)}


def intake_of(request: Request) -> IntakeService:
    found: IntakeService = request.app.state.desk.intake.service
    return found


def metrics_of(request: Request) -> IntakeMetrics:
    found: IntakeMetrics = request.app.state.desk.intake.metrics
    return found


class CallLogs(Protocol):
    """The model platform's, as far as a conversation is concerned."""

    async def get_by_session_id(self, session_id: UUID, *, include_text: bool) -> Sequence[BaseModel]: ...


Intake = Annotated[IntakeService, Depends(intake_of)]
Metrics = Annotated[IntakeMetrics, Depends(metrics_of)]
Run = Callable[[Tell | None], Coroutine[Any, Any, Conversation]]


@router.post("", summary="Ask in your own language", response_model=Conversation, responses=ANSWERS)
async def ask(
    request: Request, body: Question, intake: Intake, workspace: Workspace, caller: Caller, reader: Reader
) -> Conversation | Response:
    """Until it is answered, replied to, or waits for a person to accept its plan (`status`: waiting)."""
    return await _answer(
        request,
        lambda tell: intake.ask(body, workspace=workspace, requested_by=caller, listener=tell),
        reader,
    )


@router.post(
    "/{thread}/feedback",
    summary="Accept, edit or reject the plan a conversation waits with",
    response_model=Conversation,
    responses=ANSWERS,
)
async def feedback(
    request: Request,
    thread: UUID,
    body: Feedback,
    intake: Intake,
    workspace: Workspace,
    caller: Caller,
    reader: Reader,
) -> Conversation | Response:
    return await _answer(
        request,
        lambda tell: intake.feedback(thread, body, workspace=workspace, requested_by=caller, listener=tell),
        reader,
    )


@router.post(
    "/{thread}/resume",
    summary="Go on with a conversation whose process died",
    response_model=Conversation,
    responses=ANSWERS,
)
async def resume(
    request: Request, thread: UUID, intake: Intake, workspace: Workspace, reader: Reader
) -> Conversation | Response:
    return await _answer(
        request, lambda tell: intake.resume(thread, workspace=workspace, listener=tell), reader
    )


@router.get("/metrics", summary="How well questions are received, since the process began")
async def metrics(counted: Metrics) -> IntakeSnapshot:
    """Of all workspaces together: numbers, and nobody's words."""
    return counted.snapshot()


@router.get(
    "/metrics/locale-sample",
    summary="Questions whose language a model told, to be labelled",
    response_class=Response,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}, "description": "an object a line"}},
)
async def locale_sample(counted: Metrics, workspace: Workspace) -> Response:
    """The latest of this workspace: `text`, `handed` by the model, `detected` by its letters, `label` to fill in."""
    return Response(counted.locale_samples_as_jsonl(workspace), media_type=LINES)


async def conversation_of(thread: UUID, intake: Intake, workspace: Workspace) -> Conversation:
    return await intake.conversation(thread, workspace)


Found = Annotated[Conversation, Depends(conversation_of)]
IncludeText = Annotated[bool, Query(description="false leaves prompts, answers and responses out")]


@router.get("/{thread}", summary="A conversation with all its turns", responses=OF_ONE)
async def conversation(found: Found) -> Conversation:
    return found


@router.get("/{thread}/llm-calls", summary="Every model call of a conversation, in order", responses=OF_ONE)
async def llm_calls(request: Request, found: Found, include_text: IncludeText = True) -> list[dict[str, Any]]:
    """Turn by turn, without those of its sessions."""
    return await _calls(request.app.state.desk.intake.model_calls, found, include_text)


@router.get(
    "/{thread}/api-calls",
    summary="Every other call to the outside of a conversation, in order",
    responses=OF_ONE,
)
async def api_calls(request: Request, found: Found, include_text: IncludeText = True) -> list[dict[str, Any]]:
    """Turn by turn, without those of its sessions."""
    return await _calls(request.app.state.desk.intake.other_calls, found, include_text)


async def _calls(logs: CallLogs | None, found: Conversation, include_text: bool) -> list[dict[str, Any]]:
    if logs is None:
        raise Unavailable(SAY_HERE("calls.none_kept"), code="PERSISTENCE_OFF")
    of_each = [await logs.get_by_session_id(turn.id, include_text=include_text) for turn in found.turns]
    return [call.model_dump(mode="json") for calls in of_each for call in calls]


@router.get("", summary="The newest conversations", responses={400: ANSWERS[400]})
async def conversations(
    intake: Intake, workspace: Workspace, limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 20
) -> list[Conversation]:
    return await intake.conversations(workspace, limit=limit)


async def _answer(request: Request, run: Run, reader: Locale) -> Conversation | Response:
    """Whoever hangs up stops the question, whichever way it is told; `resume` goes on with it."""
    if STREAM not in request.headers.get("accept", ""):
        return await unless_gone(request, run(None))
    turn = _ToldTurn(run, reader)
    first = await turn.first()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(turn.frames(first), headers=headers)


class _ToldTurn:
    """A turn under way, and what it has told that nobody has read yet."""

    def __init__(self, run: Run, reader: Locale) -> None:
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._reader, self._begun = reader, False
        self._task = asyncio.create_task(self._work(run))

    async def first(self) -> bytes | None:
        """What is refused tells nothing: it raises here, while the answer can still have a status of its own."""
        try:
            frame = await self._next()
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if frame is None:
            await self._task
        return frame

    async def frames(self, first: bytes | None) -> AsyncIterator[bytes]:
        try:
            frame = first
            while frame is not None:
                yield frame
                frame = await self._next()
        finally:
            self._task.cancel()

    async def _next(self) -> bytes | None:
        """None after the last."""
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                return await self._events.get()
        except TimeoutError:
            self._begun = True
            return KEEPALIVE_COMMENT

    def _tell(self, what: str, about: dict[str, Any]) -> None:
        self._begun = True
        told = to_json(about, fallback=str).decode()
        self._events.put_nowait(format_sse_event(event=what, data_str=told))

    async def _work(self, run: Run) -> None:
        try:
            await run(self._tell)
        except Exception as e:  # bulkhead: a stream that has begun ends with its error, not in the middle
            if not self._begun:
                raise
            logger.warning("stream failed", exc_info=not isinstance(e, AppError))
            error = e if isinstance(e, AppError) else AppError(SAY("unexpected"))
            said = ErrorBody(code=error.code, message=error.in_locale(self._reader), details=error.details)
            self._tell("error", said.model_dump(mode="json", exclude={"success"}))
            self._tell("done", {"status": "failed"})
        finally:
            self._events.put_nowait(None)
