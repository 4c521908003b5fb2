"""A question on its way: for whom, the state it begins with, the graph it goes through, the turn that comes of it.

What a turn has come to is kept on the way: a process that dies after a step does not send anybody out again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

import structlog
from pydantic import BaseModel

from moot.modules.intake.application.language import locale_of
from moot.modules.intake.domain.conversation import Answer, Conversation, Conversations, Turn, TurnStatus
from moot.modules.intake.domain.question import Citation, Finding, Limits, Plan, Spent, Understanding
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale, reading_language
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, Tally

logger = structlog.get_logger(__name__)

REMEMBERED = 10
"""Turns that whoever answers the next one is told of."""
LONGEST = 4000
FRESH = timedelta(hours=12)
"""For so long what was found out about a company is not looked up again."""
MOST_EDITS = 5

Happening = Literal[
    "message_chunk",
    "tool_call",
    "tool_result",
    "plan",
    "interrupt",
    "step",
    "citation",
    "report",
    "error",
    "done",
]
Tell = Callable[[Happening, dict[str, Any]], None]


@dataclass(frozen=True)
class Errand:
    """`record` is the id under which things are put on the record; empty: nothing is kept."""

    workspace: str = DEFAULT_WORKSPACE
    caller: str = ""
    record: str = ""
    tally: Tally = field(default_factory=Tally)
    listener: Tell | None = None

    def tell(self, what: Happening, **about: Any) -> None:
        """Nobody has to listen."""
        if self.listener is not None:
            self.listener(what, about)

    @property
    def spent(self) -> Spent:
        """What models took so far, outside of the experts' sessions."""
        return Spent(**dict(self.tally.usage))


@dataclass(frozen=True)
class Task:
    """What all steps of a plan share: the question as `goal`, and what is known of it already as `background`."""

    goal: str
    locale: str
    errand: Errand
    limits: Limits = field(default_factory=Limits)
    background: str = ""

    @property
    def reader(self) -> Locale:
        return reading_language(self.locale)

    def say(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.reader)


class CoordinatorState(BaseModel):
    """What the coordinator's sub-graph takes and gives: the last of `messages` by a user is the question.

    `locale` comes in as that of the conversation or the request, if known, and goes out as what everybody writes in
    from there on; `handed_locale` is as the model wrote it. `understanding` comes in as that of the turn before, and
    stays so where nothing is to be found out. `goto` is where the question goes next.
    """

    messages: list[dict[str, Any]] = []
    locale: str = ""
    limits: Limits = Limits()
    enable_background_investigation: bool = False
    understanding: Understanding | None = None
    goto: str = ""
    task_title: str | None = None
    reply: str | None = None
    error: dict[str, Any] | None = None
    detected_locale: str = ""
    handed_locale: str | None = None

    @property
    def question(self) -> str:
        return next((turn["content"] for turn in reversed(self.messages) if turn["role"] == "user"), "")


class IntakeState(CoordinatorState):
    """One question, and all that is known of it on its way; kept as JSON while a person thinks about its plan.

    `plan_iterations`: how many plans there were; `plan_repairs`: how many of them the rules sent back; `edits`: what
    a person wanted changed so far. `escalation`: the rules want somebody to approve the plan first, by its `id`; or,
    without one, do not allow it as it is. `waits`: for a person to accept, edit or reject the plan.
    """

    auto_accepted_plan: bool = False
    background: list[Citation] = []
    plan: Plan | None = None
    estimate: Spent | None = None
    plan_iterations: int = 0
    plan_repairs: int = 0
    escalation: dict[str, Any] | None = None
    edits: list[str] = []
    rejected: bool = False
    findings: list[Finding] = []
    answer: Answer | None = None
    warnings: list[str] = []
    waits: bool = False

    @property
    def understood(self) -> Understanding:
        """Nobody comes past the coordinator without."""
        assert self.understanding is not None
        return self.understanding

    @property
    def most_plans(self) -> int:
        """What a person wants changed is not counted against the planner, but not for ever; nor what the rules do."""
        return self.limits.max_plan_iterations + min(len(self.edits), MOST_EDITS) + self.plan_repairs

    @property
    def current_warnings(self) -> list[str]:
        """Without the word that somebody has to approve the plan: that is no news any more."""
        told = (self.escalation or {}).get("told")
        return [warning for warning in self.warnings if warning != told]

    @property
    def goal(self) -> str:
        """What a person asks, with the companies the desk takes it to mean; no word of a model is in it."""
        question = self.question[:LONGEST]
        certain = [mention for mention in self.understood.mentions if mention.certain]
        named = [word for mention in certain for word in (*mention.names, *mention.symbols)]
        return self.say("plan.goal", question=question, about=" ".join([*named, *self.edits]) or question)

    @property
    def something_found(self) -> bool:
        """Of a company only research tells enough: strangers on the web cannot make it needless."""
        found = any(finding.usable for finding in self.findings)
        return found or (self.understood.intent != "equity" and bool(self.background))

    @property
    def refused(self) -> dict[str, str]:
        """Companies whose research the rules refused, and why."""
        steps = {step.id: step.symbol for step in (self.plan.steps if self.plan else ())}
        refused = [found for found in self.findings if found.refused and steps.get(found.step_id)]
        return {str(steps[found.step_id]): found.error or "" for found in refused}

    @property
    def status(self) -> TurnStatus:
        found = any(finding.usable for finding in self.findings) or (self.answer and self.answer.citations)
        signs: dict[TurnStatus, object] = {
            "waiting": self.waits,
            "failed": self.error,
            "rejected": self.rejected,
            "nothing_found": self.answer and not found,
            "answered": self.answer,
        }
        return next((status for status, sign in signs.items() if sign), "replied")

    def say(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(reading_language(self.understood.locale))


@dataclass
class Keeper:
    """Of the turn under way. `conversation` is as it stands, and stored as such unless the store failed.

    `lost`: another process goes on with the turn; nothing is written for it here any more.
    """

    conversation: Conversation
    store: Conversations
    clock: Clock
    errand: Errand
    lost: bool = False
    _in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def thread(self) -> str:
        """A turn each: a question starts anew, and what is remembered of the others is put before it."""
        return f"{self.conversation.id}:{len(self.conversation.turns)}"

    @property
    def findings(self) -> Sequence[Finding]:
        """What the turn had found before it was interrupted."""
        return [finding for finding in self.conversation.last.findings if finding.usable]

    async def keep(self, *, release: bool = False, **what: Any) -> None:
        """Fields of the turn; the turn goes on all the same where the store fails: it is done again after a death."""
        try:
            await self.write(self.conversation.last.model_copy(update=what), release=release)
        except AppError as e:
            logger.warning("turn not kept", conversation=str(self.conversation.id), error=str(e))

    async def keep_finding(self, finding: Finding) -> None:
        """A step that failed is not kept: it may have better luck."""
        if finding.usable:
            found = self.conversation.last.findings
            others = (each for each in found if each.step_id != finding.step_id)
            await self.keep(findings=(*others, finding))

    async def write(self, turn: Turn, *, release: bool) -> None:
        """Raises what kept the store from storing it. `release`: whoever comes next need not wait."""
        turn = turn.model_copy(update={"spent": self.errand.spent})
        self.conversation = self.conversation.with_last(turn, self.clock.now())
        await asyncio.shield(self._write(release))

    async def _write(self, release: bool) -> None:
        """One after the other, even when nobody waits for it any more: the last word is the newest."""
        async with self._in_turn:
            if not self.lost:
                now = self.conversation
                self.lost = not await self.store.save(now, now.lease_token, release=release)

    def end(self, state: IntakeState) -> Turn:
        """As far as it has come: it may wait for a person."""
        rejected = SAY("conversation.plan_rejected").in_locale(reading_language(state.locale))
        return Turn.model_validate(
            self.conversation.last.model_dump()
            | state.model_dump(include=set(Turn.model_fields), exclude_unset=True)
            | {
                "status": state.status,
                "ended_at": None if state.waits else self.clock.now(),
                "locale": state.locale,
                "escalation_id": (state.escalation or {}).get("id"),
                "reply": state.reply or (rejected if state.rejected else None),
                "error": (state.error or {}).get("message"),
            }
        )

    def fail(self, error: Exception) -> Turn:
        """With what had been found by then."""
        turn = self.conversation.last
        locale = turn.locale or locale_of(None, turn.question, "")
        reader = reading_language(locale)
        said = error.in_locale(reader) if isinstance(error, AppError) else None
        failed = {"status": "failed", "error": said or SAY("conversation.failed").in_locale(reader)}
        return turn.model_copy(update=failed | {"ended_at": self.clock.now(), "locale": locale})


class IntakeGraph(Protocol):
    async def run(
        self, keeper: Keeper, *, state: IntakeState | None = None, feedback: Mapping[str, Any] | None = None
    ) -> IntakeState:
        """From `state`; without, on from where it waits with what a person said, or from where a process died.

        What is found on the way is given to the keeper of the turn.
        """


def begin_state(conversation: Conversation, **asked: Any) -> IntakeState:
    """For the last turn of the conversation, with what is remembered of those before."""
    *before, turn = conversation.turns
    known = next((each.understanding for each in reversed(before) if each.understanding), None)
    messages = [*_history(before), {"role": "user", "content": turn.question}]
    return IntakeState(messages=messages, understanding=known, **asked)


def _history(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for turn in turns[-REMEMBERED:]:
        told.append({"role": "user", "content": turn.question})
        answer = "\n".join([turn.answer.title, *turn.answer.key_points])[:LONGEST] if turn.answer else None
        if said := turn.reply or answer:
            told.append({"role": "assistant", "content": said})
    return told


def find_earlier(conversation: Conversation) -> dict[tuple[str | None, tuple[str, ...]], Finding]:
    """What research on a company by these experts has found out in earlier turns, the newest of each."""
    *before, last = conversation.turns
    found: dict[tuple[str | None, tuple[str, ...]], Finding] = {}
    first_told: dict[str, datetime] = {}
    for turn in before:
        steps = {step.id: step for step in turn.plan.steps} if turn.plan else {}
        for finding in turn.findings:
            step = steps.get(finding.step_id)
            if step is None or not step.symbol or not finding.session_id or not finding.usable:
                continue
            if first_told.setdefault(finding.session_id, turn.asked_at) >= last.asked_at - FRESH:
                found[step.symbol, step.experts] = finding
    return found
