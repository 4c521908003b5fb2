"""A research step: a model looks things up with governed tools until it knows, or until a limit says enough."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import structlog

from moot.modules.intake.application.telling import tell
from moot.modules.intake.domain.findings import Finding, StepStatus
from moot.modules.intake.domain.plan import Step
from moot.modules.intake.domain.ports import Toolbox, ToolOutcome
from moot.modules.intake.domain.question import Limits, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.agents.notebook import Notebook, as_data
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.llm_service import ChatMessage, ChatResult, LLMService, Tool
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale

logger = structlog.get_logger(__name__)

LOOKING_UP, SUMMING_UP = 0.75, 0.2
"""Shares of a step's time. What is left is for whoever waits for the step."""
LONGEST_QUERY, LONGEST_TOLD = 400, 500
URL = re.compile(r"https?://[^\s<>()\"'，。；、）】]+")
AGENT, SEARCH = "researcher", "web_search"


class Researcher:
    def __init__(
        self,
        llm: LLMService,
        toolbox: Toolbox,
        prompts: PromptTemplates,
        limits: Limits,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._llm, self._toolbox, self._prompts, self._limits = llm, toolbox, prompts, limits
        self._clock = clock or SystemClock()

    async def research(
        self, step: Step, *, locale: str, goal: str, background: str = "", limits: Limits | None = None
    ) -> Finding:
        """What could be found out; `background` is what is known already, and is read as words of strangers."""
        limits = limits or self._limits
        if not self._llm.configured:
            return await self._without_model(step, reading_language(locale), goal, limits)
        opening = self._opening(step, locale, goal, background, limits)
        read = [background] if background else []
        notes = Notebook(opening, goal, reading_language(locale), limits, read=read)
        try:
            text = await self._look_up(step, notes)
            if text is None:
                return await self._summary(step, notes)
            return _finding(step, "partial" if notes.limit else "completed", text, notes, notes.limit)
        except AppError as e:
            logger.warning("research step without its model", step=step.id, error=str(e))
            return _as_found(step, notes, e.in_locale(notes.locale))

    def _opening(
        self, step: Step, locale: str, goal: str, background: str, limits: Limits
    ) -> list[ChatMessage]:
        language = reading_language(locale)
        task = SAY("steps.task", goal=goal, title=step.title, description=step.description)
        known = [as_data(background, language)] if background else []
        return self._prompts.messages(
            AGENT,
            {
                "locale": locale,
                "CURRENT_TIME": f"{self._clock.now():%Y-%m-%d %H:%M:%S}",
                "max_tool_calls": limits.max_tool_calls,
                "need_web_search": step.need_web_search,
                "user_input": [
                    ChatMessage(role="user", content="\n\n".join([task.in_locale(language), *known]))
                ],
            },
        )

    async def _look_up(self, step: Step, notes: Notebook) -> str | None:
        """The model's own last word; None where a limit came first."""
        try:
            async with asyncio.timeout(notes.limits.step_timeout * LOOKING_UP):
                while notes.limit is None:
                    reply = await self._ask(step, notes, self._offered())
                    if not reply.tool_calls:
                        return _last_word(reply, notes)
                    await self._turn(step, reply, notes)
        except TimeoutError:
            notes.limit = SAY("steps.limit.time").in_locale(notes.locale)
        return None

    async def _turn(self, step: Step, reply: ChatResult, notes: Notebook) -> None:
        """All calls at the same time, each told in its place; those beyond the limit are not made.

        Whoever asks only what was asked before will not stop by himself.
        """
        if not notes.asks_anew(reply):
            notes.limit = SAY("steps.limit.repeated").in_locale(notes.locale)
            return
        asked = [(call.name, _arguments(call.arguments)) for call in reply.tool_calls]
        for name, given in asked:
            tell("tool_call", step=step.id, name=name, arguments=given)
        beyond = SAY("steps.limit.calls", most=notes.limits.max_tool_calls).in_locale(notes.locale)
        left, first = notes.calls_left, notes.calls + 1
        notes.calls += min(left, len(asked))
        made = (self._call(*call, notes, iteration) for iteration, call in enumerate(asked[:left], first))
        outcomes = [*await asyncio.gather(*made), *(ToolOutcome(beyond, failed=True) for _ in asked[left:])]
        notes.told(reply, outcomes)
        _tell(step, reply, outcomes)
        if notes.limit is None and notes.calls_left == 0:
            notes.limit = beyond

    async def _call(
        self, name: str, given: dict[str, Any] | str, notes: Notebook, iteration: int
    ) -> ToolOutcome:
        if isinstance(given, str):
            return ToolOutcome(SAY("steps.tool.bad_json", name=name).in_locale(notes.locale), failed=True)
        if name == SEARCH:
            given = {**given, "count": notes.limits.max_search_results}
        return await self._toolbox.call(
            name,
            given,
            goal=notes.goal,
            read=tuple(notes.read),
            iteration=iteration,
            tokens=notes.tokens,
            seconds=notes.seconds,
            locale=notes.locale,
        )

    async def _summary(self, step: Step, notes: Notebook) -> Finding:
        """Of what there is, without another look."""
        why = notes.limit or SAY("steps.limit.silent").in_locale(notes.locale)
        notes.limit = why
        if not notes.passages:
            return Finding(step_id=step.id, status="failed", error=why)
        asked = SAY("steps.sum_up", why=why).in_locale(notes.locale)
        notes.turns.append(ChatMessage(role="user", content=asked))
        try:
            async with asyncio.timeout(notes.limits.step_timeout * SUMMING_UP):
                reply = await self._ask(step, notes, [])
        except TimeoutError:
            return _as_found(step, notes, why)
        text = reply.content.strip()
        says_more = text and why not in text
        return _finding(step, "partial", text, notes, why) if says_more else _as_found(step, notes, why)

    async def _ask(self, step: Step, notes: Notebook, tools: Sequence[Tool]) -> ChatResult:
        reply = await self._llm.chat(
            notes.messages(),
            tools,
            temperature=0.3,
            caller_module="intake",
            caller_agent=f"{AGENT}:{step.id}"[:50],
        )
        notes.heard(reply)
        return reply

    def _offered(self) -> list[Tool]:
        return [Tool(**spec.model_dump()) for spec in self._toolbox.tools]

    async def _without_model(self, step: Step, language: Locale, goal: str, limits: Limits) -> Finding:
        """One search, or what the directory knows: quoted as it is, for there is nobody to read it."""
        asked = self._rule_call(step, limits)
        if asked is None:
            error = SAY("steps.nothing_to_search_with").in_locale(language)
            return Finding(step_id=step.id, status="failed", error=error)
        name, arguments = asked
        outcome = await self._toolbox.call(name, arguments, goal=goal, read=(), iteration=1, locale=language)
        if outcome.failed or not outcome.citations:
            return Finding(step_id=step.id, status="failed", error=outcome.text)
        label = SAY("steps.quoted" if outcome.tainted else "steps.looked_up", title=step.title)
        return Finding(
            step_id=step.id,
            status="completed",
            text=f"{label.in_locale(language)}\n\n{outcome.text}",
            citations=outcome.citations,
            warnings=(SAY("common.no_model").in_locale(language),),
        )

    def _rule_call(self, step: Step, limits: Limits) -> tuple[str, dict[str, Any]] | None:
        offered = {tool.name for tool in self._toolbox.tools}
        if SEARCH in offered:
            return SEARCH, {"query": step.title[:LONGEST_QUERY], "count": limits.max_search_results}
        if step.symbol and "find_company" in offered:
            return "find_company", {"text": step.symbol}
        return None


def _arguments(said: str) -> dict[str, Any] | str:
    """As the model wrote them, where that is no JSON object."""
    try:
        given = json.loads(said or "{}")
    except (ValueError, RecursionError):
        return said
    return given if isinstance(given, dict) else said


def _tell(step: Step, reply: ChatResult, outcomes: Sequence[ToolOutcome]) -> None:
    for call, outcome in zip(reply.tool_calls, outcomes, strict=True):
        told = {"failed": outcome.failed, "tainted": outcome.tainted, "text": outcome.text[:LONGEST_TOLD]}
        tell("tool_result", step=step.id, name=call.name, **told)
        for citation in outcome.citations:
            tell("citation", step=step.id, **citation.model_dump())


def _last_word(reply: ChatResult, notes: Notebook) -> str | None:
    if reply.finish_reason == "length":
        notes.limit = SAY("steps.limit.length").in_locale(notes.locale)
    return reply.content.strip() or None


def _finding(step: Step, status: StepStatus, text: str, notes: Notebook, why: str | None = None) -> Finding:
    return Finding(
        step_id=step.id,
        status=status,
        text=text,
        citations=notes.citations,
        warnings=tuple(w for w in (why, *_doubts(text, notes)) if w),
    )


def _as_found(step: Step, notes: Notebook, why: str) -> Finding:
    """What the tools said, where no model sums it up; a step that was told nothing has failed."""
    if not notes.passages:
        return Finding(step_id=step.id, status="failed", error=why)
    label = SAY("steps.quoted", title=step.title).in_locale(notes.locale)
    return _finding(step, "partial", "\n\n".join([label, *notes.passages]), notes, why)


def _doubts(text: str, notes: Notebook) -> list[str]:
    """A claim that nobody looked up, and an address that no tool has given."""
    doubts = [] if notes.sources else [SAY("steps.unsourced")]
    known = "\n".join([*notes.passages, *(message.content for message in notes.opening)])
    strange = sorted({url for url in URL.findall(text) if url.rstrip("/.,;:") not in known})
    doubts += [SAY("steps.strange_source", urls=strange)] if strange else []
    return [doubt.in_locale(notes.locale) for doubt in doubts]
