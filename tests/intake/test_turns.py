"""A turn has one owner at a time, and a record of its own that goes on wherever it does."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest

from moot.modules.intake.application.intake_service import (
    Conversation,
    Feedback,
    IntakeService,
    NotItsTurn,
    Question,
)
from moot.modules.intake.application.intake_state import IntakeGraph, IntakeState, Keeper
from moot.modules.intake.domain.conversation import Conversations, Turn
from moot.modules.intake.domain.question import Finding
from moot.modules.intake.infrastructure.conversations import SqlConversations
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import Lease, LeaseHolder, Loss
from moot.shared.infrastructure.audit_verification import verify
from tests.fakes.clock import PATIENCE, HandClock, TickingClock
from tests.fakes.llm_server import LLMServer, Say
from tests.governance.factories import NOON
from tests.intake.steps_desk import calls
from tests.intake.whole_desk import (
    ACCEPTED,
    Asking,
    Parts,
    asking,
    hands_over,
    plans,
    researching,
    settings_of,
    writes,
)

LEASE_SECONDS = 30.0
TOO_LONG = LEASE_SECONDS + 1
BEATING = 0.03
"""Seconds of a lease that is renewed at once, whatever the hands of the clock say."""
ALIKE = {"title": "Latest AI trends", "locale": "en-US"}
TRENDS = "What are the latest AI trends?"


class Work(IntakeGraph):
    """Finds something when it is let, and says who did it."""

    def __init__(self, who: str) -> None:
        self._who = who
        self.begun, self.may_go_on, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(
        self, keeper: Keeper, *, state: IntakeState | None = None, feedback: Mapping[str, Any] | None = None
    ) -> IntakeState:
        self.begun.set()
        try:
            await self.may_go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        await keeper.keep_finding(Finding(step_id=self._who, status="completed", text="found"))
        return IntakeState(reply=self._who)


class Process:
    """One that answers questions, on a database that others use too."""

    turns: ClassVar[list["asyncio.Task[Conversation]"]] = []
    """Of all of them."""

    def __init__(
        self, who: str, store: Conversations, clock: HandClock, lease: float = LEASE_SECONDS
    ) -> None:
        self.work = Work(who)
        held = LeaseHolder(store, clock, lease)
        self.service = IntakeService(self._graph, store, clock, held, investigates=False)

    async def _graph(self) -> IntakeGraph:
        return self.work

    async def asks(self) -> "asyncio.Task[Conversation]":
        """Under way."""
        return await self._under_way(self.service.ask(Question(question="What now?"), workspace="default"))

    async def resumes(self, left: Conversation) -> "asyncio.Task[Conversation]":
        return await self._under_way(self.service.resume(left.id, workspace="default"))

    async def _under_way(self, turn: Any) -> "asyncio.Task[Conversation]":
        task = asyncio.create_task(turn)
        self.turns.append(task)
        begun = asyncio.create_task(self.work.begun.wait())
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        begun.cancel()
        if task.done():
            await task
        return task


async def only(store: Conversations) -> Conversation:
    (found,) = await store.newest("default", limit=2)
    return found


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOON)


@pytest.fixture
async def store(database) -> AsyncIterator[SqlConversations]:
    """Turns that a test leaves under way are stopped while there is a database to write that to."""
    Process.turns = []
    yield SqlConversations(database)
    for turn in Process.turns:
        turn.cancel()
    await asyncio.gather(*Process.turns, return_exceptions=True)


async def test_a_turn_that_another_process_is_at_work_on_is_not_resumed(store, clock):
    here, there = Process("here", store, clock), Process("there", store, clock)
    asked = await here.asks()
    clock.move(20.5)
    with pytest.raises(NotItsTurn) as refused:
        await there.resumes(await only(store))
    assert refused.value.details == {"status": "running", "retry_after": 10}
    assert "resumed in 10 seconds" in refused.value.in_locale("en-US")
    assert "10 秒后可以继续" in refused.value.in_locale("zh-CN")
    here.work.may_go_on.set()
    assert (await asked).last.reply == "here"


async def test_whoever_was_away_for_too_long_writes_nothing_any_more(store, clock):
    here, there = Process("here", store, clock), Process("there", store, clock)
    asked = await here.asks()
    clock.move(TOO_LONG)
    resumed = await there.resumes(await only(store))
    here.work.may_go_on.set()
    with pytest.raises(NotItsTurn) as lost:
        await asked
    assert "Another process" in lost.value.in_locale("en-US")
    assert (await only(store)).last.findings == ()
    there.work.may_go_on.set()
    ended = await resumed
    assert (ended.last.reply, ended) == ("there", await only(store))


async def test_whoever_comes_back_after_the_end_does_not_overwrite_it(store, clock):
    here, there = Process("here", store, clock), Process("there", store, clock)
    asked = await here.asks()
    clock.move(TOO_LONG)
    there.work.may_go_on.set()
    ended = await (await there.resumes(await only(store)))
    here.work.may_go_on.set()
    with pytest.raises(NotItsTurn):
        await asked
    assert (await only(store), ended.last.reply) == (ended, "there")


async def test_a_turn_at_work_shows_that_it_is(store, clock):
    here, there = Process("here", store, clock, BEATING), Process("there", store, clock)
    asked = await here.asks()
    clock.move(TOO_LONG)
    async with asyncio.timeout(PATIENCE):
        while (await only(store)).lease_expires_at < clock.now():
            await asyncio.sleep(0.01)
    with pytest.raises(NotItsTurn):
        await there.resumes(await only(store))
    here.work.may_go_on.set()
    assert (await asked).last.reply == "here"


class Unreachable(SqlConversations):
    """A database that one process cannot reach for a while."""

    away = False

    async def renew(self, *beat: Any) -> dict[UUID, Loss]:
        if self.away:
            raise Unavailable("no way there")
        return await super().renew(*beat)


async def test_work_on_a_turn_that_was_lost_is_stopped(database, store, clock):
    cut_off = Unreachable(database)
    here, there = Process("here", cut_off, clock, BEATING), Process("there", store, clock)
    asked = await here.asks()
    cut_off.away = True
    clock.move(TOO_LONG)
    resumed = await there.resumes(await only(store))
    cut_off.away = False
    with pytest.raises(NotItsTurn):
        async with asyncio.timeout(PATIENCE):
            await asked
    assert here.work.stopped.is_set()
    there.work.may_go_on.set()
    assert (await resumed).last.reply == "there"


async def test_a_turn_that_was_broken_off_can_be_resumed_at_once(store, clock):
    here, there = Process("here", store, clock), Process("there", store, clock)
    asked = await here.asks()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    left = await only(store)
    assert (left.status, left.last.left) == ("running", True)
    there.work.may_go_on.set()
    ended = await (await there.resumes(left))
    assert (ended.last.reply, ended.last.left, ended.last.id) == ("there", False, left.last.id)


async def test_a_turn_stored_without_an_id_is_still_read(store):
    turn = {"question": "What now?", "status": "waiting", "asked_at": NOON.isoformat()}
    assert Turn.model_validate(turn).id != Turn.model_validate(turn).id
    conversation = Conversation(
        id=uuid4(),
        workspace_id="default",
        title="?",
        created_at=NOON,
        updated_at=NOON,
        turns=(Turn.model_validate(turn),),
    )
    await store.add(conversation, Lease("nobody", 0, NOON))
    assert (await only(store)).turns == conversation.turns


def with_model(llm_server: LLMServer, **more: Any) -> dict[str, Any]:
    return {"llm_base_url": llm_server.url, "llm_model": "fake-1", "analyst": "rubric"} | more


async def calls_of(desk: Asking, turn: Turn) -> list[tuple[str | None, str, str]]:
    logs = desk.desk.llm_platform.llm_call_logs()
    assert logs is not None
    made = await logs.get_by_session_id(turn.id)
    return [(call.caller_agent, call.status, call.origin) for call in made]


async def intact(desk: Asking, turn: Turn) -> bool:
    assert desk.desk.trail is not None
    await desk.desk.trail.finish()
    return (await verify(desk.desk.trail, turn.id)).intact


async def test_the_record_of_a_turn_goes_on_in_whichever_process_it_does(
    home, database, llm_server: LLMServer
):
    parts = Parts(llm_server)
    parts.play("coordinator", hands_over(**ALIKE))
    parts.play("planner", *[plans(researching("a", "Latest AI trends"), **ALIKE)] * 3)
    parts.play("researcher", calls(("find_company", {"text": "Mirage"})), Say("Small models run on phones."))
    parts.play("reporter", writes("AI trends", "Small models run on phones [1]."))
    settings = settings_of(home, database, **with_model(llm_server))
    edit = Feedback(decision="edit_plan", text="Only chips, please.")
    one = TickingClock(NOON)
    async with asking(settings, clock=one) as here, asking(settings, clock=one) as there:
        waiting = await here.ask(TRENDS)
        await there.say(waiting, edit)
        await here.say(waiting, edit)
        ended = await there.say(waiting, ACCEPTED)
        turn = ended.last
        assert (ended.status, turn.id) == ("answered", waiting.last.id)
        agents = ["coordinator", "planner", "planner", "planner", *["researcher:a"] * 2, "reporter"]
        assert await calls_of(here, turn) == [(agent, "success", "live") for agent in agents]
        assert turn.spent.requests == len(agents)
        assert await intact(here, turn) and await intact(there, turn)
        made = await there.decisions("plan")
        assert [(each.session_id, each.decision_id) for each in made] == [
            (turn.id, f"plan:{turn.id}:{number}") for number in (1, 2, 3)
        ]


async def test_a_question_has_the_budget_of_a_session(home, database, llm_server: LLMServer):
    parts = Parts(llm_server)
    parts.play("coordinator", *[Say("Good day.", usage=(30_000, 0))] * 2)
    settings = settings_of(home, database, **with_model(llm_server, budget_session_tokens=40_000))
    async with asking(settings) as desk:
        first = await desk.ask("Good day")
        second = await desk.ask("Good day", thread_id=first.id)
        assert [turn.reply for turn in second.turns] == ["Good day."] * 2
        assert len(parts.asked["coordinator"]) == 2
        parts.play("coordinator", replace(hands_over(**ALIKE), usage=(39_000, 0)))
        unplanned = await desk.ask(TRENDS)
        assert "MOOT_BUDGET_SESSION_TOKENS" in str(unplanned.last.error or unplanned.last.warnings)
        assert parts.asked["planner"] == []


async def test_a_desk_that_keeps_nothing_has_no_record_of_a_turn(home, llm_server: LLMServer):
    Parts(llm_server).play("coordinator", Say("Good day."))
    async with asking(settings_of(home, persistence=False, **with_model(llm_server))) as desk:
        assert (await desk.ask("Good day")).last.reply == "Good day."
