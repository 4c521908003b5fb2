"""What waits for a person, and their answer."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from moot.modules.governance.domain.decision_record import LAST_PAGE, MOST_PER_PAGE
from moot.modules.governance.domain.escalations import Escalation, EscalationPage, OwnRequest
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.asking import (
    BAD_REQUEST,
    LOCAL,
    NOT_FOUND,
    NOT_KEPT,
    Escalations,
    JsonObject,
    Name,
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


class Pages(Strict):
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
    waiting: Escalations, workspace: Workspace, asked: Annotated[Pages, Query()]
) -> EscalationPage:
    return await waiting.waiting(workspace, page=asked.page, page_size=asked.page_size)


@router.get("/{escalation_id}", summary="One of them", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT)
async def escalation(escalation_id: UUID, waiting: Escalations, workspace: Workspace) -> Escalation:
    return await waiting.get(escalation_id, workspace)


@dataclass
class Answering:
    """An answer to what waits, by somebody who may give it."""

    escalation_id: UUID
    waiting: Escalations
    workspace: Workspace
    caller: Caller

    async def signed(self, body: AnswerBody) -> dict[str, Any]:
        """By the holder of the key, if there is one; what an agent of theirs asked for, they asked for."""
        asked = (await self.waiting.get(self.escalation_id, self.workspace)).requester.casefold()
        if self.caller is not None and body.by not in (None, self.caller):
            raise InvalidInput(SAY("rest.by_is_the_key", by=body.by, name=self.caller))
        if self.caller is not None and asked.startswith(f"{self.caller}/".casefold()):
            raise OwnRequest(self.caller)
        by = self.caller or body.by or LOCAL
        about = {"escalation_id": self.escalation_id, "workspace": self.workspace}
        return about | {"by": by, "reason": body.reason}


Answer = Annotated[Answering, Depends()]


@router.post("/{escalation_id}/approve", summary="Let it be done, once", responses=ANSWERED)
async def approve(body: AnswerBody, answer: Answer) -> Escalation:
    return await answer.waiting.approve(**await answer.signed(body))


@router.post("/{escalation_id}/reject", summary="Let it not be done", responses=ANSWERED)
async def reject(body: AnswerBody, answer: Answer) -> Escalation:
    return await answer.waiting.reject(**await answer.signed(body))


@router.post("/{escalation_id}/edit", summary="Let something else be done, once", responses=ANSWERED)
async def edit(body: EditBody, answer: Answer) -> Escalation:
    """The rules have a say in it; only what needs a person is taken as settled."""
    return await answer.waiting.edit(**await answer.signed(body), payload=body.payload)
