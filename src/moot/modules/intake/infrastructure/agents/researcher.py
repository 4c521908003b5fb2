"""A research step: a model looks things up with governed tools until it knows, or until a limit says enough."""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from moot.modules.intake.application.intake_state import Task
from moot.modules.intake.domain.question import Citation, Finding, Step
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.adapters.toolbox import GovernedToolbox, ToolOutcome
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates, literals, repeats_prompt
from moot.modules.llm_platform.application.llm_service import ChatMessage, ChatResult, LLMService, Tool
from moot.shared.domain.errors import AppError, UpstreamFailed
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.working_time import WorkingTime

logger = structlog.get_logger(__name__)

LOOKING_UP, SUMMING_UP = 0.75, 0.2
"""Shares of a step's time. What is left is for whoever waits for the step."""
LONGEST_TOLD = 500
MOST_CHARACTERS = 50_000
"""Of all messages after the first ones; the oldest words go first."""
URL = re.compile(r"https?://[^\s<>()\"'，。；、）】]+")
AGENT, SEARCH = "researcher", "web_search"


def _worked() -> float:
    """A clock that does not run while models are waited for."""
    return time.monotonic() - current_context().tally.waiting.seconds


@dataclass
class Notebook:
    """What a step has asked and been told.

    `calls` counts those that failed too. `passages` are what the tools said, as a reader may see it, `read` those of
    strangers. `limit` says why nothing more is looked up.
    """

    step: Step
    task: Task
    opening: Sequence[ChatMessage]
    began: float = field(default_factory=_worked)
    turns: list[ChatMessage] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0
    read: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    passages: list[str] = field(default_factory=list)
    sources: dict[tuple[str, str], Citation] = field(default_factory=dict)
    limit: str | None = None

    def keep(self, reply: ChatResult, outcomes: Sequence[ToolOutcome]) -> None:
        """A whole turn, in the order of its calls; services refuse a call that nothing answers."""
        said = ChatMessage(role="assistant", content=reply.content, tool_calls=list(reply.tool_calls))
        self.turns.append(said)
        for call, outcome in zip(reply.tool_calls, outcomes, strict=True):
            content = as_data(outcome.text, self.task.reader) if outcome.tainted else outcome.text
            self.turns.append(ChatMessage(role="tool", content=content, tool_call_id=call.id))
            self.limit = outcome.text if outcome.ends else self.limit
            self.passages += [] if outcome.failed else [outcome.text]
            self.read += [outcome.text] if outcome.tainted else []
            told = {"failed": outcome.failed, "tainted": outcome.tainted, "text": outcome.text[:LONGEST_TOLD]}
            self.task.errand.tell("tool_result", step=self.step.id, name=call.name, **told)
            for citation in outcome.citations:
                self.sources.setdefault((citation.url or citation.title, citation.source), citation)

    def messages(self) -> list[ChatMessage]:
        kept = list(_clip(self.turns, self.task.say("steps.left_out")))
        return [*self.opening, *reversed(kept)]

    def finding(self, text: str | None) -> Finding:
        """What the tools said, where no model sums it up.

        A step that found no source, and was told of none, has failed: what a model remembers is no finding.
        """
        known = self.sources or self.task.background
        if not known or (text is None and not self.passages):
            error = self.limit or self.task.say("steps.unsourced")
            return Finding(step_id=self.step.id, status="failed", error=error)
        label = self.task.say("steps.quoted", title=self.step.title)
        told = text or "\n\n".join([label, *self.passages])
        return Finding(
            step_id=self.step.id,
            status="partial" if self.limit else "completed",
            text=told,
            citations=tuple(self.sources.values()),
            warnings=tuple(([self.limit] if self.limit else []) + self._doubts(told)),
        )

    def _doubts(self, text: str) -> list[str]:
        """An address that no tool has given."""
        known = "\n".join([*self.passages, *(message.content for message in self.opening)])
        strange = sorted({url for url in URL.findall(text) if url.rstrip("/.,;:") not in known})
        return [self.task.say("steps.strange_source", urls=strange)] if strange else []


class Researcher:
    def __init__(self, llm: LLMService, toolbox: GovernedToolbox, prompts: PromptTemplates) -> None:
        self._llm, self._toolbox, self._prompts = llm, toolbox, prompts

    async def research(self, step: Step, task: Task) -> Finding:
        """What could be found out; what is known already is read as words of strangers."""
        notes = Notebook(step, task, self._opening(step, task))
        notes.read += [task.background] if task.background else []
        try:
            return notes.finding(await self._look_up(notes) or await self._sum_up(notes))
        except AppError as e:
            logger.warning("research step without its model", step=step.id, error=str(e))
            notes.limit = e.in_locale(task.reader)
            return notes.finding(None)

    def _opening(self, step: Step, task: Task) -> list[ChatMessage]:
        asked = task.say("steps.task", goal=task.goal, title=step.title, description=step.description)
        known = [as_data(task.background, task.reader)] if task.background else []
        return self._prompts.messages(
            AGENT,
            {
                "locale": task.locale,
                "max_tool_calls": task.limits.max_tool_calls,
                "need_web_search": step.need_web_search,
                "user_input": [ChatMessage(role="user", content="\n\n".join([asked, *known]))],
            },
        )

    async def _look_up(self, notes: Notebook) -> str | None:
        """The model's own last word; None where a limit came first."""
        say = notes.task.say
        try:
            async with WorkingTime(notes.task.limits.step_timeout * LOOKING_UP):
                while notes.limit is None:
                    reply = await self._ask(notes, self._toolbox.tools)
                    if reply.tool_calls:
                        await self._turn(reply, notes)
                        continue
                    notes.limit = say("steps.limit.length") if reply.finish_reason == "length" else None
                    return reply.content.strip() or None
        except TimeoutError:
            notes.limit = say("steps.limit.time")
        return None

    async def _turn(self, reply: ChatResult, notes: Notebook) -> None:
        """All calls at the same time, each told in its place; those beyond the limit are not made.

        Whoever asks only what was asked before will not stop by himself.
        """
        task, most = notes.task, notes.task.limits.max_tool_calls
        calls = {f"{call.name} {call.arguments}" for call in reply.tool_calls}
        if calls <= notes.asked:
            notes.limit = task.say("steps.limit.repeated")
            return
        notes.asked |= calls
        asked = [(call.name, _arguments(call.arguments)) for call in reply.tool_calls]
        for name, given in asked:
            task.errand.tell("tool_call", step=notes.step.id, name=name, arguments=given)
        beyond = task.say("steps.limit.calls", most=most)
        left, first = most - notes.calls, notes.calls + 1
        notes.calls += min(left, len(asked))
        made = (self._call(*call, notes, iteration) for iteration, call in enumerate(asked[:left], first))
        outcomes = [*await asyncio.gather(*made), *(ToolOutcome(beyond, failed=True) for _ in asked[left:])]
        notes.keep(reply, outcomes)
        if notes.limit is None and notes.calls == most:
            notes.limit = beyond

    async def _call(
        self, name: str, given: dict[str, Any] | str, notes: Notebook, iteration: int
    ) -> ToolOutcome:
        if isinstance(given, str):
            return ToolOutcome(notes.task.say("steps.tool.bad_json", name=name), failed=True)
        if name == SEARCH:
            given = {**given, "count": notes.task.limits.max_search_results}
        return await self._toolbox.call(
            name,
            given,
            notes.task,
            read=tuple(notes.read),
            iteration_count=iteration,
            token_used=notes.tokens,
            execution_time=_worked() - notes.began,
        )

    async def _sum_up(self, notes: Notebook) -> str | None:
        """Of what there is, without another look."""
        notes.limit = why = notes.limit or notes.task.say("steps.limit.silent")
        if not notes.passages:
            return None
        notes.turns.append(ChatMessage(role="user", content=notes.task.say("steps.sum_up", why=why)))
        try:
            async with WorkingTime(notes.task.limits.step_timeout * SUMMING_UP):
                text = (await self._ask(notes, [])).content.strip()
        except TimeoutError:
            return None
        return text if text and why not in text else None

    async def _ask(self, notes: Notebook, tools: Sequence[Tool]) -> ChatResult:
        reply = await self._llm.chat(
            notes.messages(),
            tools,
            temperature=0.3,
            caller_module="intake",
            caller_agent=f"{AGENT}:{notes.step.id}"[:50],
        )
        notes.tokens += reply.usage.total_tokens or 0
        arguments = (text for call in reply.tool_calls for text in literals(call.arguments))
        if repeats_prompt([reply.content, *arguments], notes.opening):
            raise UpstreamFailed(SAY("common.repeats_prompt"))
        return reply


def as_data(text: str, locale: Locale) -> str:
    """Words of strangers between marks that they cannot write themselves."""
    quoted = text.replace("<", "&lt;")
    return f"{SAY('steps.outside').in_locale(locale)}\n<outside_text>\n{quoted}\n</outside_text>"


def _clip(turns: Sequence[ChatMessage], left_out: str) -> Iterator[ChatMessage]:
    """From the last to the first, each as long as there is room; a message stays, only its words go."""
    room = MOST_CHARACTERS
    for message in reversed(turns):
        words = message.content
        yield (
            message.model_copy(update={"content": words[:room] + left_out}) if len(words) > room else message
        )
        room = max(0, room - len(words))


def _arguments(said: str) -> dict[str, Any] | str:
    """As the model wrote them, where that is no JSON object."""
    try:
        given = json.loads(said or "{}")
    except (ValueError, RecursionError):
        return said
    return given if isinstance(given, dict) else said
