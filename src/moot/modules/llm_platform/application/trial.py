"""Whether a model works: what it is asked, and what counts as an answer."""

import json
import time
from dataclasses import dataclass
from typing import Any

from moot.modules.llm_platform.application.llm_service import (
    ChatMessage,
    ChatResult,
    LLMService,
    ResponseSchema,
    Tool,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Message

AGENT = "model_trial"
TEMPERATURE = 0.3
MOST_TOKENS = 1024
"""Room for a model that thinks before it answers."""


def _numbers(*names: str) -> dict[str, Any]:
    """The schema of an object of whole numbers."""
    fields = {name: {"type": "integer"} for name in names}
    return {"type": "object", "properties": fields, "required": list(names), "additionalProperties": False}


SUM = ResponseSchema(name="sum", json_schema=_numbers("sum"))
ADD = Tool(name="add", description="Adds two whole numbers.", parameters=_numbers("a", "b"))
TRIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("Reply with one word: ready", {}),
    "schema": ("What is 2 + 3? Answer in JSON.", {"response_schema": SUM}),
    "tools": ("What is 2 + 3? Use the tool.", {"tools": [ADD]}),
}
"""The names of the fields stand in the schemas only, so whoever answers with them was held to them."""


@dataclass(frozen=True)
class Trial:
    """How a call went. `problem` None: the model did what it was asked to."""

    problem: Message | str | None = None
    answer: ChatResult | None = None
    latency_ms: int = 0


async def try_model(llm: LLMService, alias: str, what: str, *, caller: str) -> Trial:
    """The call is recorded and budgeted like every other."""
    question, more = TRIALS[what]
    started = time.perf_counter()
    try:
        answer = await llm.chat(
            [ChatMessage(role="user", content=question)],
            alias=alias,
            temperature=TEMPERATURE,
            max_tokens=MOST_TOKENS,
            caller_module=caller,
            caller_agent=AGENT,
            **more,
        )
    except AppError as e:
        return Trial(e.message)
    used = [_fields(call.arguments) for call in answer.tool_calls if call.name == ADD.name]
    if (
        what == "schema" and llm.candidates(alias)[0].capabilities.json_schema is False
    ):  # it was asked without
        return Trial(SAY("trial.no_schema"))
    if what == "schema" and _fields(answer.content) != {"sum"}:
        return Trial(SAY("trial.other_shape"))
    if what == "tools" and used[:1] != [{"a", "b"}]:
        return Trial(SAY("trial.no_tool"))
    return Trial(answer=answer, latency_ms=round((time.perf_counter() - started) * 1000))


def _fields(text: str) -> set[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return set()
    return set(found) if isinstance(found, dict) else set()
