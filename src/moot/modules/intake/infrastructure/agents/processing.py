"""A processing step: works with what other steps have found. Models say what to compute; computing is done here."""

import json
from collections.abc import Sequence

import structlog
from pydantic import ValidationError

from moot.modules.intake.application.tables import as_table, side_by_side
from moot.modules.intake.application.worksheet import Computed, Worksheet, computed
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Step
from moot.modules.intake.domain.ports import Toolbox
from moot.modules.intake.domain.question import reading_language
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.agents.notebook import as_data
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.answer_schema import strict_schema, told_schema
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, ResponseSchema
from moot.shared.domain.errors import AppError, UpstreamFailed
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.validation import invalid_input

logger = structlog.get_logger(__name__)

LONGEST_FINDING = 12_000
SHEET = ResponseSchema(name="worksheet", json_schema=strict_schema(Worksheet))


class Processor:
    def __init__(self, llm: LLMService, toolbox: Toolbox, prompts: PromptTemplates) -> None:
        self._llm, self._toolbox, self._prompts = llm, toolbox, prompts

    async def process(self, step: Step, findings: Sequence[Finding], *, locale: str, goal: str) -> Finding:
        """From the usable ones of `findings` only: what failed is no evidence."""
        usable = [finding for finding in findings if finding.usable]
        language = reading_language(locale)
        table = comparison(usable)
        if not self._llm.configured:
            return _by_rules(step, usable, table, language, SAY("common.no_model"))
        try:
            return await self._computed(step, usable, table, locale=locale, goal=goal)
        except AppError as e:
            logger.warning("processing step without its model", step=step.id, error=str(e))
            return _by_rules(step, usable, table, language, e.message)

    async def _computed(
        self, step: Step, usable: Sequence[Finding], table: str, *, locale: str, goal: str
    ) -> Finding:
        language = reading_language(locale)
        sheet, done = await self._worksheet(step, usable, locale, goal)
        tables, citations, troubles = await self._queried(sheet, goal, language)
        text = "\n\n".join(part for part in (_results(done, language), *tables, table) if part)
        problems = [problem.in_locale(language) for problem in done.problems] + troubles
        if not text:
            error = " ".join(problems) or SAY("steps.nothing_computed").in_locale(language)
            return Finding(step_id=step.id, status="failed", error=error)
        return Finding(
            step_id=step.id,
            status="partial" if problems else "completed",
            text=text,
            citations=tuple(dict.fromkeys((*_sources(usable), *citations))),
            warnings=tuple(problems),
        )

    async def _worksheet(
        self, step: Step, usable: Sequence[Finding], locale: str, goal: str
    ) -> tuple[Worksheet, Computed]:
        """Asked for once, and once more with what is wrong with it; then what holds is what there is."""
        language = reading_language(locale)
        messages = self._opening(step, usable, locale, goal)
        said = await self._say(step, messages)
        try:
            sheet = _read(said)
            done = computed(sheet, usable)
            problems = list(done.problems)
        except UpstreamFailed as e:
            problems = [
                e.message if isinstance(e.message, Message) else SAY("steps.worksheet.unreadable", why=str(e))
            ]
        if not problems:
            return sheet, done
        told = " ".join(problem.in_locale(language) for problem in problems)
        again = SAY("steps.worksheet.again", problems=told).in_locale(language)
        correction = [ChatMessage(role="assistant", content=said), ChatMessage(role="user", content=again)]
        sheet = _read(await self._say(step, [*messages, *correction]))
        return sheet, computed(sheet, usable)

    def _opening(self, step: Step, usable: Sequence[Finding], locale: str, goal: str) -> list[ChatMessage]:
        language = reading_language(locale)
        task = SAY("steps.task", goal=goal, title=step.title, description=step.description)
        given = "\n\n".join(f"[{each.step_id}]\n{each.text[:LONGEST_FINDING]}" for each in usable)
        content = f"{task.in_locale(language)}\n\n{as_data(given, language)}"
        tables = [tool.description for tool in self._toolbox.tools if tool.name == "database"]
        return self._prompts.messages(
            "processing",
            {
                "locale": locale,
                "schema": json.dumps(told_schema(Worksheet), ensure_ascii=False),
                "database": " ".join(tables),
                "user_input": [ChatMessage(role="user", content=content)],
            },
        )

    async def _say(self, step: Step, messages: Sequence[ChatMessage]) -> str:
        reply = await self._llm.chat(
            messages,
            response_schema=SHEET,
            temperature=0.0,
            caller_module="intake",
            caller_agent=f"processing:{step.id}"[:50],
        )
        return reply.content or "{}"

    async def _queried(
        self, sheet: Worksheet, goal: str, language: Locale
    ) -> tuple[list[str], list[Citation], list[str]]:
        tables: list[str] = []
        citations: list[Citation] = []
        troubles: list[str] = []
        for place, query in enumerate(sheet.queries, 1):
            outcome = await self._toolbox.call(
                "database", {"sql": query.sql}, goal=goal, read=(), iteration=place, locale=language
            )
            if outcome.failed:
                troubles.append(f"{query.label}: {outcome.text}")
                continue
            tables.append(f"**{query.label}**\n\n{outcome.text}")
            citations += outcome.citations
        return tables, citations, troubles


def comparison(findings: Sequence[Finding]) -> str:
    """What the findings say of the same things."""
    return side_by_side([finding.figures for finding in findings])


def _by_rules(
    step: Step, usable: Sequence[Finding], table: str, language: Locale, why: Message | str
) -> Finding:
    said = why if isinstance(why, str) else why.in_locale(language)
    if not table:
        error = SAY("steps.nothing_to_compare", why=said).in_locale(language)
        return Finding(step_id=step.id, status="failed", error=error)
    return Finding(
        step_id=step.id, status="completed", text=table, citations=_sources(usable), warnings=(said,)
    )


def _results(done: Computed, language: Locale) -> str:
    if not done.results:
        return ""
    head = [SAY(f"steps.result.{column}").in_locale(language) for column in ("what", "how", "value")]
    rows = [[result.label, f"`{result.expression}`", result.shown] for result in done.results]
    values = "; ".join(f"{name} = {quote}" for name, quote in done.values.items())
    with_values = SAY("steps.result.with_values", values=values).in_locale(language) if values else ""
    return "\n\n".join(part for part in (as_table([head, *rows]), with_values) if part)


def _sources(findings: Sequence[Finding]) -> tuple[Citation, ...]:
    return tuple(dict.fromkeys(citation for finding in findings for citation in finding.citations))


def _read(said: str) -> Worksheet:
    """The sheet in what a model said, a code fence around it or not."""
    _, brace, rest = said.partition("{")
    try:
        return Worksheet.model_validate_json(f"{brace}{rest.rpartition('}')[0]}}}")
    except ValidationError as e:
        why = invalid_input(e.errors()).message
        raise UpstreamFailed(SAY("steps.worksheet.unreadable", why=why)) from None
