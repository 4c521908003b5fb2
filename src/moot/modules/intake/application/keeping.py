"""What a turn has come to is kept on the way: a process that dies after a step does not send anybody out again."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import structlog

from moot.modules.intake.domain.conversation import Conversation, Conversations
from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.question import Understanding
from moot.shared.domain.errors import AppError

logger = structlog.get_logger(__name__)


class Keeper:
    """Of the turn under way. `conversation` is as it was last stored."""

    def __init__(self, conversation: Conversation, store: Conversations) -> None:
        self.conversation, self._store = conversation, store
        self._in_turn = asyncio.Lock()

    async def plan(self, plan: Plan, understanding: Understanding) -> None:
        async with self._in_turn:
            await self._changed(plan=plan, understanding=understanding, locale=plan.locale)

    async def keep(self, finding: Finding) -> None:
        async with self._in_turn:
            found = self.conversation.last.findings
            others = (each for each in found if each.step_id != finding.step_id)
            await self._changed(findings=(*others, finding))

    async def _changed(self, **to: Any) -> None:
        turn = self.conversation.last.model_copy(update=to)
        self.conversation = self.conversation.with_last(turn, self.conversation.updated_at)
        try:
            await self._store.save(self.conversation)
        except AppError as e:  # the turn goes on all the same; this is done again if the process dies
            logger.warning("turn not kept", conversation=str(self.conversation.id), error=str(e))


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
