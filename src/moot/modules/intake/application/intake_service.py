"""The single door for questions in people's own words: one turn of a conversation at a time."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, get_args
from uuid import UUID, uuid4

import structlog
from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from moot.modules.intake.application.intake_state import Errand, IntakeGraph, Keeper, Tell, begin_state
from moot.modules.intake.domain.conversation import Conversation, Conversations, PlanDecision, Style, Turn
from moot.modules.intake.domain.question import Limits
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, Conflict, NotFound
from moot.shared.domain.ids import find_id
from moot.shared.domain.leases import LeaseHolder, Loss
from moot.shared.domain.validation import Strict, refuse
from moot.shared.infrastructure.execution_context import ExecutionContext, Tally

__all__ = ["Conversation", "Feedback", "IntakeService", "PlanDecision", "Question", "Style", "Turn"]

logger = structlog.get_logger(__name__)

LONGEST = 4000
"""Characters of a question."""
LAST = "last"
"""What the newest conversation is called."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST)]


class Question(Strict):
    """`thread_id` goes on with a conversation. What is left out has the desk's own value, never zero."""

    question: Text
    thread_id: UUID | None = None
    locale: str | None = Field(default=None, max_length=35)
    style: Style = "research"
    auto_accepted_plan: bool = False
    enable_background_investigation: bool | None = None
    max_plan_iterations: int | None = Field(default=None, ge=1, le=5)
    max_step_num: int | None = Field(default=None, ge=1, le=10)

    @property
    def limits(self) -> Limits:
        given = {"max_plan_iterations": self.max_plan_iterations, "max_step_num": self.max_step_num}
        return Limits.model_validate({name: value for name, value in given.items() if value is not None})


class Feedback(Strict):
    """What a person says to a plan. `text` says what is to change, where `decision` is `edit_plan`."""

    decision: PlanDecision
    text: str = Field(default="", max_length=LONGEST, validate_default=True)

    @field_validator("text")
    @classmethod
    def _says_what_to_change(cls, text: str, info: ValidationInfo) -> str:
        if info.data.get("decision") == "edit_plan" and not text.strip():
            raise refuse("blank")
        return text


class NoSuchConversation(NotFound, code="CONVERSATION_NOT_FOUND"): ...


class NotItsTurn(Conflict, code="NOT_ITS_TURN"):
    """The conversation is busy, or waits for something else than what was said."""


class IntakeService:
    """`graph` is opened when the first question comes. `investigates`: whether there is a web to look at first.

    Whoever runs a turn holds its lease, one of those in `held`; others may go on with it once that has run out.
    `on_record` returns when all that was done is on the record.
    """

    def __init__(
        self,
        graph: Callable[[], Awaitable[IntakeGraph]],
        conversations: Conversations,
        clock: Clock,
        held: LeaseHolder,
        *,
        investigates: bool,
        on_record: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._graph, self._conversations, self._clock, self._held = graph, conversations, clock, held
        self._investigates, self._on_record = investigates, on_record
        self._under_way: set[asyncio.Task[Conversation]] = set()

    async def close(self) -> None:
        for work in self._under_way:
            work.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._held.close(release=False)

    async def ask(
        self,
        asked: Question,
        *,
        workspace: str,
        requested_by: str | None = None,
        listener: Tell | None = None,
        wait: bool = True,
    ) -> Conversation:
        """Until it is answered or waits for a person; raises `NotItsTurn` while the last question is under way.

        Whoever does not `wait`, here or below, is given it as it begins, and it goes on all the same.
        """
        now = self._clock.now()
        turn = Turn(question=asked.question, style=asked.style, asked_at=now)
        if asked.thread_id is None:
            lease = self._held.first()
            conversation = Conversation(
                id=uuid4(),
                workspace_id=workspace,
                requested_by=requested_by,
                title=asked.question[:200],
                created_at=now,
                updated_at=now,
                turns=(turn,),
                lease_token=lease.token,
            )
            await self._conversations.add(conversation, lease)
        else:
            before = await self.conversation(asked.thread_id, workspace)
            if before.status in ("running", "waiting"):
                raise NotItsTurn(SAY(f"conversation.{before.status}", id=before.id), status=before.status)
            conversation = await self._take(before, (*before.turns, turn))
        wanted = asked.enable_background_investigation
        state = begin_state(
            conversation,
            locale=asked.locale or "",
            limits=asked.limits,
            auto_accepted_plan=asked.auto_accepted_plan,
            enable_background_investigation=self._investigates if wanted is None else wanted,
        )
        return await self._work(conversation, requested_by, listener, wait, state=state)

    async def feedback(
        self,
        conversation_id: UUID,
        said: Feedback,
        *,
        workspace: str,
        requested_by: str | None = None,
        listener: Tell | None = None,
        wait: bool = True,
    ) -> Conversation:
        """Go on with what waits for a person; raises `NotItsTurn` when nothing does."""
        taken = await self._go_on(conversation_id, workspace, "waiting", "not_waiting")
        return await self._work(taken, requested_by, listener, wait, feedback=said.model_dump())

    async def resume(
        self, conversation_id: UUID, *, workspace: str, listener: Tell | None = None, wait: bool = True
    ) -> Conversation:
        """Go on from where a process died; raises `NotItsTurn` unless one did, or while one may still be at work."""
        taken = await self._go_on(conversation_id, workspace, "running", "not_left")
        return await self._work(taken, taken.requested_by, listener, wait)

    async def _go_on(self, name: UUID, workspace: str, status: str, otherwise: str) -> Conversation:
        """With its last turn, if that stands so."""
        conversation = await self.conversation(name, workspace)
        if conversation.status != status:
            raise NotItsTurn(SAY(f"conversation.{otherwise}", id=name), status=conversation.status)
        return await self._take(conversation, conversation.turns)

    async def conversation(self, conversation_id: UUID, workspace: str) -> Conversation:
        found = await self._conversations.get(conversation_id, workspace)
        if found is None:
            raise NoSuchConversation(SAY("conversation.unknown", id=conversation_id))
        return found

    async def find(self, name: str, workspace: str) -> Conversation:
        """By its id, by the beginning of it that no other has, or as `last`."""

        async def among(*between: UUID) -> list[UUID]:
            return [each.id for each in await self._conversations.newest(workspace, between=between)]

        return await self.conversation(await find_id("thread", name, among), workspace)

    async def conversations(self, workspace: str, *, limit: int = 20) -> list[Conversation]:
        return await self._conversations.newest(workspace, limit=limit)

    async def _take(self, conversation: Conversation, turns: tuple[Turn, ...]) -> Conversation:
        """With these turns, the last of them running: here and nowhere else."""
        taken = await self._held.take(conversation.id)
        if taken is None:
            raise self._busy(conversation)
        token = taken.lease.token
        if token != conversation.lease_token + 1:  # somebody has held it since it was read, and let it go
            now = await self.conversation(conversation.id, conversation.workspace_id)
            await self._conversations.save(now, token, release=True)
            raise self._busy(now)
        mine = conversation.model_copy(
            update={"turns": turns, "lease_token": token, "lease_expires_at": None}
        )
        begun = turns[-1].model_copy(update={"status": "running", "left": False, "error": None})
        running = mine.with_last(begun, self._clock.now())
        if not await self._conversations.save(running, token):
            raise self._busy(conversation)
        return running

    def _busy(self, conversation: Conversation) -> NotItsTurn:
        until = conversation.lease_expires_at
        if conversation.status != "running" or until is None:
            return NotItsTurn(SAY("conversation.running", id=conversation.id), status="running")
        seconds = max(math.ceil((until - self._held.clock.now()).total_seconds()), 1)
        said = SAY("lease.held", id=conversation.id, seconds=seconds)
        return NotItsTurn(said, status="running", retry_after=seconds)

    async def _work(
        self, conversation: Conversation, by: str | None, listener: Tell | None, wait: bool, **given: Any
    ) -> Conversation:
        turn = self._turn(conversation, by, listener, **given)
        if wait:
            return await turn
        self._under_way.add(work := asyncio.create_task(turn))
        work.add_done_callback(self._forget)
        return conversation

    def _forget(self, work: "asyncio.Task[Conversation]") -> None:
        self._under_way.discard(work)
        if not work.cancelled() and (error := work.exception()):
            logger.warning("turn ended elsewhere", error=str(error))

    async def _turn(
        self, conversation: Conversation, by: str | None, listener: Tell | None, **given: Any
    ) -> Conversation:
        """Of a conversation that is held here, to its end; `given` is for the graph."""
        turn, workspace = conversation.last, conversation.workspace_id
        record = str(turn.id) if self._conversations.lasting else ""
        spent = turn.spent.model_dump(include={"requests", "tokens"})
        tally = Tally(**spent, cost=turn.spent.cost or 0.0, unpriced=turn.spent.cost is None)
        errand = Errand(workspace, by or "", record, tally, listener)
        keeper = Keeper(conversation, self._conversations, self._clock, errand)
        mine = {"session_id": record, "workspace": workspace, "caller": errand.caller, "tally": errand.tally}
        with ExecutionContext(**mine).active():
            work = asyncio.create_task(self._run(keeper, given))

        def stop(_: Loss) -> None:
            keeper.lost = True
            work.cancel()

        self._held.hold(conversation.id, stop)
        try:
            await work
        except asyncio.CancelledError:
            if not keeper.lost:
                await keeper.keep(left=True, release=True)
                raise
        finally:
            self._held.let_go(conversation.id)
        if keeper.lost:
            logger.warning("turn taken over", conversation=str(conversation.id))
            raise NotItsTurn(SAY("lease.lost", id=conversation.id), status="running")
        _tell_end(keeper.conversation, errand)
        return keeper.conversation

    async def _run(self, keeper: Keeper, given: Mapping[str, Any]) -> None:
        """However it ends, it ends: what nobody foresaw is told as a failure of this turn."""
        try:
            graph = await self._graph()
            turn = keeper.end(await graph.run(keeper, **given))
        except Exception as e:  # bulkhead: a turn that fails must not leave its conversation running for ever
            foreseen = isinstance(e, AppError)
            logger.warning("turn failed", conversation=str(keeper.conversation.id), exc_info=not foreseen)
            turn = keeper.fail(e)
        if self._on_record is not None:
            await self._on_record()  # whoever goes on with the turn goes on with its record
        await keeper.write(turn, release=True)


def _tell_end(conversation: Conversation, errand: Errand) -> None:
    turn, thread = conversation.last, str(conversation.id)
    if turn.status == "waiting":
        plan = turn.plan.model_dump(mode="json") if turn.plan else None
        asked = {"escalation_id": turn.escalation_id} if turn.escalation_id else {}
        errand.tell("interrupt", thread_id=thread, plan=plan, options=list(get_args(PlanDecision)), **asked)
    elif turn.reply:
        errand.tell("message_chunk", text=turn.reply)
    elif turn.error:
        errand.tell("error", message=turn.error)
    errand.tell("done", thread_id=thread, status=turn.status)
