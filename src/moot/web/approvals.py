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
from moot.web.page import Form, Page, Reader

router = APIRouter()

ANSWERS = ("approve", "edit", "reject")
SHOWN = ("pending", "decided")


@router.get("/approvals")
async def list_approvals(page: Reader, waiting: Escalations) -> Response:
    asked, error, found = page.filters, None, None
    try:
        wanted = validate(Listed, asked)
        found = await waiting.list_waiting(page.workspace, wanted.status, page=wanted.page)
    except InvalidInput as e:
        error = e
    shown = asked.get("status", "pending")
    return page.render(
        "approvals.html", error=error, found=found, wanted=shown, choices=SHOWN, given={}, local=LOCAL
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


def _show(page: Page, one: Escalation, given: Any = None, error: AppError | None = None) -> Response:
    return page.render("approval.html", error=error, one=one, given=given or {}, local=LOCAL)
