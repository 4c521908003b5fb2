"""Trying a model out with small real calls, which are recorded and paid for like any other."""

import json
import time
from dataclasses import dataclass
from typing import Any

import typer

from moot.cli.printing import amount
from moot.cli.texts import SAY, environment_locale
from moot.modules.llm_platform.application.llm_service import (
    ChatMessage,
    ChatResult,
    LLMService,
    ResponseSchema,
    Tool,
)
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale, Message

CALLER = "cli"
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


@dataclass(frozen=True)
class Trial:
    """How a call went. `problem` None: the model did what it was asked to. `cost` None: nobody knows."""

    latency_ms: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    problem: Message | str | None = None


async def try_plain(llm: LLMService, alias: str) -> Trial:
    return (await _asked(llm, alias, "Reply with one word: ready"))[0]


async def try_schema(llm: LLMService, alias: str) -> Trial:
    """The name of the field stands in the schema only, so whoever answers with it was held to it."""
    if _refuses_schemas(llm, alias):
        return Trial(problem=SAY("llm.no_schema"))
    trial, answer = await _asked(llm, alias, "What is 2 + 3? Answer in JSON.", response_schema=SUM)
    if answer is None:
        return trial
    if _refuses_schemas(llm, alias):  # it was asked again without
        return Trial(problem=SAY("llm.no_schema"))
    return trial if _fields(answer.content) == {"sum"} else Trial(problem=SAY("llm.other_shape"))


async def try_tools(llm: LLMService, alias: str) -> Trial:
    question = "What is 2 + 3? Use the tool."
    trial, answer = await _asked(llm, alias, question, tools=[ADD], tool_choice=ADD.name)
    if answer is None:
        return trial
    used = [call for call in answer.tool_calls if call.name == ADD.name]
    return trial if used and _fields(used[0].arguments) == {"a", "b"} else Trial(problem=SAY("llm.no_tool"))


def show_trial(what: str, trial: Trial, currency: str, locale: Locale | None = None) -> None:
    """In the language of the terminal, unless another is named."""
    name = SAY(f"llm.trial.{what}")
    if trial.problem is not None:
        said = SAY("llm.trial_failed", what=name, why=trial.problem)
    else:
        said = SAY(
            "llm.trial_passed",
            what=name,
            ms=trial.latency_ms,
            prompt=_count(trial.prompt_tokens),
            completion=_count(trial.completion_tokens),
            cost=SAY("research.price_unknown") if trial.cost is None else f"{amount(trial.cost)} {currency}",
        )
    typer.echo(said.in_locale(locale or environment_locale()))


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


async def _asked(llm: LLMService, alias: str, question: str, **more: Any) -> tuple[Trial, ChatResult | None]:
    started = time.perf_counter()
    try:
        answer = await llm.chat(
            [ChatMessage(role="user", content=question)],
            alias=alias,
            temperature=TEMPERATURE,
            max_tokens=MOST_TOKENS,
            caller_module=CALLER,
            caller_agent=AGENT,
            **more,
        )
    except AppError as e:
        return Trial(problem=e.message), None
    usage = answer.usage
    took = round((time.perf_counter() - started) * 1000)
    return Trial(took, usage.prompt_tokens, usage.completion_tokens, answer.cost), answer


def _refuses_schemas(llm: LLMService, alias: str) -> bool:
    return llm.candidates(alias)[0].capabilities.json_schema is False


def _fields(text: str) -> set[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return set()
    return set(found) if isinstance(found, dict) else set()
