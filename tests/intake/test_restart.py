"""A process is killed while it waits for a person, and while its team is at work; another one finishes the answer."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import UUID

import pytest

from moot.modules.intake.application.intake_service import Conversation, NotItsTurn
from moot.shared.domain.clock import SystemClock
from tests.entry.forked import Forge
from tests.fakes.clock import PATIENCE, until
from tests.fakes.llm_server import LLMServer, Say
from tests.intake.steps_desk import calls
from tests.intake.whole_desk import (
    ACCEPTED,
    Asking,
    Heard,
    Parts,
    asking,
    hands_over,
    plans,
    researching,
    settings_of,
    writes,
)

MIRAGE, FOGHARBOUR = "900001.DEMO", "900002.DEMO"
COMPARE = f"比较一下 {MIRAGE} 和 {FOGHARBOUR} 的估值"
LEFT = {"status": "running", "left": True}


class Later:
    """The time of the other process, or some time after it."""

    ahead = timedelta()

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead


class Asker:
    """Another process that asks; killed at the end, if it was not before."""

    def __init__(self, forge: Forge, folder: Path) -> None:
        self._forge, self._folder = forge, folder
        self._pid = 0

    @asynccontextmanager
    async def asks(self, settings: dict[str, Any], question: str, **more: Any) -> AsyncIterator["Asker"]:
        order = {"settings": settings, "question": question, "accept_plan": False, "hangs_on": ""} | more
        code = f"from tests.intake.asker import run; run({order!r})"
        self._pid = await self._forge.start("-c", code, log=self._folder / "said")
        try:
            yield self
        finally:
            await self.killed()

    async def said(self) -> dict[str, Any]:
        await until(lambda: self._line().endswith("\n"))
        told: dict[str, Any] = json.loads(self._line())
        return told

    async def killed(self) -> None:
        if self._pid:
            os.kill(self._pid, SIGKILL)
            await self._forge.ended(self._pid)
        self._pid = 0

    def _line(self) -> str:
        file = self._folder / "said"
        return file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.fixture
def asker(forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Asker:
    return Asker(forge, tmp_path_factory.mktemp("asker"))


async def until_found(desk: Asking, how_many: int) -> Conversation:
    """The only conversation, once it has kept so many findings."""
    async with asyncio.timeout(PATIENCE):
        while True:
            conversations = await desk.service.conversations("default")
            if conversations and len(conversations[0].last.findings) >= how_many:
                return conversations[0]
            await asyncio.sleep(0.05)


async def test_a_plan_that_waits_outlives_its_process_and_is_accepted_in_another(home, database, asker):
    settings = settings_of(home, database)
    async with asker.asks(settings, f"{MIRAGE} 现在能买吗？") as process:
        told = await process.said()
        assert told["status"] == "waiting"
        await process.killed()
    async with asking(settings) as desk:
        waiting = await desk.service.conversation(UUID(told["id"]), "default")
        assert waiting.status == "waiting" and waiting.last.plan is not None
        heard = Heard()
        ended = await desk.say(waiting, ACCEPTED, heard)
        assert (ended.status, ended.last.locale) == ("answered", "zh-CN")
        assert ended.last.plan == waiting.last.plan
        assert ended.last.answer is not None and len(ended.last.sessions) == 1
        assert [about["status"] for about in heard.of("step")] == ["started", "completed"]


async def test_a_model_is_not_asked_again_for_a_plan_that_waits(home, database, asker, llm_server: LLMServer):
    parts = Parts(llm_server)
    about = {"title": "Latest AI trends", "locale": "en-US"}
    parts.play("coordinator", hands_over(**about))
    parts.play("planner", plans(researching("a", "Latest AI trends"), **about))
    parts.play("researcher", calls(("find_company", {"text": "Mirage"})), Say("Small models run on phones."))
    parts.play("reporter", writes("AI trends", "Small models run on phones [1]."))
    settings = settings_of(home, database, llm_base_url=llm_server.url, llm_model="fake-1")
    async with asker.asks(settings, "What are the latest AI trends?") as process:
        told = await process.said()
        await process.killed()
    async with asking(settings) as desk:
        waiting = await desk.service.conversation(UUID(told["id"]), "default")
        ended = await desk.say(waiting, ACCEPTED)
    assert (ended.status, ended.last.answer.title) == ("answered", "AI trends")
    assert {agent: len(asked) for agent, asked in parts.asked.items()}.items() >= {
        ("coordinator", 1),
        ("planner", 1),
    }


async def test_a_team_whose_process_died_goes_on_with_what_it_had_not_found_yet(home, database, asker):
    """The session that was under way goes on as well."""
    settings, clock = settings_of(home, database), Later()
    async with asking(settings, clock=clock) as desk:
        async with asker.asks(settings, COMPARE, accept_plan=True, hangs_on=FOGHARBOUR) as process:
            left = await until_found(desk, 1)
            await process.killed()
        assert (left.status, left.last.sessions) == ("running", left.last.sessions[:1])
        with pytest.raises(NotItsTurn):
            await desk.ask("你好", thread_id=left.id)
        with pytest.raises(NotItsTurn):
            await desk.resume(left)
        clock.ahead = timedelta(minutes=1)
        heard = Heard()
        ended = await desk.resume(left, heard)
        assert (ended.status, ended.last.error) == ("answered", None)
        assert {found.step_id: found.status for found in ended.last.findings} == {
            "equity-1": "completed",
            "equity-2": "completed",
            "compare": "completed",
        }
        assert ended.last.sessions[0] == left.last.sessions[0]
        of_each = [(await desk.desk.sessions(symbol)).total for symbol in (MIRAGE, FOGHARBOUR)]
        assert of_each == [1, 1]
        told = [(about["id"], about["status"]) for about in heard.of("step")]
        assert told[0] == ("equity-1", "completed") and ("equity-1", "started") not in told
        assert await desk.service.conversation(left.id, "default") == ended
        with pytest.raises(NotItsTurn):
            await desk.resume(ended)


async def test_processes_that_are_asked_for_the_first_time_at_once_all_answer(home, postgres_database):
    settings = settings_of(home, postgres_database)
    async with asking(settings) as one, asking(settings) as two, asking(settings) as three:
        asked = await asyncio.gather(*(desk.ask(f"{MIRAGE} 现在能买吗？") for desk in (one, two, three)))
    assert [each.status for each in asked] == ["waiting"] * 3


async def test_an_answer_that_was_written_but_not_stored_is_told_by_a_resume(home, database):
    """As when the process dies between the two."""
    async with asking(settings_of(home, database)) as desk:
        ended = await desk.ask(f"{MIRAGE} 现在能买吗？", auto_accepted_plan=True)
        running = ended.last.model_copy(update=LEFT | {"answer": None, "ended_at": None})
        left = ended.with_last(running, ended.updated_at)
        await desk.desk.intake.conversations.save(left, left.lease_token, release=True)
        again = await desk.resume(left)
        assert (again.status, again.last.answer) == ("answered", ended.last.answer)
        assert await desk.sessions() == 1


async def test_feedback_that_never_arrived_leaves_the_plan_waiting_after_a_resume(home, database):
    async with asking(settings_of(home, database)) as desk:
        waiting = await desk.ask(f"{MIRAGE} 现在能买吗？")
        running = waiting.last.model_copy(update=LEFT)
        left = waiting.with_last(running, waiting.updated_at)
        await desk.desk.intake.conversations.save(left, left.lease_token, release=True)
        heard = Heard()
        again = await desk.resume(left, heard)
        assert (again.status, heard.names) == ("waiting", ["interrupt", "done"])
        assert (await desk.say(again, ACCEPTED)).status == "answered"


async def test_a_question_that_died_before_it_began_ends_and_can_be_asked_again(home, database):
    async with asking(settings_of(home, database)) as desk:
        begun = await desk.ask("你好")
        turn = begun.last.model_copy(update=LEFT | {"question": "再见"})
        left = begun.model_copy(update={"turns": (*begun.turns, turn)})
        await desk.desk.intake.conversations.save(left, left.lease_token, release=True)
        ended = await desk.resume(left)
        assert ended.status == "failed" and ended.last.error
        assert (await desk.ask("再见", thread_id=left.id)).status == "replied"
