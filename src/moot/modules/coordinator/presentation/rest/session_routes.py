"""Sessions over HTTP: what they tell while they run, how to stop them, and the record and report of each."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.report import Style, render_page, render_report
from moot.modules.coordinator.application.session_history import SessionDetail, SessionPage, SessionQuery
from moot.modules.coordinator.domain.texts import SAY
from moot.modules.coordinator.presentation.rest.research_routes import Coordinator, Found, OneSession
from moot.shared.domain.audit import Verification
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Locale
from moot.shared.presentation.caller import Caller, Preferred, Workspace, read_wishes
from moot.shared.presentation.errors import ErrorBody, answer
from moot.shared.presentation.limits import Streams

router = APIRouter(prefix="/coordinator/research/sessions", tags=["sessions"])

OF_ONE: dict[int | str, dict[str, Any]] = {400: {"model": ErrorBody}, 404: {"model": ErrorBody}}


@router.get("", summary="List sessions, newest first", responses={400: {"model": ErrorBody}})
async def sessions(
    coordinator: Coordinator, workspace: Workspace, asked: Annotated[SessionQuery, Query()]
) -> SessionPage:
    return await coordinator.session_history().sessions(asked.of(workspace))


@router.get("/{session_id}", summary="One session with all its nodes", responses=OF_ONE)
async def session(one: OneSession) -> SessionDetail:
    return await one.history.session(*one.about)


WithText = Annotated[bool, Query(description="false leaves prompts, answers and responses out")]


@router.get("/{session_id}/llm-calls", summary="Every model call of a session, in order", responses=OF_ONE)
async def llm_calls(one: OneSession, include_text: WithText = True) -> list[dict[str, Any]]:
    return await one.history.calls(*one.about, "models", include_text=include_text)


@router.get(
    "/{session_id}/api-calls",
    summary="Every other call to the outside of a session, in order",
    responses=OF_ONE,
)
async def api_calls(one: OneSession, include_text: WithText = True) -> list[dict[str, Any]]:
    return await one.history.calls(*one.about, "others", include_text=include_text)


@router.get(
    "/{session_id}/verification",
    summary="Is the record of a session still what was written?",
    responses=OF_ONE,
)
async def verification(
    one: OneSession, preferred: Preferred, locale: Annotated[Locale | None, Query()] = None
) -> Verification:
    """Checks the chain over calls, nodes and the session itself, and names the first entry that does not hold."""
    return await one.history.verify(*one.about, locale or preferred)


REPORTS: dict[str, Callable[[ResearchResult, Style], str]] = {
    "text/markdown": render_report,
    "text/html": render_page,
    "application/json": lambda result, _: result.model_dump_json(),
}
AS_TEXT_ONLY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept",
}


def choose_type(accept: str | None, offered: Sequence[str]) -> str | None:
    """The type wanted most; among equals what was named more precisely, then what is offered first."""
    ranges = read_wishes(accept) or {"*/*": 1.0}

    def weigh(media_type: str) -> tuple[float, int]:
        covering = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        return next(
            ((ranges[kind], -stars) for stars, kind in enumerate(covering) if kind in ranges), (0.0, 0)
        )

    favourite = max(offered, key=weigh)
    return favourite if weigh(favourite)[0] > 0 else None


@router.get(
    "/{session_id}/report",
    summary="The report of a session: Markdown, HTML or JSON, by the Accept header",
    response_class=Response,
    responses={
        **OF_ONE,
        200: {"content": {media_type: {} for media_type in REPORTS}},
        406: {"model": ErrorBody, "description": "there is no report of the type asked for"},
        409: {"model": ErrorBody, "description": "the session is still running"},
    },
)
async def report(request: Request, one: OneSession, style: Annotated[Style, Query()] = "full") -> Response:
    """In the session's language, from its record alone; `brief` is the first page, JSON is always whole."""
    media_type = choose_type(request.headers.get("accept"), list(REPORTS))
    if media_type is None:
        said = SAY("sessions.no_such_type", types=list(REPORTS))
        return answer(request, InvalidInput(said, code="NOT_ACCEPTABLE", allowed=list(REPORTS)), 406)
    result = await one.history.result(*one.about)
    headers = {**AS_TEXT_ONLY, "Content-Language": result.locale}
    return Response(REPORTS[media_type](result, style), media_type=media_type, headers=headers)


COME_BACK_MS = 2000
MOST_EVENTS = 10**9
EVENTS = {
    "content": {"text/event-stream": {}},
    "description": "`id`: number, `event`: session | node_started | node_retrying | node_finished | node_failed | "
    "decision | debate | verdict | done, `data`: JSON. Ends after `done`",
}


async def take_seat(
    request: Request, one: OneSession, caller: Caller, response: Response
) -> AsyncIterator[Found]:
    """Asked before the answer begins: a session that nobody knows is still a 404. Kept until the stream ends."""
    response.headers["Cache-Control"] = "no-store"
    session = await one.history.session(*one.about)
    streams: Streams = request.app.state.streams
    with streams.listen(session.id, (session.workspace_id, caller)):
        yield one


@router.get(
    "/{session_id}/events",
    summary="What a session tells, from the beginning and as it happens",
    response_class=EventSourceResponse,
    responses={**OF_ONE, 200: EVENTS, 429: {"model": ErrorBody, "description": "too many listen already"}},
)
async def events(
    one: Annotated[Found, Depends(take_seat)],
    coordinator: Coordinator,
    last_event_id: Annotated[
        int | None, Header(ge=0, lt=MOST_EVENTS, description="go on after this event")
    ] = None,
    after: Annotated[
        int, Query(ge=0, lt=MOST_EVENTS, description="the same, for clients that cannot set headers")
    ] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Complete for whoever joins late or comes back; a session that has ended tells its whole story at once."""
    yield ServerSentEvent(retry=COME_BACK_MS)
    last = after if last_event_id is None else last_event_id
    runs = coordinator.sessions
    async for event in one.history.events(*one.about, after=last, closing=lambda: runs.closing):
        yield ServerSentEvent(id=str(event.seq), event=event.type, data={**event.data, "at": event.at})


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
async def cancel(one: OneSession, coordinator: Coordinator, response: Response) -> SessionDetail:
    """All experts stop, what was spent is settled, and the session is left as `cancelled`."""
    await coordinator.sessions.cancel(*one.about)
    session = await one.history.session(*one.about)
    if not session.ended:
        response.status_code = 202
    return session
