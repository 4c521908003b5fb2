"""What a replayed session is, beside what every session is: when it ran, and how it was judged."""

from typing import Literal

from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx


class ReplayContext(ExecutionContext):
    """The desk may have other models, another web search and newer data by now; this is how it was, on record.

    `analyst` None: the record does not say. `fallback` says whether rules judged where a model had failed,
    `searched` whether the web was searched.
    """

    answers: Literal["live", "resume", "replay"] = "replay"
    analyst: Literal["rubric", "llm"] | None = None
    fallback: Literal["none", "rubric"] = "none"
    searched: bool = False


def current_replay() -> ReplayContext | None:
    """The replay under way here."""
    context = current_execution_ctx.get()
    return context if isinstance(context, ReplayContext) else None
