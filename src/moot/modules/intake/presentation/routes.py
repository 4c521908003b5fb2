"""Questions over HTTP: answered as JSON, or told as server-sent events while they are being answered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic_core import to_json

from moot.modules.intake.application.intake_service import Conversation, Feedback, Question
from moot.modules.intake.application.metrics import IntakeSnapshot
from moot.modules.intake.domain.texts import SAY as SAY_HERE
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.messages import Locale
from moot.shared.domain.texts import SAY
from moot.shared.presentation.caller import Caller, Reader, Workspace, unless_gone
from moot.shared.presentation.errors import ErrorBody

if TYPE_CHECKING:  # the graph takes a while to load, and the server need not wait for it
    from moot.modules.intake.container import IntakeContainer

logger = structlog.get_logger(__name__)
router = APIRouter(prefix="/coordinator/intake", tags=["intake"])

STREAM, LINES = "text/event-stream", "application/x-ndjson"
QUIET_SECONDS = 15
MOST_LISTED = 100
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Conversation,
        "content": {STREAM: {}},
        "description": "as JSON; with `Accept: text/event-stream` as events: message_chunk | tool_call | "
        "tool_result | plan | interrupt | step | citation | report | error | done, `data`: JSON. Ends after `done`",
    },
    400: {"model": ErrorBody, "description": "the request cannot be accepted; nothing was started"},
    404: {"model": ErrorBody, "description": "no such conversation here"},
    409: {"model": ErrorBody, "description": "the conversation is at another turn"},
}
TURN: dict[str, Any] = {"response_model": Conversation, "responses": ANSWERS}
OF_ONE: dict[int | str, dict[str, Any]] = {status: ANSWERS[status] for status in (400, 404)}


def intake_of(request: Request) -> Any:
    return request.app.state.desk.intake


Intake = Annotated["IntakeContainer", Depends(intake_of)]
Run = Callable[..., Coroutine[Any, Any, Conversation]]


class Asker:
    """Whoever asks, and how they want to be answered."""

    def __init__(self, request: Request, workspace: Workspace, caller: Caller, reader: Reader) -> None:
        self._request, self._reader = request, reader
        self.workspace, self.caller = workspace, caller

    async def answer(self, run: Run, *given: Any, **by: Any) -> Conversation | Response:
        """Whoever hangs up stops the question, whichever way it is told; `resume` goes on with it."""
        working = partial(run, *given, **by, workspace=self.workspace)
        if STREAM in self._request.headers.get("accept", ""):
            return await _stream(working, self._reader)
        return await unless_gone(self._request, working())


By = Annotated[Asker, Depends()]


@router.post("", summary="Ask in your own language", **TURN)
async def ask(body: Question, intake: Intake, by: By) -> Conversation | Response:
    """Until it is answered, replied to, or waits for a person to accept its plan (`status`: waiting)."""
    return await by.answer(intake.service.ask, body, requested_by=by.caller)


@router.post(
    "/{thread}/feedback", summary="Accept, edit or reject the plan a conversation waits with", **TURN
)
async def feedback(thread: UUID, body: Feedback, intake: Intake, by: By) -> Conversation | Response:
    return await by.answer(intake.service.feedback, thread, body, requested_by=by.caller)


@router.post("/{thread}/resume", summary="Go on with a conversation whose process died", **TURN)
async def resume(thread: UUID, intake: Intake, by: By) -> Conversation | Response:
    return await by.answer(intake.service.resume, thread)


@router.get("/metrics", summary="How well questions are received, since the process began")
async def metrics(intake: Intake) -> IntakeSnapshot:
    """Of all workspaces together: numbers, and nobody's words."""
    return intake.metrics.snapshot()


@router.get(
    "/metrics/locale-sample",
    summary="Questions whose language a model told, to be labelled",
    response_class=Response,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}, "description": "an object a line"}},
)
async def locale_sample(intake: Intake, workspace: Workspace) -> Response:
    """The latest of this workspace: `text`, `handed` by the model, `detected` by its letters, `label` to fill in."""
    return Response(intake.metrics.locale_samples_as_jsonl(workspace), media_type=LINES)


async def conversation_of(thread: UUID, intake: Intake, workspace: Workspace) -> Conversation:
    return await intake.service.conversation(thread, workspace)


Found = Annotated[Conversation, Depends(conversation_of)]
IncludeText = Annotated[bool, Query(description="false leaves prompts, answers and responses out")]


@router.get("/{thread}", summary="A conversation with all its turns", responses=OF_ONE)
async def conversation(found: Found) -> Conversation:
    return found


@router.get("/{thread}/llm-calls", summary="Every model call of a conversation, in order", responses=OF_ONE)
async def llm_calls(intake: Intake, found: Found, include_text: IncludeText = True) -> list[dict[str, Any]]:
    """Turn by turn, without those of its sessions."""
    return await _calls(intake.model_calls, found, include_text)


@router.get(
    "/{thread}/api-calls",
    summary="Every other call to the outside of a conversation, in order",
    responses=OF_ONE,
)
async def api_calls(intake: Intake, found: Found, include_text: IncludeText = True) -> list[dict[str, Any]]:
    """Turn by turn, without those of its sessions."""
    return await _calls(intake.other_calls, found, include_text)


async def _calls(logs: Any, found: Conversation, include_text: bool) -> list[dict[str, Any]]:
    if logs is None:
        raise Unavailable(SAY_HERE("calls.none_kept"), code="PERSISTENCE_OFF")
    of_each = [await logs.get_by_session_id(turn.id, include_text=include_text) for turn in found.turns]
    return [call.model_dump(mode="json") for calls in of_each for call in calls]


@router.get("", summary="The newest conversations", responses={400: ANSWERS[400]})
async def conversations(
    intake: Intake, workspace: Workspace, limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 20
) -> list[Conversation]:
    return await intake.service.conversations(workspace, limit=limit)


async def _stream(run: Run, reader: Locale) -> Response:
    """What is refused tells nothing: it raises here, while the answer can still have a status of its own."""
    events: asyncio.Queue[bytes | None] = asyncio.Queue()
    work = asyncio.create_task(run(listener=lambda *told: events.put_nowait(_frame(*told))))
    work.add_done_callback(lambda _: events.put_nowait(None))
    try:
        first = await _next(events)
    except asyncio.CancelledError:
        work.cancel()
        raise
    if first is None:
        await work

    async def frames() -> AsyncIterator[bytes]:
        try:
            frame = first
            while frame is not None:
                yield frame
                frame = await _next(events)
            if error := work.exception():  # a stream that has begun ends with its error, not in the middle
                yield _tell_failure(error, reader)
        finally:
            work.cancel()

    return EventSourceResponse(frames(), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def _next(events: "asyncio.Queue[bytes | None]") -> bytes | None:
    """None after the last."""
    try:
        async with asyncio.timeout(QUIET_SECONDS):
            return await events.get()
    except TimeoutError:
        return KEEPALIVE_COMMENT


def _frame(what: str, about: dict[str, Any]) -> bytes:
    return format_sse_event(event=what, data_str=to_json(about, fallback=str).decode())


def _tell_failure(e: BaseException, reader: Locale) -> bytes:
    error = e if isinstance(e, AppError) else AppError(SAY("unexpected"))
    logger.warning("stream failed", exc_info=None if error is e else e)
    said = ErrorBody(code=error.code, message=error.in_locale(reader), details=error.details)
    told = said.model_dump(mode="json", exclude={"success"})
    return _frame("error", told) + _frame("done", {"status": "failed"})
