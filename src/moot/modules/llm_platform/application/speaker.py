"""An agent's turn: by a model, a prompt and evidence in and a checked answer out; or else by rule."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, reduce
from pathlib import Path
from string import Template
from typing import Generic, Literal, TypeVar

import structlog
from pydantic import BaseModel

from moot.modules.llm_platform.application.answer_schema import (
    NARRATIVE,
    NARRATIVE_LENGTH,
    Statements,
    collect_statements,
    describe_schema,
    find_foreign_fields,
    mark_texts,
    strict_schema,
)
from moot.modules.llm_platform.application.evidence_list import list_evidence
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.domain.chat import ChatMessage, ChatResult, ResponseSchema, compose
from moot.modules.llm_platform.domain.exceptions import LLMOutputParseError
from moot.modules.llm_platform.domain.parsing import Normaliser, parse_llm_json_output
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import Grounding, ground, mark_reported
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.texts import SAY as COMMON
from moot.shared.infrastructure.execution_context import current_context, tell_retry

logger = structlog.get_logger(__name__)

A = TypeVar("A", bound=BaseModel)
T = TypeVar("T")
Analyst = Literal["auto", "rubric", "llm"]
Fallback = Literal["none", "rubric"]


class Prompts:
    """A context's prompts, kept as text files: `<folder>/<locale>/<name>.md`. Each file is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, name: str, locale: Locale) -> str:
        return _read(self._folder / locale / f"{name}.md")

    def fill(self, name: str, locale: Locale, /, **values: str) -> str:
        """The text with every `$name` in it replaced; a value is never read as a template itself."""
        return Template(self.text(name, locale)).substitute(values)


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


PROMPTS = Prompts(Path(__file__).parent / "answer_rules")
NAMED_OFFENDERS = 5
NO_ANSWERS = {"length": "cut_off", "content_filter": "filtered", "refusal": "refused"}
"""Why a model stopped before it had answered."""
SAID = 200


@dataclass(frozen=True)
class Brief(Generic[A]):
    """What one agent is asked.

    `system` says who it is and how it judges; `case` is what it is to judge, beside the evidence. `normalise` runs on
    the parsed answer before it is validated as `answer`. `own` names the fields whose numbers are the agent's own
    judgement and so need no evidence. `claims` are the desk's own on this evidence: what their words say of a measure
    is that measure's.
    """

    module: str
    agent: str
    system: str
    case: str
    evidence: Sequence[Evidence]
    answer: type[A]
    locale: Locale
    as_of: datetime | None = None
    temperature: float = 0.3
    normalise: Normaliser = dict
    own: frozenset[str] = frozenset({"confidence", "confidence_score", "score"})
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Spoken(Generic[A]):
    """`input` is the user message, `output` the text the model answered with, both for the record.

    In the texts of `answer` what is merely reported is marked.
    """

    answer: A
    input: str
    output: str
    grounding: Grounding
    warnings: list[str] = field(default_factory=list)


class Speaker:
    """Asks once, and once more with the concrete errors if the answer does not hold; then it is a failure."""

    def __init__(self, llm: LLMService, *, min_grounding: float = 0.8) -> None:
        self._llm, self._min_grounding = llm, min_grounding

    async def ask(self, brief: Brief[A]) -> Spoken[A]:
        """The answer, or an `LLMOutputParseError`. What goes wrong on the way to the model passes as it is."""
        opening = [*compose(_question(brief), brief.system), *_last_time(brief.locale)]
        reply = await self._say(brief, opening)
        try:
            return self._check(brief, opening, reply)
        except LLMOutputParseError as e:
            logger.warning("answer refused, asked again", agent=brief.agent, error=str(e))
            tell_retry(2, e.message)
            again = PROMPTS.fill("again", brief.locale, problem=e.in_locale(brief.locale))
        answered = ChatMessage(role="assistant", content=reply.content or "{}")
        reply = await self._say(brief, [*opening, answered, *compose(again)])
        try:
            return self._check(brief, opening, reply)
        except LLMOutputParseError as e:
            raise LLMOutputParseError(SAY("answer.unusable", problem=e.message), **e.details) from e

    async def _say(self, brief: Brief[A], messages: list[ChatMessage]) -> ChatResult:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", brief.answer.__name__)[:64]
        return await self._llm.chat(
            messages,
            response_schema=ResponseSchema(name=name, json_schema=strict_schema(brief.answer)),
            temperature=brief.temperature,
            caller_module=brief.module,
            caller_agent=brief.agent,
        )

    def _check(self, brief: Brief[A], opening: list[ChatMessage], reply: ChatResult) -> Spoken[A]:
        if why := NO_ANSWERS.get(reply.finish_reason):
            raise LLMOutputParseError(
                SAY(f"answer.{why}", said=reply.content[:SAID]), raw_length=len(reply.content)
            )
        answer = parse_llm_json_output(
            reply.content, brief.answer, normalizers=[brief.normalise], context_label=brief.agent
        )
        said = collect_statements(answer, brief.own)
        own, figures, claims = said.own, said.figures, brief.claims
        grounding = ground(
            said.all_texts, brief.evidence, given=brief.case, own=own, figures=figures, claims=claims
        )
        problems = _language_problems(brief, said)
        if grounding.score < self._min_grounding:
            problems.append(SAY("answer.ungrounded", offenders=grounding.offenders[:NAMED_OFFENDERS]))
        if problems:
            raise LLMOutputParseError(
                reduce(lambda all_, more: COMMON("and_also", said=all_, more=more), problems),
                raw_length=len(reply.content),
                grounding=grounding.model_dump(),
            )
        warnings = [*_warn(brief, answer, reply)]
        if reported := grounding.reported:
            warnings.append(SAY("answer.reported", reported=reported))
            answer = mark_texts(answer, lambda text: mark_reported(text, reported, brief.locale))
        told = [warning.in_locale(brief.locale) for warning in warnings]
        return Spoken(answer, opening[1].content, reply.content, grounding, told)


class EngineChoice:
    """`auto` asks a model when one is configured. If it fails, its agent has failed, unless there is a `fallback`.

    On replay whoever judged then judges again, whatever models the desk has by now.
    """

    def __init__(self, llm: LLMService, analyst: Analyst = "auto", fallback: Fallback = "none") -> None:
        self._llm, self._analyst, self._fallback = llm, analyst, fallback

    @property
    def by_model(self) -> bool:
        analyst, _ = self._settings()
        return analyst == "llm" or (analyst == "auto" and self._llm.configured)

    async def make(
        self, agent: str, by_model: Callable[[], Awaitable[T]], by_rule: Callable[[], Awaitable[T]]
    ) -> T:
        if not self.by_model:
            return await by_rule()
        try:
            return await by_model()
        except AppError as e:
            if self._settings()[1] == "none":
                raise
            logger.warning("model failed, judged by rule instead", agent=agent, error=str(e))
            return await by_rule()

    def _settings(self) -> tuple[Analyst, Fallback]:
        """The session's, on replay or where it has its own; else the desk's."""
        context = current_context()
        if context.analyst is None:
            return self._analyst, self._fallback
        return context.analyst, context.fallback


def _last_time(locale: Locale) -> list[ChatMessage]:
    """What went wrong when this was tried before, if it was."""
    feedback = current_context().feedback
    if feedback is None:
        return []
    said = SAY("answer.last_time", error=feedback["error"], suggestion=feedback["suggestion"])
    return [ChatMessage(role="user", content=said.in_locale(locale))]


def _question(brief: Brief[A]) -> str:
    low, high = map(str, NARRATIVE_LENGTH[brief.locale])
    tells = NARRATIVE in brief.answer.model_fields
    return PROMPTS.fill(
        "turn",
        brief.locale,
        case=brief.case,
        evidence=list_evidence(brief.evidence, brief.locale),
        narrative=PROMPTS.fill("narrative", brief.locale, low=low, high=high) if tells else "",
        schema=json.dumps(describe_schema(brief.answer), ensure_ascii=False),
    )


def _language_problems(brief: Brief[A], said: Statements) -> list[Message]:
    shown = "\n".join([brief.case, *(f"{item.id} {item.value} {item.source}" for item in brief.evidence)])
    fields = find_foreign_fields(said.texts, brief.locale, shown)
    language = SAY(f"answer.language.{brief.locale}")
    return [SAY("answer.wrong_language", language=language, fields=fields)] if fields else []


def _warn(brief: Brief[A], answer: A, reply: ChatResult) -> Iterator[Message]:
    """A model that has read of later days may know how the story went on, whatever it is shown."""
    known = reply.knowledge_cutoff
    if brief.as_of is not None and known is not None and known > brief.as_of.date():
        yield SAY("answer.hindsight", known=known, as_of=brief.as_of.date())
    words, (low, high) = getattr(answer, NARRATIVE, "").split(), NARRATIVE_LENGTH[brief.locale]
    length = sum(map(len, words)) if brief.locale == "zh-CN" else len(words)
    if NARRATIVE in brief.answer.model_fields and not low <= length <= high:
        logger.warning("narrative too short or too long", agent=brief.agent, length=length)
        yield SAY("answer.narrative_length", length=length, low=low, high=high)
