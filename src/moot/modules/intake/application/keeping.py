"""What a turn has come to is kept on the way: a process that dies after a step does not send anybody out again.

Every write says that somebody is at work, and holds only if nobody else has written since: a turn has one owner.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import structlog

from moot.modules.intake.domain.conversation import Conversation, Conversations, Turn
from moot.modules.intake.domain.findings import Finding, Spent
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.question import Understanding
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import Tally, current_execution_ctx

logger = structlog.get_logger(__name__)


class TurnLost(Exception):
    """Another process goes on with the turn; nothing may be written for it here any more."""


class Keeper:
    """Of the turn under way. `conversation` is as it stands, and stored as such unless the store failed."""

    def __init__(self, conversation: Conversation, store: Conversations, clock: Clock) -> None:
        self.conversation, self._stored = conversation, conversation
        self._store, self._clock = store, clock
        self._in_turn, self._lost = asyncio.Lock(), asyncio.Event()

    async def plan(self, plan: Plan, understanding: Understanding) -> None:
        await self._kept(plan=plan, understanding=understanding, locale=plan.locale)

    async def keep(self, finding: Finding) -> None:
        found = self.conversation.last.findings
        others = (each for each in found if each.step_id != finding.step_id)
        await self._kept(findings=(*others, finding))

    async def beat(self, seconds: float) -> NoReturn:
        """Shows every so often that somebody is at work; raises `TurnLost` once it is somebody else."""
        while not await self._lost_within(seconds):
            await self._kept()
        raise TurnLost

    async def leave(self) -> None:
        """Whoever comes next need not wait until this process is taken to be gone."""
        await self._kept(left=True)

    async def end(self, turn: Turn) -> Conversation:
        """Raises `TurnLost`, or what kept the store from storing it."""
        self._stands(turn)
        await asyncio.shield(self._stored_now())
        if self._lost.is_set():
            raise TurnLost
        return self.conversation

    async def _kept(self, **to: Any) -> None:
        self._stands(self.conversation.last.model_copy(update=to))
        try:
            await asyncio.shield(self._stored_now())
        except AppError as e:  # the turn goes on all the same; this is done again if the process dies
            logger.warning("turn not kept", conversation=str(self.conversation.id), error=str(e))

    def _stands(self, turn: Turn) -> None:
        turn = turn.model_copy(update={"spent": spent_so_far() or turn.spent})
        self.conversation = self.conversation.with_last(turn, self._clock.now())

    async def _stored_now(self) -> None:
        """Goes on when nobody waits for it any more: what is stored must be known here."""
        async with self._in_turn:
            now = self.conversation
            if not self._lost.is_set() and await self._store.take(now, self._stored):
                self._stored = now
            else:
                self._lost.set()

    async def _lost_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._lost.wait()
        except TimeoutError:
            return False


_keeper: ContextVar[Keeper | None] = ContextVar("intake_keeper", default=None)


@contextmanager
def keeping(keeper: Keeper) -> Iterator[None]:
    token = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(token)


async def keep_plan(plan: Plan, understanding: Understanding) -> None:
    keeper = _keeper.get()
    if keeper is not None:
        await keeper.plan(plan, understanding)


async def keep(finding: Finding) -> None:
    """A step that failed is not kept: it may have better luck."""
    keeper = _keeper.get()
    if keeper is not None and finding.usable:
        await keeper.keep(finding)


def kept() -> Sequence[Finding]:
    """What the turn under way had found before it was interrupted."""
    keeper = _keeper.get()
    return [finding for finding in keeper.conversation.last.findings if finding.usable] if keeper else []


def spent_so_far() -> Spent | None:
    """What the turn under way has taken, outside of the experts' sessions; None: nobody counts."""
    context = current_execution_ctx.get()
    if context is None:
        return None
    tally = context.tally
    cost = None if tally.unpriced else tally.cost
    return Spent(requests=tally.requests, tokens=tally.tokens, cost=cost)


def counting_from(spent: Spent) -> Tally:
    """For a turn that goes on."""
    return Tally(
        requests=spent.requests,
        tokens=spent.tokens,
        cost=spent.cost or 0.0,
        unpriced=int(spent.cost is None),
    )
