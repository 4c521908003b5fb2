"""What a turn has come to is kept on the way: a process that dies after a step does not send anybody out again.

Every write says that somebody is at work, and holds only if nobody else has written since: a turn has one owner.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import structlog

from moot.modules.intake.application.errand import Errand
from moot.modules.intake.domain.conversation import Conversation, Conversations, Turn
from moot.modules.intake.domain.findings import Finding
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError

logger = structlog.get_logger(__name__)


class TurnLost(Exception):
    """Another process goes on with the turn; nothing may be written for it here any more."""


@dataclass
class Keeper:
    """Of the turn under way. `conversation` is as it stands, and stored as such unless the store failed."""

    conversation: Conversation
    store: Conversations
    clock: Clock
    errand: Errand
    _in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _lost: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._stored = self.conversation

    @property
    def thread(self) -> str:
        """A turn each: a question starts anew, and what is remembered of the others is put before it."""
        return f"{self.conversation.id}:{len(self.conversation.turns)}"

    @property
    def findings(self) -> Sequence[Finding]:
        """What the turn had found before it was interrupted."""
        return [finding for finding in self.conversation.last.findings if finding.usable]

    async def keep(self, **what: Any) -> None:
        """Fields of the turn; the turn goes on all the same where the store fails: it is done again after a death."""
        self._change(self.conversation.last.model_copy(update=what))
        try:
            await asyncio.shield(self._write())
        except AppError as e:
            logger.warning("turn not kept", conversation=str(self.conversation.id), error=str(e))

    async def keep_finding(self, finding: Finding) -> None:
        """A step that failed is not kept: it may have better luck."""
        if finding.usable:
            found = self.conversation.last.findings
            others = (each for each in found if each.step_id != finding.step_id)
            await self.keep(findings=(*others, finding))

    async def beat(self, seconds: float) -> NoReturn:
        """Shows every so often that somebody is at work; raises `TurnLost` once it is somebody else."""
        while not await self._lost_within(seconds):
            await self.keep()
        raise TurnLost

    async def end(self, turn: Turn) -> Conversation:
        """Raises `TurnLost`, or what kept the store from storing it."""
        self._change(turn)
        await asyncio.shield(self._write())
        if self._lost.is_set():
            raise TurnLost
        return self.conversation

    def _change(self, turn: Turn) -> None:
        turn = turn.model_copy(update={"spent": self.errand.spent})
        self.conversation = self.conversation.with_last(turn, self.clock.now())

    async def _write(self) -> None:
        """Goes on when nobody waits for it any more: what is stored must be known here."""
        async with self._in_turn:
            now = self.conversation
            if not self._lost.is_set() and await self.store.take(now, self._stored):
                self._stored = now
            else:
                self._lost.set()

    async def _lost_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._lost.wait()
        except TimeoutError:
            return False
