"""A research step: a model looks things up with governed tools until it knows, or until a limit says enough."""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from moot.modules.intake.application.ports import Errand, Task
from moot.modules.intake.domain.findings import Citation, Finding, StepStatus
from moot.modules.intake.domain.plan import Step
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.adapters.toolbox import GovernedToolbox, ToolOutcome
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.llm_service import ChatMessage, ChatResult, LLMService, Tool
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale

logger = structlog.get_logger(__name__)

LOOKING_UP, SUMMING_UP = 0.75, 0.2
"""Shares of a step's time. What is left is for whoever waits for the step."""
LONGEST_TOLD = 500
MOST_CHARACTERS = 50_000
"""Of all messages after the first ones; the oldest words go first."""
URL = re.compile(r"https?://[^\s<>()\"'，。；、）】]+")
AGENT, SEARCH = "researcher", "web_search"


@dataclass
class Notebook:
    """What a step has asked and been told.

    `calls` counts those that failed too. `passages` are what the tools said, as a reader may see it.
    """

    opening: Sequence[ChatMessage]
    task: Task
    began: float = field(default_factory=time.monotonic)
    turns: list[ChatMessage] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0
    read: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    passages: list[str] = field(default_factory=list)
    sources: dict[tuple[str, str], Citation] = field(default_factory=dict)
    limit: str | None = None
    """Why nothing more is looked up."""

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self.sources.values())

    @property
    def calls_left(self) -> int:
        return self.task.limits.max_tool_calls - self.calls

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def asks_anew(self, reply: ChatResult) -> bool:
        """Whether any of its calls is one that has not been made before."""
        calls = {f"{call.name} {call.arguments}" for call in reply.tool_calls}
        new = calls - self.asked
        self.asked |= calls
        return bool(new)

    def told(self, reply: ChatResult, outcomes: Sequence[ToolOutcome]) -> None:
        """A whole turn, in the order of its calls; services refuse a call that nothing answers."""
        self.turns.append(
            ChatMessage(role="assistant", content=reply.content, tool_calls=list(reply.tool_calls))
        )
        for call, outcome in zip(reply.tool_calls, outcomes, strict=True):
            content = as_data(outcome.text, self.task.reader) if outcome.tainted else outcome.text
            self.turns.append(ChatMessage(role="tool", content=content, tool_call_id=call.id))
            self._keep(outcome)

    def messages(self) -> list[ChatMessage]:
        kept = list(_clipped(self.turns, self.task.say("steps.left_out")))
        return [*self.opening, *reversed(kept)]

    def _keep(self, outcome: ToolOutcome) -> None:
        if outcome.ends:
            self.limit = outcome.text
        if outcome.failed:
            return
        self.passages.append(outcome.text)
        for citation in outcome.citations:
            self.sources.setdefault((citation.url or citation.title, citation.source), citation)
        if outcome.tainted:
            self.read.append(outcome.text)


class Researcher:
    def __init__(
        self, llm: LLMService, toolbox: GovernedToolbox, prompts: PromptTemplates, clock: Clock
    ) -> None:
        self._llm, self._toolbox, self._prompts, self._clock = llm, toolbox, prompts, clock

    async def research(self, step: Step, task: Task) -> Finding:
        """What could be found out; what is known already is read as words of strangers."""
        notes = Notebook(self._opening(step, task), task)
        notes.read += [task.background] if task.background else []
        try:
            text = await self._look_up(step, notes)
            if text is None:
                return await self._sum_up(step, notes)
            return _finding(step, "partial" if notes.limit else "completed", text, notes, notes.limit)
        except AppError as e:
            logger.warning("research step without its model", step=step.id, error=str(e))
            return _quote(step, notes, e.in_locale(task.reader))

    def _opening(self, step: Step, task: Task) -> list[ChatMessage]:
        asked = task.say("steps.task", goal=task.goal, title=step.title, description=step.description)
        known = [as_data(task.background, task.reader)] if task.background else []
        return self._prompts.messages(
            AGENT,
            {
                "locale": task.locale,
                "CURRENT_TIME": f"{self._clock.now():%Y-%m-%d %H:%M:%S}",
                "max_tool_calls": task.limits.max_tool_calls,
                "need_web_search": step.need_web_search,
                "user_input": [ChatMessage(role="user", content="\n\n".join([asked, *known]))],
            },
        )

    async def _look_up(self, step: Step, notes: Notebook) -> str | None:
        """The model's own last word; None where a limit came first."""
        try:
            async with asyncio.timeout(notes.task.limits.step_timeout * LOOKING_UP):
                while notes.limit is None:
                    reply = await self._ask(step, notes, self._toolbox.tools)
                    if not reply.tool_calls:
                        return _last_word(reply, notes)
                    await self._turn(step, reply, notes)
        except TimeoutError:
            notes.limit = notes.task.say("steps.limit.time")
        return None

    async def _turn(self, step: Step, reply: ChatResult, notes: Notebook) -> None:
        """All calls at the same time, each told in its place; those beyond the limit are not made.

        Whoever asks only what was asked before will not stop by himself.
        """
        if not notes.asks_anew(reply):
            notes.limit = notes.task.say("steps.limit.repeated")
            return
        asked = [(call.name, _arguments(call.arguments)) for call in reply.tool_calls]
        for name, given in asked:
            notes.task.errand.tell("tool_call", step=step.id, name=name, arguments=given)
        beyond = notes.task.say("steps.limit.calls", most=notes.task.limits.max_tool_calls)
        left, first = notes.calls_left, notes.calls + 1
        notes.calls += min(left, len(asked))
        made = (self._call(*call, notes, iteration) for iteration, call in enumerate(asked[:left], first))
        outcomes = [*await asyncio.gather(*made), *(ToolOutcome(beyond, failed=True) for _ in asked[left:])]
        notes.told(reply, outcomes)
        _tell(step, reply, outcomes, notes.task.errand)
        if notes.limit is None and notes.calls_left == 0:
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
            iteration=iteration,
            tokens=notes.tokens,
            seconds=notes.seconds,
        )

    async def _sum_up(self, step: Step, notes: Notebook) -> Finding:
        """Of what there is, without another look."""
        why = notes.limit or notes.task.say("steps.limit.silent")
        notes.limit = why
        if not notes.passages:
            return Finding(step_id=step.id, status="failed", error=why)
        asked = notes.task.say("steps.sum_up", why=why)
        notes.turns.append(ChatMessage(role="user", content=asked))
        try:
            async with asyncio.timeout(notes.task.limits.step_timeout * SUMMING_UP):
                reply = await self._ask(step, notes, [])
        except TimeoutError:
            return _quote(step, notes, why)
        text = reply.content.strip()
        says_more = text and why not in text
        return _finding(step, "partial", text, notes, why) if says_more else _quote(step, notes, why)

    async def _ask(self, step: Step, notes: Notebook, tools: Sequence[Tool]) -> ChatResult:
        reply = await self._llm.chat(
            notes.messages(),
            tools,
            temperature=0.3,
            caller_module="intake",
            caller_agent=f"{AGENT}:{step.id}"[:50],
        )
        notes.tokens += reply.usage.total_tokens or 0
        return reply


def as_data(text: str, locale: Locale) -> str:
    """Words of strangers between marks that they cannot write themselves."""
    quoted = text.replace("<", "&lt;")
    return f"{SAY('steps.outside').in_locale(locale)}\n<outside_text>\n{quoted}\n</outside_text>"


def _clipped(turns: Sequence[ChatMessage], left_out: str) -> Iterator[ChatMessage]:
    """From the last to the first, each as long as there is room; a message stays, only its words go."""
    room = MOST_CHARACTERS
    for message in reversed(turns):
        words = message.content
        if len(words) > room:
            words = words[:room] + left_out
        room = max(0, room - len(message.content))
        yield message if words == message.content else message.model_copy(update={"content": words})


def _arguments(said: str) -> dict[str, Any] | str:
    """As the model wrote them, where that is no JSON object."""
    try:
        given = json.loads(said or "{}")
    except (ValueError, RecursionError):
        return said
    return given if isinstance(given, dict) else said


def _tell(step: Step, reply: ChatResult, outcomes: Sequence[ToolOutcome], errand: Errand) -> None:
    for call, outcome in zip(reply.tool_calls, outcomes, strict=True):
        told = {"failed": outcome.failed, "tainted": outcome.tainted, "text": outcome.text[:LONGEST_TOLD]}
        errand.tell("tool_result", step=step.id, name=call.name, **told)
        for citation in outcome.citations:
            errand.tell("citation", step=step.id, **citation.model_dump())


def _last_word(reply: ChatResult, notes: Notebook) -> str | None:
    if reply.finish_reason == "length":
        notes.limit = notes.task.say("steps.limit.length")
    return reply.content.strip() or None


def _finding(step: Step, status: StepStatus, text: str, notes: Notebook, why: str | None = None) -> Finding:
    return Finding(
        step_id=step.id,
        status=status,
        text=text,
        citations=notes.citations,
        warnings=tuple(w for w in (why, *_doubts(text, notes)) if w),
    )


def _quote(step: Step, notes: Notebook, why: str) -> Finding:
    """What the tools said, where no model sums it up; a step that was told nothing has failed."""
    if not notes.passages:
        return Finding(step_id=step.id, status="failed", error=why)
    label = notes.task.say("steps.quoted", title=step.title)
    return _finding(step, "partial", "\n\n".join([label, *notes.passages]), notes, why)


def _doubts(text: str, notes: Notebook) -> list[str]:
    """A claim that nobody looked up, and an address that no tool has given."""
    doubts = [] if notes.sources else [SAY("steps.unsourced")]
    known = "\n".join([*notes.passages, *(message.content for message in notes.opening)])
    strange = sorted({url for url in URL.findall(text) if url.rstrip("/.,;:") not in known})
    doubts += [SAY("steps.strange_source", urls=strange)] if strange else []
    return [doubt.in_locale(notes.task.reader) for doubt in doubts]
