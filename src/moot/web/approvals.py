"""Approvals: what waits for a person, their answer with its reason, and what was answered before."""

import json
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response

from moot.modules.governance.application.escalations import Escalation
from moot.modules.governance.presentation.decision_routes import AnswerBody, EditBody, Listed, sign
from moot.modules.governance.presentation.dependencies import LOCAL, Escalations
from moot.shared.domain.errors import AppError, Conflict, Forbidden, InvalidInput
from moot.shared.domain.validation import refuse_field, validate
from moot.web.page import NO_FLAWS, Flaws, Form, Page, Reader

router = APIRouter()

ANSWERS = ("approve", "edit", "reject")
SHOWN = ("pending", "decided")


@router.get("/approvals")
async def list_approvals(page: Reader, waiting: Escalations) -> Response:
    asked = {name: value for name, value in page.request.query_params.items() if value.strip()}
    flaws, found = NO_FLAWS, None
    try:
        number = {name: int(value) for name, value in asked.items() if name == "page" and value.isdecimal()}
        wanted = validate(Listed, asked | number)
        found = await waiting.list_waiting(page.workspace, wanted.status, page=wanted.page)
    except InvalidInput as e:
        flaws = Flaws.of(e, page)
    return page.render(
        "approvals.html",
        status=400 if flaws.message else 200,
        found=found,
        flaws=flaws,
        wanted=asked.get("status", "pending"),
        choices=SHOWN,
        **_frame(),
    )


@router.get("/approvals/{escalation_id}")
async def show_approval(page: Reader, escalation_id: UUID, waiting: Escalations) -> Response:
    return _show(page, await waiting.get(escalation_id, page.workspace))


@router.post("/approvals/{escalation_id}")
async def answer(page: Reader, escalation_id: UUID, form: Form, waiting: Escalations) -> Response:
    """What cannot be done is told beside what was written; whoever asked cannot answer."""
    try:
        if (said := form.get("answer", "")) not in ANSWERS:
            raise refuse_field("literal_error", "answer", said, allowed=list(ANSWERS))
        body: dict[str, Any] = {name: form[name] for name in ("reason", "by") if name in form}
        changed: dict[str, Any] = {}
        if said == "edit":
            changed = {"payload": _read(form.get("payload", ""))}
            validate(EditBody, body | changed)
        given = validate(AnswerBody, body)
        settle = getattr(waiting, said)
        await settle(escalation_id, page.workspace, **changed, **sign(given, page.caller))
    except (InvalidInput, Forbidden, Conflict) as e:
        return _show(page, await waiting.get(escalation_id, page.workspace), form, e)
    return page.go(f"/approvals/{escalation_id}")


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise refuse_field("json_invalid", "payload", None, error=str(e)) from None


def _frame() -> dict[str, Any]:
    return {"given": {}, "local": LOCAL}


def _show(page: Page, one: Escalation, given: Any = None, error: AppError | None = None) -> Response:
    told = _frame() | {"one": one, "flaws": Flaws.of(error, page) if error else NO_FLAWS}
    if given is not None:
        told["given"] = given
    status = {InvalidInput: 400, Forbidden: 403, Conflict: 409}
    code = next((status[kind] for kind in status if isinstance(error, kind)), 200)
    return page.render("approval.html", status=code, **told)
