"""The reporter writes the answer: by a model that is held to what was found, or by rules that only quote it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import structlog

from moot.modules.intake.application.ports import Errand
from moot.modules.intake.application.report_draft import (
    SHAPES,
    Draft,
    Material,
    cites,
    faults,
    fit_style,
    gather,
    keep_known,
    read_draft,
)
from moot.modules.intake.application.report_rules import compose, nothing_found
from moot.modules.intake.application.report_text import (
    clipped,
    day_of,
    headings_for,
    language_name,
    markdown_of,
    pieces,
    plain,
    safe_url,
    tamed,
)
from moot.modules.intake.domain.answer import Answer, Section, Style
from moot.modules.intake.domain.findings import Citation, Finding, Spent
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.question import reading_language
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
from moot.shared.domain.messages import LOCALES, Locale, Message
from moot.shared.domain.texts import SAY as COMMON

logger = structlog.get_logger(__name__)

AGENT = "reporter"
SCHEMA = ResponseSchema(name="Answer", json_schema=strict_schema(Draft))
LONGEST_TITLE = 200
NO_ADVICE = frozenset(COMMON("not_advice").in_locale(locale) for locale in LOCALES)
"""Said of every session; an answer says it once, at its end."""


@dataclass(frozen=True)
class Commission:
    """What an answer is to be written from, in which language and style."""

    material: Material
    locale: str
    style: Style

    @property
    def reader(self) -> Locale:
        return reading_language(self.locale)


@dataclass(frozen=True)
class Written:
    """A text and the sources it cites, in the order of their numbers."""

    draft: Draft
    citations: tuple[Citation, ...]
    engine: Literal["llm", "rules"]
    notes: list[Message] = field(default_factory=list)


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
        asked = Commission(gather(question, plan, findings, background), locale, style)
        written = await self._write(asked)
        answer = finish(written, asked, warnings, errand.spent)
        for piece in pieces(answer.markdown):
            errand.tell("message_chunk", text=piece)
        return answer

    async def _write(self, asked: Commission) -> Written:
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
        draft = _read(reply, asked.style)
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
        text, citations, removed = keep_known(draft, asked.material)
        return Written(text, citations, "llm", [*problems, *removed])

    async def _second(
        self, first: Draft | Message, messages: Sequence[ChatMessage], asked: Commission
    ) -> Draft | Message:
        """The second attempt; the first where only that can be read."""
        try:
            second = _read(await self._say(messages), asked.style)
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


def _read(reply: ChatResult, style: Style) -> Draft | Message:
    return SAY("report.cut_off") if reply.finish_reason == "length" else read_draft(reply.content, style)


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
    draft = nothing_found(material, asked.locale) if material.empty else compose(material, asked.locale)
    return Written(fit_style(draft, asked.style), material.sources, "rules", list(notes))


def finish(written: Written, asked: Commission, warnings: Sequence[str], spent: Spent) -> Answer:
    """`spent` is what models took beside the findings."""
    draft, findings = written.draft, asked.material.findings
    told = [note.in_locale(asked.reader) for note in [*written.notes, *_limits_reached(asked.material)]]
    found = [warning for finding in findings for warning in finding.warnings]
    answer = Answer(
        locale=asked.locale,
        style=asked.style,
        title=plain(clipped(draft.title, LONGEST_TITLE)),
        key_points=tuple(map(_one_line, draft.key_points)),
        sections=tuple(_sections(draft, asked)),
        citations=tuple(c.model_copy(update={"url": safe_url(c.url)}) for c in written.citations),
        engine=written.engine,
        disclaimer=_disclaimer(written.citations, asked, spent),
        warnings=tuple(note for note in dict.fromkeys([*warnings, *found, *told]) if note not in NO_ADVICE),
        markdown="",
    )
    return answer.model_copy(update={"markdown": markdown_of(answer)})


def _sections(draft: Draft, asked: Commission) -> Iterator[Section]:
    say = headings_for(asked.locale)
    texts = {
        "overview": tamed(draft.overview),
        "analysis": tamed(draft.analysis),
        "risks": "\n".join(f"- {_one_line(risk)}" for risk in draft.risks),
        "gaps": "\n".join(f"- {told}" for told in _gaps(asked)),
    }
    yield from (Section(heading=say[part], text=text) for part, text in texts.items() if text)


def _gaps(asked: Commission) -> Iterator[str]:
    """What is missing for the same reason is told together."""
    by_reason: dict[str, list[str]] = {}
    for gap in asked.material.gaps:
        reason = gap.reason if isinstance(gap.reason, str) else gap.reason.in_locale(asked.reader)
        by_reason.setdefault(reason, []).append(gap.subject)
    about = headings_for(asked.locale)["about"]
    for reason, subjects in by_reason.items():
        yield about.format(subject=plain(" · ".join(subjects)), text=plain(reason))


def _limits_reached(material: Material) -> Iterator[Message]:
    for finding in material.findings:
        if finding.status == "partial":
            yield SAY("report.partial", step=material.subject_of(finding.step_id))


def _one_line(text: str) -> str:
    return tamed(" ".join(text.split()))


def _disclaimer(citations: Sequence[Citation], asked: Commission, spent: Spent) -> str:
    """That it is no advice, how old it is as far as its sources say, and what it took."""
    say = headings_for(asked.locale)
    took = sum((finding.spent for finding in asked.material.findings), spent)
    parts = [say["not_advice"], *_age(citations, say), _took(took, say)]
    return reduce(lambda said, more: say["and_also"].format(said=said, more=more), parts)


def _age(citations: Sequence[Citation], say: Mapping[str, str]) -> Iterator[str]:
    if not citations:
        return
    days = sorted(filter(None, map(day_of, citations)))
    key = ("sources_dated" if days[0] < days[-1] else "sources_of_a_day") if days else "sources_undated"
    yield say[key].format(oldest=min(days, default=""), newest=max(days, default=""))


def _took(spent: Spent, say: Mapping[str, str]) -> str:
    if not spent.requests:
        return say["no_calls"]
    known = spent.cost is not None
    cost = f"{spent.cost:,.4f} {spent.currency or say['own_currency']}" if known else say["unpriced"]
    return say["calls"].format(requests=spent.requests, tokens=f"{spent.tokens:,}", cost=cost)
