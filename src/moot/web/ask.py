"""Ask: a question in somebody's own words, its plan for them to accept, its steps as they go, and the answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, get_args
from uuid import UUID

from fastapi import APIRouter, Depends, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

from moot.modules.intake.application.intake_service import (
    LONGEST,
    Conversation,
    Feedback,
    IntakeService,
    Question,
    Style,
)
from moot.shared.domain.errors import AppError, Conflict
from moot.shared.domain.validation import validate
from moot.web.page import Flaws, Form, Page, Reader
from moot.web.research import ANSWERED
from moot.web.stream import follow

router = APIRouter()

LISTED = 20
LOOK_AGAIN = 0.5
"""Seconds between two looks at a question under way."""
FRAME: dict[str, Any] = {"given": {}, "longest": LONGEST, "styles": get_args(Style)}


def service_of(page: Page) -> IntakeService:
    page.desk.work()
    return page.desk.intake.service


async def find_talk(page: Reader, thread: UUID) -> Conversation:
    return await page.desk.intake.service.conversation(thread, page.workspace)


Found = Annotated[Conversation, Depends(find_talk)]


@router.get("/ask")
async def show_all(page: Reader) -> Response:
    return await _show_all(page, page.request.query_params)


@router.post("/ask")
async def ask(page: Reader, form: Form) -> Response:
    try:
        asked = validate(Question, _read(form, page))
        begun = await service_of(page).ask(
            asked, workspace=page.workspace, requested_by=page.caller, wait=False
        )
    except ANSWERED as e:
        if "thread_id" not in form:
            return await _show_all(page, form, e)
        return await _show(page, await find_talk(page, validate(_Thread, dict(form)).thread_id), form, e)
    return page.go(f"/ask/{begun.id}")


@router.get("/ask/{thread}")
async def show(page: Reader, talk: Found) -> Response:
    return await _show(page, talk)


@router.post("/ask/{thread}/feedback")
async def answer_plan(page: Reader, form: Form, talk: Found) -> Response:
    try:
        said = validate(Feedback, {"decision": form.get("decision"), "text": form.get("text", "")})
        await service_of(page).feedback(
            talk.id, said, workspace=page.workspace, requested_by=page.caller, wait=False
        )
    except ANSWERED as e:
        return await _show(page, talk, form, e)
    return page.go(f"/ask/{talk.id}")


@router.post("/ask/{thread}/resume")
async def resume(page: Reader, talk: Found) -> Response:
    try:
        await service_of(page).resume(talk.id, workspace=page.workspace, wait=False)
    except ANSWERED as e:
        return await _show(page, talk, error=e)
    return page.go(f"/ask/{talk.id}")


async def take_seat(page: Reader, talk: Found) -> AsyncIterator[Conversation]:
    """Asked before the stream begins, and kept until it ends."""
    thread = talk.id
    with page.request.app.state.streams.listen(thread, (page.workspace, page.caller)):
        yield talk


@router.get("/ask/{thread}/live", response_class=EventSourceResponse)
async def watch(
    page: Reader, talk: Annotated[Conversation, Depends(take_seat)]
) -> AsyncIterator[ServerSentEvent]:
    thread, runs = talk.id, page.desk.coordinator.sessions

    async def goes_on() -> bool:
        now = await find_talk(page, thread)
        return now.status == "running" and not now.is_left(page.now)

    async def told() -> AsyncIterator[None]:
        while not runs.closing and await goes_on():
            await asyncio.sleep(LOOK_AGAIN)
            yield None

    async def write() -> str:
        now = await find_talk(page, thread)
        told = {"talk": now, "turn": now.last, "asked": len(now.turns), "flaws": Flaws()}
        return page.write("ask_turn.html", **FRAME, **told)

    async def ended() -> bool:
        return not await goes_on()

    async for event in follow(told(), write, ended):
        yield event


class _Thread(BaseModel):
    thread_id: UUID


def _read(form: Any, page: Page) -> dict[str, Any]:
    body: dict[str, Any] = {"question": form.get("question", "")}
    body |= {name: form[name] for name in ("thread_id", "style", "locale") if name in form}
    if steps := form.get("max_step_num"):
        body["max_step_num"] = int(steps) if steps.isdecimal() else steps
    if "auto_accepted_plan" in form:
        body["auto_accepted_plan"] = True
    return body


async def _show_all(page: Page, given: Any, error: AppError | None = None) -> Response:
    talks = await page.desk.intake.service.conversations(page.workspace, limit=LISTED)
    by_model = page.desk.llm_platform.engine_choice().by_model
    return _render(page, "ask.html", error, given=given, talks=talks, by_model=by_model)


async def _show(page: Page, talk: Conversation, given: Any = None, error: AppError | None = None) -> Response:
    return _render(page, "ask_talk.html", error, given=given or {}, talk=talk)


def _render(page: Page, template: str, error: AppError | None, **told: Any) -> Response:
    status = 409 if isinstance(error, Conflict) else 400 if error else 200
    return page.render(template, error=error, status=status, **FRAME | told)
