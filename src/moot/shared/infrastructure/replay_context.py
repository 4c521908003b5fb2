"""What a replayed session is, beside what every session is: when it ran, and how it was judged."""

from datetime import datetime
from typing import Literal

from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx


class ReplayContext(ExecutionContext):
    """The desk may have other models, another web search and newer data by now; this is how it was, on record.

    `began_at` is when the session first ran: what came in later was not there, whatever moment it is dated.
    `analyst` None: the record does not say. `fallback` says whether rules judged where a model had failed,
    `searched` whether the web was searched.
    """

    answers: Literal["live", "resume", "replay"] = "replay"
    began_at: datetime | None = None
    analyst: Literal["rubric", "llm"] | None = None
    fallback: Literal["none", "rubric"] = "none"
    searched: bool = False


def current_replay() -> ReplayContext | None:
    """The replay under way here."""
    context = current_execution_ctx.get()
    return context if isinstance(context, ReplayContext) else None


def moment_of_reading(now: datetime) -> datetime:
    """When the session under way reads: `now`, or on replay when it first did."""
    replay = current_replay()
    return replay.began_at if replay and replay.began_at else now
