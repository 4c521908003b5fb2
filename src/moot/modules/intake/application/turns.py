"""From a question to the state its way begins with, and from the state it ends with to a turn of the conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

from moot.modules.intake.application.intake_graph import IntakeState, Stand
from moot.modules.intake.application.language import locale_of
from moot.modules.intake.application.telling import tell
from moot.modules.intake.domain.answer import Answer
from moot.modules.intake.domain.conversation import Conversation, PlanDecision, Turn, TurnStatus
from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.question import Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.errors import AppError

M = TypeVar("M", bound=BaseModel)

REMEMBERED = 10
"""Turns that whoever answers the next one is told of."""
LONGEST = 4000
FRESH = timedelta(hours=12)
"""For so long what was found out about a company is not looked up again."""
OPTIONS: tuple[PlanDecision, ...] = get_args(PlanDecision)
NOTHING_YET: IntakeState = {
    "goto": "",
    "handed_locale": None,
    "detected_locale": None,
    "task_title": None,
    "reply": None,
    "error": None,
    "background": [],
    "plan": None,
    "plan_iterations": 0,
    "escalation": None,
    "edits": [],
    "rejected": False,
    "findings": [],
    "answer": None,
    "warnings": [],
}


def opening(question: str, conversation: Conversation, given: IntakeState) -> IntakeState:
    """With what is remembered of the turns before."""
    before = conversation.turns[:-1]
    known = next((turn.understanding for turn in reversed(before) if turn.understanding), None)
    return {
        **NOTHING_YET,
        **given,
        "messages": [*_history(before), {"role": "user", "content": question}],
        "understanding": known.model_dump(mode="json") if known else None,
        "earlier": _earlier(before, conversation.last.asked_at - FRESH),
    }


def _history(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for turn in turns[-REMEMBERED:]:
        told.append({"role": "user", "content": turn.question})
        said = turn.reply or (_in_short(turn.answer) if turn.answer else None)
        if said:
            told.append({"role": "assistant", "content": said})
    return told


def _in_short(answer: Answer) -> str:
    return "\n".join([answer.title, *answer.key_points])[:LONGEST]


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


def as_it_stands(turn: Turn, stand: Stand, now: datetime) -> Turn:
    state = stand.state
    status = _status(stand)
    return turn.model_copy(
        update={
            "status": status,
            "ended_at": None if status == "waiting" else now,
            "locale": state.get("locale") or "",
            "handed_locale": state.get("handed_locale"),
            "detected_locale": state.get("detected_locale"),
            "understanding": _read(Understanding, state.get("understanding")),
            "plan": _read(Plan, state.get("plan")),
            "escalation_id": (state.get("escalation") or {}).get("id"),
            "findings": tuple(Finding.model_validate(each) for each in state.get("findings", [])),
            "answer": _read(Answer, state.get("answer")),
            "reply": state.get("reply") or _refused_plan(state),
            "error": (state.get("error") or {}).get("message"),
            "warnings": tuple(state.get("warnings", [])),
        }
    )


def as_it_failed(turn: Turn, error: Exception, now: datetime) -> Turn:
    """With what had been found by then."""
    locale = turn.locale or locale_of(None, turn.question, "")
    reader = reading_language(locale)
    said = error.in_locale(reader) if isinstance(error, AppError) else None
    failed = {"status": "failed", "error": said or SAY("conversation.failed").in_locale(reader)}
    return turn.model_copy(update=failed | {"ended_at": now, "locale": locale})


def _status(stand: Stand) -> TurnStatus:
    state = stand.state
    if stand.waits:
        return "waiting"
    if state.get("error"):
        return "failed"
    if state.get("rejected"):
        return "rejected"
    return "answered" if state.get("answer") else "replied"


def _refused_plan(state: IntakeState) -> str | None:
    locale = reading_language(state.get("locale") or "")
    return SAY("conversation.plan_rejected").in_locale(locale) if state.get("rejected") else None


def _read(model: type[M], data: Mapping[str, Any] | None) -> M | None:
    return model.model_validate(data) if data else None


def tell_end(conversation: Conversation) -> None:
    turn = conversation.last
    if turn.status == "waiting":
        plan = turn.plan.model_dump(mode="json") if turn.plan else None
        asked = {"escalation_id": turn.escalation_id} if turn.escalation_id else {}
        tell("interrupt", thread_id=str(conversation.id), plan=plan, options=list(OPTIONS), **asked)
    elif turn.reply:
        tell("message_chunk", text=turn.reply)
    elif turn.error:
        tell("error", message=turn.error)
    tell("done", thread_id=str(conversation.id), status=turn.status)
