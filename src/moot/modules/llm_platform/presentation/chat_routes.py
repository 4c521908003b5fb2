"""Asking a model directly, over HTTP. Recorded and budgeted like every other call."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from moot.modules.llm_platform.application.llm_service import ChatMessage, ChatResult, LLMService
from moot.shared.domain.validation import Strict
from moot.shared.infrastructure.execution_context import on_behalf_of
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/llm-platform", tags=["models"])


class GenerateBody(Strict):
    prompt: str = Field(min_length=1)
    system_message: str | None = None
    alias: str | None = Field(default=None, description="this model alone")
    tags: list[str] | None = Field(default=None, description="a model that holds all of these")
    temperature: float = Field(default=0.7, ge=0, le=2)

    def messages(self) -> list[ChatMessage]:
        system = [ChatMessage(role="system", content=self.system_message)] if self.system_message else []
        return [*system, ChatMessage(role="user", content=self.prompt)]


def llm_service(request: Request) -> LLMService:
    found: LLMService = request.app.state.llm_platform.llm_service()
    return found


@router.post(
    "/chat/generate",
    summary="What a model answers to a prompt",
    responses={
        400: {"model": ErrorBody},
        503: {"model": ErrorBody, "description": "no model answered, or the budget is spent"},
    },
)
async def generate(
    body: GenerateBody, service: Annotated[LLMService, Depends(llm_service)], workspace: Workspace
) -> ChatResult:
    with on_behalf_of(workspace):
        return await service.chat(
            body.messages(),
            temperature=body.temperature,
            alias=body.alias,
            tags=body.tags,
            caller_module="api",
        )
