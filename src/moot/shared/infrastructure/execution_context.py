"""What a session is, carried implicitly to whatever runs on its behalf (never through port signatures).

The coordinator sets it at the entry of a run and resets it at the exit; model and data calls read it to know
which session they belong to. asyncio gives each parallel node its own copy.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, InstanceOf

from moot.shared.domain.brief import Usage
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, Message, in_words
from moot.shared.domain.rate_limits import Priority
from moot.shared.infrastructure.working_time import Stopwatch

DEFAULT_WORKSPACE = "default"
"""Every row belongs to a workspace; until there are others, to this one."""


@dataclass
class Tally:
    """What is counted while a session runs, by all its parallel parts.

    `calls` are those of each agent, `requests` what they took over the wire; `unpriced` requests have a cost nobody
    knows, of the `uncounted` not even the tokens. `attempts` and `failures` are by node: how often it was tried, and
    what it failed with. `waiting` is the time in which models were waited for.
    """

    audit_gaps: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Exception] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    uncounted: int = 0
    waiting: Stopwatch = field(default_factory=Stopwatch)

    @property
    def usage(self) -> Usage:
        """Without a cost, where nobody knows all of it."""
        return Usage(requests=self.requests, tokens=self.tokens, cost=None if self.unpriced else self.cost)


class ExecutionContext(BaseModel, frozen=True):
    """`session_id` is empty when nothing is persisted; `as_of` is the session's frozen clock.

    `answers` says where calls are answered from: live; from the record first, when a session goes on after a
    crash (`resume`); from the record only (`replay`). `lease_token` is that of the lease under which the session
    runs here; whoever has a newer one has taken it over. `node` is the one at work, `feedback` what went wrong with
    it the last time.
    """

    session_id: str = ""
    as_of: datetime | None = None
    locale: Locale = DEFAULT_LOCALE
    workspace: str = DEFAULT_WORKSPACE
    experts: tuple[str, ...] = ()
    """Who was asked, so that the judge can tell whether enough of them answered."""
    max_cost: float | None = None
    batch_id: str = ""
    batch_max_cost: float | None = None
    """What the sessions of that batch may cost together."""
    caller: str = ""
    """Who asked, where that is known."""
    began_at: datetime | None = None
    """When the session first ran: what came in later was not there then, whatever moment it is dated."""
    answers: Literal["live", "resume", "replay"] = "live"
    analyst: Literal["rubric", "llm"] | None = None
    """Who judges here, whatever the desk is set to; None: as it is set."""
    fallback: Literal["none", "rubric"] = "none"
    priority: Priority = "interactive"
    """Whether somebody waits for the answer; where limits are short, a batch waits for those."""
    lease_token: int | None = None
    node: str = ""
    feedback: dict[str, Any] | None = None
    asked: Any = Field(default=None, exclude=True, repr=False)
    """The coordinator's question, whole."""
    run: Any = Field(default=None, exclude=True, repr=False)
    """The coordinator's `Run`, which is told what happens on the way; None where nobody listens."""
    read_once: dict[Any, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """What one part of the session has read and another need not read again."""
    tally: InstanceOf[Tally] = Field(default_factory=Tally, exclude=True, repr=False)

    @contextmanager
    def active(self) -> Iterator[Self]:
        """What is done in the block is done in this context."""
        token = current_execution_ctx.set(self)
        try:
            yield self
        finally:
            current_execution_ctx.reset(token)


class ReplayContext(ExecutionContext):
    """What a replayed session is beside what every session is: the desk may have other models, another web search and
    newer data by now; this is how it was, on record.

    `analyst` None: the record does not say. `fallback` says whether rules judged where a model had failed,
    `searched` whether the web was searched.
    """

    answers: Literal["live", "resume", "replay"] = "replay"
    searched: bool = False


class LeaseLost(BaseException):
    """Another process carries on with the session; nothing may be done for it here any more.

    Not an `Exception`: like a cancellation it must reach whoever runs the session, past all that makes the best
    of an error on the way.
    """


current_execution_ctx: ContextVar[ExecutionContext | None] = ContextVar("current_execution_ctx", default=None)


def current_context() -> ExecutionContext:
    """Of whatever is under way here, or else a bare one."""
    return current_execution_ctx.get() or ExecutionContext()


def current_replay() -> ReplayContext | None:
    """The replay under way here."""
    context = current_execution_ctx.get()
    return context if isinstance(context, ReplayContext) else None


def moment_of_reading(now: datetime) -> datetime:
    """When the session under way reads: when it was asked for, however late and often it is run."""
    context = current_context()
    return context.began_at or now


def is_replay() -> bool:
    """Whether the session under way is replayed: it sees what was there, and asks nobody outside."""
    return current_context().answers == "replay"


def tell_retry(attempt: int, why: str | Message) -> None:
    """Something is about to be tried for the `attempt`-th time; whoever watches the session wants to know."""
    context = current_context()
    if context.run is not None and context.node:
        reason = in_words(why, context.locale)
        context.run.note("node_retrying", node=context.node, attempt=attempt, reason=reason)
