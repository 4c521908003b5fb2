"""What a session is, carried implicitly to whatever runs on its behalf (never through port signatures).

The coordinator sets it at the entry of a run and resets it at the exit; model and data calls read it to know
which session they belong to. asyncio gives each parallel node its own copy.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, Message

DEFAULT_WORKSPACE = "default"
"""Every row belongs to a workspace; until there are others, to this one."""


@dataclass
class Tally:
    """What is counted while a session runs, by all its parallel parts.

    `calls` are those of each agent, `requests` what they took over the wire; `unpriced` requests have a cost nobody
    knows.
    """

    audit_gaps: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class ExecutionContext(BaseModel):
    """`session_id` is empty when nothing is persisted; `as_of` is the session's frozen clock.

    `answers` says where calls are answered from: live; from the record first, when a session goes on after a
    crash (`resume`); from the record only (`replay`). `lease_token` is that of the lease under which the session
    runs here; whoever has a newer one has taken it over.
    """

    model_config = ConfigDict(frozen=True)

    session_id: str
    as_of: datetime | None = None
    locale: Locale = DEFAULT_LOCALE
    workspace: str = DEFAULT_WORKSPACE
    experts: tuple[str, ...] = ()
    """Who was asked, so that the judge can tell whether enough of them answered."""
    max_cost: float | None = None
    caller: str = ""
    """Who asked, where that is known."""
    began_at: datetime | None = None
    """When the session first ran: what came in later was not there then, whatever moment it is dated."""
    answers: Literal["live", "resume", "replay"] = "live"
    lease_token: int | None = None
    on_retry: Callable[[int, str | Message], None] | None = Field(default=None, exclude=True, repr=False)
    """Told before something is tried again: for which time, and why."""
    tally: Tally = Field(default_factory=Tally, exclude=True, repr=False)


class LeaseLost(BaseException):
    """Another process carries on with the session; nothing may be done for it here any more.

    Not an `Exception`: like a cancellation it must reach whoever runs the session, past all that makes the best
    of an error on the way.
    """


current_execution_ctx: ContextVar[ExecutionContext | None] = ContextVar("current_execution_ctx", default=None)


current_feedback: ContextVar[dict[str, Any] | None] = ContextVar("current_feedback", default=None)
"""What went wrong the last time, for the agent that tries again."""


@contextmanager
def on_behalf_of(
    workspace: str, caller: str = "", *, session_id: str = "", tally: Tally | None = None
) -> Iterator[None]:
    """What is done in the block is done for `workspace`, and on the record of `session_id` if there is one."""
    context = ExecutionContext(
        session_id=session_id, workspace=workspace, caller=caller, tally=tally or Tally()
    )
    token = current_execution_ctx.set(context)
    try:
        yield
    finally:
        current_execution_ctx.reset(token)


def moment_of_reading(now: datetime) -> datetime:
    """When the session under way reads: `now`; where it runs again from its record, when it first did."""
    context = current_execution_ctx.get()
    again = context is not None and context.answers != "live"
    return context.began_at if context and context.began_at and again else now


def is_replay() -> bool:
    """Whether the session under way is replayed: it sees what was there, and asks nobody outside."""
    context = current_execution_ctx.get()
    return context is not None and context.answers == "replay"


def tell_retry(attempt: int, why: str | Message) -> None:
    """Something is about to be tried for the `attempt`-th time; whoever watches the session wants to know."""
    context = current_execution_ctx.get()
    if context is not None and context.on_retry is not None:
        context.on_retry(attempt, why)


def count_audit_gap() -> None:
    """A row of the session under way could not be written."""
    context = current_execution_ctx.get()
    if context is not None:
        context.tally.audit_gaps += 1
