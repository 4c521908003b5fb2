"""What a turn has come to is kept on the way: a process that dies after a step does not send anybody out again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from moot.modules.intake.application.errand import Errand
from moot.modules.intake.domain.conversation import Conversation, Conversations, Turn
from moot.modules.intake.domain.findings import Finding
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError

logger = structlog.get_logger(__name__)


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
