"""A question on its way: the state it begins with, the graph it goes through, and the turn that comes of it.

What a turn has come to is kept on the way: a process that dies after a step does not send anybody out again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypedDict, get_args

import structlog

from moot.modules.intake.application.language import locale_of
from moot.modules.intake.application.ports import Errand
from moot.modules.intake.domain.conversation import (
    Conversation,
    Conversations,
    PlanDecision,
    Turn,
    TurnStatus,
)
from moot.modules.intake.domain.plan import Finding
from moot.modules.intake.domain.question import reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError

logger = structlog.get_logger(__name__)

REMEMBERED = 10
"""Turns that whoever answers the next one is told of."""
LONGEST = 4000
FRESH = timedelta(hours=12)
"""For so long what was found out about a company is not looked up again."""
OPTIONS: tuple[PlanDecision, ...] = get_args(PlanDecision)
OF_THE_TURN = (
    *("handed_locale", "detected_locale", "understanding", "plan", "estimate"),
    *("answer", "findings", "warnings"),
)
"""Fields of the state that are fields of the turn."""


class CoordinatorState(TypedDict, total=False):
    """What the coordinator's sub-graph takes and gives: the last of `messages` by a user is the question.

    `locale` comes in as that of the conversation or the request, if known, and goes out as what everybody writes in
    from there on; `handed_locale` is as the model wrote it. `understanding` comes in as that of the turn before, and
    stays so where nothing is to be found out. `goto` is where the question goes next.
    """

    messages: list[dict[str, Any]]
    locale: str
    limits: dict[str, Any]
    enable_background_investigation: bool
    understanding: dict[str, Any] | None
    goto: str
    task_title: str | None
    reply: str | None
    error: dict[str, Any] | None
    detected_locale: str
    handed_locale: str | None


class IntakeState(CoordinatorState, total=False):
    """All of it is JSON: it is kept between a question and the answer a person gives to its plan.

    `earlier` are findings of the turns before. `plan_repairs`: how many plans the rules sent back. `escalation`:
    they want somebody to approve the plan first, by its `id`; or, without one, do not allow it as it is.
    """

    auto_accepted_plan: bool
    style: str
    background: list[dict[str, Any]]
    plan: dict[str, Any] | None
    estimate: dict[str, Any] | None
    plan_iterations: int
    plan_repairs: int
    escalation: dict[str, Any] | None
    edits: list[str]
    rejected: bool
    findings: list[dict[str, Any]]
    earlier: list[dict[str, Any]]
    answer: dict[str, Any] | None
    warnings: list[str]


def question_of(state: CoordinatorState) -> str:
    return next((turn["content"] for turn in reversed(state["messages"]) if turn["role"] == "user"), "")


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


class Stand(NamedTuple):
    """`waits`: for a person to accept, edit or reject the plan in `state`."""

    state: IntakeState
    waits: bool


class IntakeGraph(Protocol):
    async def run(
        self, keeper: Keeper, *, state: IntakeState | None = None, feedback: Mapping[str, Any] | None = None
    ) -> Stand:
        """From `state`; without, on from where it waits with what a person said, or from where a process died.

        What is found on the way is given to the keeper of the turn.
        """


def begin_state(conversation: Conversation, given: IntakeState) -> IntakeState:
    """For the last turn of the conversation, with what is remembered of those before."""
    *before, turn = conversation.turns
    known = next((each.understanding for each in reversed(before) if each.understanding), None)
    return {
        **given,
        "messages": [*_history(before), {"role": "user", "content": turn.question}],
        "understanding": known.model_dump(mode="json") if known else None,
        "earlier": _earlier(before, turn.asked_at - FRESH),
    }


def _history(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for turn in turns[-REMEMBERED:]:
        told.append({"role": "user", "content": turn.question})
        answer = "\n".join([turn.answer.title, *turn.answer.key_points])[:LONGEST] if turn.answer else None
        if said := turn.reply or answer:
            told.append({"role": "assistant", "content": said})
    return told


def _earlier(turns: Sequence[Turn], since: datetime) -> list[dict[str, Any]]:
    """What research on a company has found out in this conversation, the newest of each company and its experts."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    first_told: dict[str, datetime] = {}
    for turn in turns:
        steps = {step.id: step for step in turn.plan.steps} if turn.plan else {}
        for finding in turn.findings:
            step = steps.get(finding.step_id)
            if step is None or not step.symbol or not finding.session_id or not finding.usable:
                continue
            if first_told.setdefault(finding.session_id, turn.asked_at) >= since:
                about = {"symbol": step.symbol, "experts": list(step.experts)}
                found[step.symbol, step.experts] = about | {"finding": finding.model_dump(mode="json")}
    return list(found.values())


def end_turn(turn: Turn, stand: Stand, now: datetime) -> Turn:
    """As far as it has come: it may wait for a person."""
    state, status = stand.state, _status(stand)
    locale = state.get("locale") or ""
    rejected = SAY("conversation.plan_rejected").in_locale(reading_language(locale))
    return Turn.model_validate(
        turn.model_dump()
        | {name: state[name] for name in OF_THE_TURN if name in state}  # type: ignore[literal-required]
        | {
            "status": status,
            "ended_at": None if status == "waiting" else now,
            "locale": locale,
            "escalation_id": (state.get("escalation") or {}).get("id"),
            "reply": state.get("reply") or (rejected if state.get("rejected") else None),
            "error": (state.get("error") or {}).get("message"),
        }
    )


def fail_turn(turn: Turn, error: Exception, now: datetime) -> Turn:
    """With what had been found by then."""
    locale = turn.locale or locale_of(None, turn.question, "")
    reader = reading_language(locale)
    said = error.in_locale(reader) if isinstance(error, AppError) else None
    failed = {"status": "failed", "error": said or SAY("conversation.failed").in_locale(reader)}
    return turn.model_copy(update=failed | {"ended_at": now, "locale": locale})


def _status(stand: Stand) -> TurnStatus:
    state = stand.state
    signs: dict[TurnStatus, object] = {
        "waiting": stand.waits,
        "failed": state.get("error"),
        "rejected": state.get("rejected"),
        "nothing_found": state.get("answer") and not _rests_on_something(state),
        "answered": state.get("answer"),
    }
    return next((status for status, sign in signs.items() if sign), "replied")


def _rests_on_something(state: IntakeState) -> bool:
    found = any(Finding.model_validate(finding).usable for finding in state.get("findings") or ())
    return found or bool((state.get("answer") or {}).get("citations"))
