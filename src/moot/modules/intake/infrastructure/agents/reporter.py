"""The reporter writes the answer: by a model that is held to what was found, or by rules that only quote it."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Literal

import structlog

from moot.modules.intake.application.intake_state import Errand, IntakeState
from moot.modules.intake.application.report_draft import MOST_POINTS, Draft, Material, gather, keep_known
from moot.modules.intake.application.report_rules import compose
from moot.modules.intake.application.report_text import (
    clean_url,
    clip,
    day_of,
    language_name,
    markdown_of,
    split_blocks,
    tame,
)
from moot.modules.intake.domain.conversation import Answer, Section, Style
from moot.modules.intake.domain.question import Citation, Spent
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.prompt_templates import Problems, PromptTemplates, ask_twice
from moot.modules.llm_platform.application.answer_schema import describe_schema
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, parse_llm_json_output
from moot.shared.domain.errors import AppError, UpstreamFailed
from moot.shared.domain.markdown import escape, list_lines
from moot.shared.domain.messages import LOCALES, Message
from moot.shared.domain.texts import SAY as COMMON

logger = structlog.get_logger(__name__)

AGENT = "reporter"
LONGEST_TITLE = 200
NO_ADVICE = frozenset(COMMON("not_advice").in_locale(locale) for locale in LOCALES)
"""Said of every session; an answer says it once, at its end."""
UNBEARABLE = ("report.uncited", "report.overruled")
"""What cites nothing, or rules by itself, is left to the rules."""

Written = tuple[Draft, tuple[Citation, ...], Literal["llm", "rules"], Problems]
"""A text, the sources it cites in the order of their numbers, who wrote it, and what the reader must know of it."""


class Reporter:
    def __init__(self, llm: LLMService, prompts: PromptTemplates) -> None:
        self._llm, self._prompts = llm, prompts

    async def write(self, state: IntakeState, style: Style, errand: Errand) -> Answer:
        """The answer. Its Markdown is told in pieces, once all of it is checked."""
        material = gather(state, style)
        answer = _finish(await self._write(material), material, state.warnings, errand.spent)
        for piece in split_blocks(answer.markdown):
            errand.tell("message_chunk", text=piece)
        return answer

    async def _write(self, material: Material) -> Written:
        """Nobody is asked to write about nothing; whatever keeps a model from it leaves it to the rules."""
        notes: Problems = ()
        if not self._llm.configured:
            notes = [SAY("common.no_model")]
        elif material.found or material.sources:
            try:
                return await self._by_model(material)
            except AppError as e:
                logger.warning("no model wrote the answer, the rules did", error=str(e))
                notes = [SAY("report.model_failed", reason=e.message)]
        return compose(material).fit(material.style), material.sources, "rules", notes

    async def _by_model(self, material: Material) -> Written:
        """Of problems that stay the reader is told."""

        async def read(said: str) -> tuple[Draft, Problems]:
            draft = parse_llm_json_output(said, Draft).fit(material.style)
            return draft, material.find_faults(draft)

        variables = {
            "locale": material.locale,
            "language": language_name(material.locale),
            "style": material.style,
            "most_key_points": MOST_POINTS[material.style],
            "schema": describe_schema(Draft),
            "user_input": [ChatMessage(role="user", content=material.show())],
        }
        talk = self._prompts.messages(AGENT, variables)
        draft, problems = await ask_twice(
            self._llm, talk, Draft, read, agent=AGENT, temperature=0.3, reader=material.reader
        )
        for problem in problems:
            if isinstance(problem, Message) and problem.key in UNBEARABLE:
                raise UpstreamFailed(problem)
        text, citations, removed = keep_known(draft, material)
        return text, citations, "llm", [*problems, *removed]


def _finish(written: Written, material: Material, warnings: Sequence[str], spent: Spent) -> Answer:
    """`spent` is what models took beside the findings."""
    draft, cited, engine, notes = written
    findings = [found.finding for found in material.found]
    limits = [
        SAY("report.partial", step=found.subject)
        for found in material.found
        if found.finding.status == "partial"
    ]
    told = [note if isinstance(note, str) else note.in_locale(material.reader) for note in [*notes, *limits]]
    unread = material.say["speaks_english"] if engine == "rules" else ""
    noted = [unread, *warnings, *(warning for finding in findings for warning in finding.warnings), *told]
    took = sum((finding.spent for finding in findings), spent)
    answer = Answer(
        locale=material.locale,
        style=material.style,
        title=escape(clip(draft.title, LONGEST_TITLE)),
        key_points=tuple(map(_one_line, draft.key_points)),
        sections=tuple(_sections(draft, material)),
        citations=tuple(c.model_copy(update={"url": clean_url(c.url)}) for c in cited),
        engine=engine,
        disclaimer=_disclaimer(cited, took, material.say),
        warnings=tuple(note for note in dict.fromkeys(noted) if note and note not in NO_ADVICE),
        markdown="",
    )
    return answer.model_copy(update={"markdown": markdown_of(answer)})


def _sections(draft: Draft, material: Material) -> Iterator[Section]:
    texts = {
        "overview": tame(draft.overview),
        "analysis": tame(draft.analysis),
        "risks": list_lines(map(_one_line, draft.risks)),
        "gaps": list_lines(_gaps(material)),
    }
    yield from (Section(heading=material.say[part], text=text) for part, text in texts.items() if text)


def _gaps(material: Material) -> Iterator[str]:
    """What is missing for the same reason is told together."""
    by_reason: dict[str, list[str]] = {}
    for subject, reason in material.gaps:
        told = reason if isinstance(reason, str) else reason.in_locale(material.reader)
        by_reason.setdefault(told, []).append(subject)
    for told, subjects in by_reason.items():
        yield material.say["about"].format(subject=escape(" · ".join(subjects)), text=escape(told))


def _one_line(text: str) -> str:
    return tame(" ".join(text.split()))


def _disclaimer(citations: Sequence[Citation], took: Spent, say: Mapping[str, str]) -> str:
    """That it is no advice, how old it is as far as its sources say, and what it took."""
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
