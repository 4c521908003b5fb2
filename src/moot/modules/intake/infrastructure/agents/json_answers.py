"""An answer in JSON: asked for once, and once more with what is wrong with it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache, reduce
from typing import TypeVar

import structlog
from pydantic import BaseModel

from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.prompt_templates import literals, repeats_prompt
from moot.modules.llm_platform.application.answer_schema import strict_schema
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, ResponseSchema
from moot.shared.domain.errors import AppError, UpstreamFailed
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.texts import SAY as COMMON

logger = structlog.get_logger(__name__)

T = TypeVar("T")
Problems = Sequence[Message | str]


async def ask_twice(
    llm: LLMService,
    talk: list[ChatMessage],
    answer: type[BaseModel],
    read: Callable[[str], Awaitable[tuple[T, Problems]]],
    *,
    agent: str,
    temperature: float,
    reader: Locale,
) -> tuple[T, Problems]:
    """What `read` makes of the answer, and what is still wrong with it; raises what keeps it from being read.

    Of two answers the last that can be read counts. What both sides say is added to `talk`.
    """

    async def ask() -> tuple[T, Problems]:
        reply = await llm.chat(
            talk,
            response_schema=_schema(answer),
            temperature=temperature,
            caller_module="intake",
            caller_agent=agent[:50],
        )
        talk.append(ChatMessage(role="assistant", content=reply.content or "{}"))
        if reply.finish_reason == "length":
            raise UpstreamFailed(SAY("common.cut_off"))
        if repeats_prompt(literals(reply.content), talk):
            raise UpstreamFailed(SAY("common.repeats_prompt"))
        return await read(reply.content)

    first: tuple[T, Problems] | None = None
    said = len(talk)
    try:
        first = await ask()
        problems = first[1]
    except AppError as e:
        if len(talk) == said:  # nobody has answered
            raise
        problems = [e.message]
    if first is not None and not problems:
        return first
    logger.warning("answer refused, asked again", agent=agent, problems=list(map(str, problems)))
    together = reduce(lambda one, more: COMMON("and_also", said=one, more=more), problems)
    again = SAY("common.again", problems=together).in_locale(reader)
    talk.append(ChatMessage(role="user", content=again))
    try:
        return await ask()
    except AppError:
        if first is None:
            raise
        return first


@cache
def _schema(answer: type[BaseModel]) -> ResponseSchema:
    return ResponseSchema(name=answer.__name__, json_schema=strict_schema(answer))
