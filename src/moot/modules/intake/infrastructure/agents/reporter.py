"""The reporter writes the answer: by a model that is held to what was found, or by rules that only quote it."""

from collections.abc import Sequence
from functools import reduce

import structlog

from moot.modules.intake.application.errand import Errand
from moot.modules.intake.application.headings import language_name
from moot.modules.intake.application.report_answer import Commission, Written, finished
from moot.modules.intake.application.report_checks import cites, faults, only_known
from moot.modules.intake.application.report_draft import SHAPES, Draft, read_draft, shaped
from moot.modules.intake.application.report_material import gathered
from moot.modules.intake.application.report_rules import composed, nothing_found
from moot.modules.intake.application.report_text import pieces
from moot.modules.intake.domain.answer import Answer, Style
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.answer_schema import strict_schema, told_schema
from moot.modules.llm_platform.application.llm_service import (
    ChatMessage,
    ChatResult,
    LLMService,
    ResponseSchema,
)
from moot.shared.domain.errors import AppError, UpstreamFailed
from moot.shared.domain.messages import Message
from moot.shared.domain.texts import SAY as COMMON

logger = structlog.get_logger(__name__)

AGENT = "reporter"
SCHEMA = ResponseSchema(name="Answer", json_schema=strict_schema(Draft))


class Reporter:
    def __init__(self, llm: LLMService, prompts: PromptTemplates) -> None:
        self._llm, self._prompts = llm, prompts

    async def write(
        self,
        question: str,
        plan: Plan | None,
        findings: Sequence[Finding],
        *,
        locale: str,
        style: Style,
        background: Sequence[Citation] = (),
        warnings: Sequence[str] = (),
        errand: Errand,
    ) -> Answer:
        """The answer. Its Markdown is told in pieces, once all of it is checked."""
        asked = Commission(gathered(question, plan, findings, background), locale, style)
        written = await self._written(asked)
        answer = finished(written, asked, warnings, errand.spent)
        for piece in pieces(answer.markdown):
            errand.tell("message_chunk", text=piece)
        return answer

    async def _written(self, asked: Commission) -> Written:
        """Nobody is asked to write about nothing; whatever keeps a model from it leaves it to the rules."""
        if not self._llm.configured:
            return _by_rules(asked, SAY("common.no_model"))
        if asked.material.empty:
            return _by_rules(asked)
        try:
            return await self._by_model(asked)
        except AppError as e:
            logger.warning("no model wrote the answer, the rules did", error=str(e))
            return _by_rules(asked, SAY("report.model_failed", reason=e.message))

    async def _by_model(self, asked: Commission) -> Written:
        """Asked once, and once more with the concrete problems; of those that stay the reader is told.

        What cites nothing at all is not told: the rules cite everything.
        """
        opening = self._opening(asked)
        reply = await self._say(opening)
        draft = read_draft(reply, asked.style)
        problems = _problems(draft, asked)
        if problems:
            logger.warning("answer refused, asked again", agent=AGENT, problems=list(map(str, problems)))
            correction = _correction(reply, problems, asked)
            draft = await self._second(draft, [*opening, *correction], asked)
            problems = _problems(draft, asked)
        if isinstance(draft, Message):
            raise UpstreamFailed(draft)
        if not cites(draft, asked.material):
            raise UpstreamFailed(SAY("report.uncited"))
        text, citations, removed = only_known(draft, asked.material)
        return Written(text, citations, "llm", [*problems, *removed])

    async def _second(
        self, first: Draft | Message, messages: Sequence[ChatMessage], asked: Commission
    ) -> Draft | Message:
        """The second attempt; the first where only that can be read."""
        try:
            second = read_draft(await self._say(messages), asked.style)
        except AppError:
            if isinstance(first, Message):
                raise
            return first
        return first if isinstance(second, Message) and isinstance(first, Draft) else second

    def _opening(self, asked: Commission) -> list[ChatMessage]:
        variables = {
            "locale": asked.locale,
            "language": language_name(asked.locale),
            "style": asked.style,
            "most_key_points": SHAPES[asked.style].key_points,
            "schema": told_schema(Draft),
            "user_input": [ChatMessage(role="user", content=asked.material.shown())],
        }
        return self._prompts.messages(AGENT, variables)

    async def _say(self, messages: Sequence[ChatMessage]) -> ChatResult:
        return await self._llm.chat(
            messages,
            response_schema=SCHEMA,
            temperature=0.3,
            caller_module="intake",
            caller_agent=AGENT,
        )


def _problems(draft: Draft | Message, asked: Commission) -> list[Message]:
    if isinstance(draft, Message):
        return [draft]
    return faults(draft, asked.material, locale=asked.locale, style=asked.style)


def _correction(reply: ChatResult, problems: Sequence[Message], asked: Commission) -> list[ChatMessage]:
    together = reduce(lambda said, more: COMMON("and_also", said=said, more=more), problems)
    again = SAY("report.again", problems=together).in_locale(asked.reader)
    return [
        ChatMessage(role="assistant", content=reply.content or "{}"),
        ChatMessage(role="user", content=again),
    ]


def _by_rules(asked: Commission, *notes: Message) -> Written:
    material = asked.material
    draft = nothing_found(material, asked.locale) if material.empty else composed(material, asked.locale)
    return Written(shaped(draft, asked.style), material.sources, "rules", list(notes))
