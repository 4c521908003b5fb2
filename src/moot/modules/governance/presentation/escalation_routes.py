"""What waits for a person, and their answer."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from moot.modules.governance.domain.decisions import LAST_PAGE, MOST_PER_PAGE, Name
from moot.modules.governance.domain.escalations import Escalation, EscalationPage, Wanted
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.dependencies import (
    BAD_REQUEST,
    LOCAL,
    NOT_FOUND,
    NOT_KEPT,
    Escalations,
    JsonObject,
    Responses,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator/escalations", tags=["escalations"])

ANSWERED: Responses = {
    **BAD_REQUEST,
    **NOT_FOUND,
    **NOT_KEPT,
    403: {"model": ErrorBody, "description": "who asked cannot answer; or the rules do not allow the edit"},
    409: {"model": ErrorBody, "description": "somebody was quicker, or nobody was quick enough"},
}


class Listed(Strict):
    status: Wanted = Field(default="pending", description="`decided`: all that wait no more; `all`: all")
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)


class AnswerBody(Strict):
    reason: str = Field(min_length=1, max_length=2000)
    by: Name | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="who decides, where no key says so; `local` by default",
    )


class EditBody(AnswerBody):
    payload: JsonObject


@router.get("", summary="List what waits for a person, oldest first", responses=BAD_REQUEST | NOT_KEPT)
async def escalations(
    waiting: Escalations, workspace: Workspace, asked: Annotated[Listed, Query()]
) -> EscalationPage:
    """Or, by `status`, what was decided, the newest first."""
    return await waiting.list_waiting(workspace, asked.status, page=asked.page, page_size=asked.page_size)


@router.get("/{escalation_id}", summary="One of them", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT)
async def escalation(escalation_id: UUID, waiting: Escalations, workspace: Workspace) -> Escalation:
    return await waiting.get(escalation_id, workspace)


def sign(body: AnswerBody, caller: Caller) -> dict[str, str]:
    """By the holder of the key, if there is one."""
    if caller is not None and body.by not in (None, caller):
        raise InvalidInput(SAY("rest.by_is_the_key", by=body.by, name=caller))
    return {"by": caller or body.by or LOCAL, "reason": body.reason}


@router.post("/{escalation_id}/approve", summary="Let it be done, once", responses=ANSWERED)
async def approve(
    escalation_id: UUID, body: AnswerBody, waiting: Escalations, workspace: Workspace, caller: Caller
) -> Escalation:
    return await waiting.approve(escalation_id, workspace, **sign(body, caller))


@router.post("/{escalation_id}/reject", summary="Let it not be done", responses=ANSWERED)
async def reject(
    escalation_id: UUID, body: AnswerBody, waiting: Escalations, workspace: Workspace, caller: Caller
) -> Escalation:
    return await waiting.reject(escalation_id, workspace, **sign(body, caller))


@router.post("/{escalation_id}/edit", summary="Let something else be done, once", responses=ANSWERED)
async def edit(
    escalation_id: UUID, body: EditBody, waiting: Escalations, workspace: Workspace, caller: Caller
) -> Escalation:
    """The rules have a say in it; only what needs a person is taken as settled."""
    return await waiting.edit(escalation_id, workspace, payload=body.payload, **sign(body, caller))
