"""Sessions of the whole desk, and what somebody outside is told of them: signed, in their language, once."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed, SessionWaiting
from moot.modules.jobs.application import delivery
from moot.modules.jobs.application.destinations import DestinationBody
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import inside
from tests.entry.test_escalations_cli import EVERY_VERDICT
from tests.entry.test_rules_cli import written
from tests.fakes.chat_servers import TOKEN, WEBHOOK_SECRET, ChatServer, running_chat_server
from tests.fakes.clock import TickingClock, until

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
SYMBOL = "900001.DEMO"
THIRD_DAY = "2018-01-04"
"""On the third day of the market the technical analyst has too few bars to go by."""


@pytest.fixture
async def chat() -> AsyncIterator[ChatServer]:
    async with running_chat_server(NOW.timestamp()) as server:
        yield server


@pytest.fixture
async def desk(home: Path, chat: ChatServer) -> AsyncIterator[Moot]:
    async with Moot(Settings(home=home, log_level="error"), clock=TickingClock(NOW)) as desk:
        await desk.jobs.destinations().add(place(chat))
        yield desk


def place(chat: ChatServer, **more: Any) -> DestinationBody:
    secrets = {"url": SecretStr(chat.address("webhook")), "secret": SecretStr(WEBHOOK_SECRET)}
    return DestinationBody(name="ours", kind="webhook", **secrets, **{"locale": "en-US", **more})


async def test_another_verdict_is_told_with_its_note_and_a_what_if_or_a_replay_is_not(desk, chat):
    days = ("2025-06-30", "2025-12-31")
    first, second = [await desk.research(SYMBOL, as_of=day, locale="en-US") for day in days]
    actions = first.verdict["action"], second.verdict["action"]
    assert actions[0] != actions[1], "two days on which the demo market is judged differently"
    assert await desk.jobs.deliver_now() == 1
    (told,) = chat.heard
    assert (told["before"], told["action"], told["session_id"]) == (*actions, second.session_id)
    title, reason, session, *notes = told["text"].splitlines()
    assert title == f"Mirage Hill Distillers ({SYMBOL}): {actions[0]} → {actions[1]}"
    assert reason == f"Why: {second.verdict['headline']}"
    assert session == f"Session {second.session_id}, as of 2025-12-31, over 20 trading days"
    assert notes == second.notices
    assert notes[-1] == "This is research, not investment advice."

    claim = second.debate_outcome["argument"]["claims"][0]["id"]
    await desk.contest(second.session_id, [{"move": "strike", "claim": claim}])
    await desk.replay(second.session_id)
    await desk.research(SYMBOL, as_of=days[0], locale="en-US")
    assert (await desk.jobs.deliver_now(), len(chat.heard)) == (0, 1)

    await desk.add_to_watchlist(SYMBOL)
    (watched,) = (await desk.watchlist()).items
    assert (watched.last.action, watched.before.action) == (actions[1], actions[0])
    assert str(watched.last.session_id) == second.session_id


async def test_a_failure_is_told_to_whoever_reads_chinese(desk, chat):
    await desk.jobs.destinations().remove("ours")
    await desk.jobs.destinations().add(place(chat, locale="zh-CN", occasions=("failure",)))
    with pytest.raises(AllExpertsFailed):
        await desk.research(SYMBOL, ["technical_analyst"], as_of=THIRD_DAY, locale="zh-CN")
    assert await desk.jobs.deliver_now() == 1
    (told,) = chat.heard
    assert told["text"].startswith("幻山酒业（900001.DEMO）：研究失败\n原因：")
    assert (told["occasion"], told["action"], told["locale"]) == ("failure", None, "zh-CN")


async def test_who_has_to_decide_is_told_what_waits(desk, chat, home, monkeypatch):
    monkeypatch.chdir(home)
    activated = await inside(home, monkeypatch)("rules", "activate", "--yes", written(home, EVERY_VERDICT))
    assert activated.returncode == 0, activated
    with pytest.raises(SessionWaiting) as waits:
        await desk.research(SYMBOL, as_of="2025-12-31", locale="en-US")
    assert await desk.jobs.deliver_now() == 1
    (told,) = chat.heard
    asked = waits.value.details["escalation_id"]
    assert (told["occasion"], told["escalation_id"]) == ("escalation", str(asked))
    assert f"Answer it with: moot escalations show {asked}\n" in told["text"]
    assert told["session_id"] == waits.value.details["session_id"]
    assert "the research waits for a person\nWhy: " in told["text"]


async def test_a_desk_that_is_served_delivers_by_itself_and_logs_no_secret(home, chat, monkeypatch):
    monkeypatch.setattr(delivery, "LOOK_EVERY", 0.01)
    app = create_app(Moot(Settings(home=home, log_level="error"), clock=TickingClock(NOW)))
    chat.refuse_with = (404, f"no hook {chat.address('webhook')}", {})
    with capture_logs() as logs:
        async with app.router.lifespan_context(app):
            desk = app.state.desk
            await desk.jobs.destinations().add(place(chat))
            with pytest.raises(AllExpertsFailed):
                await desk.research(SYMBOL, ["technical_analyst"], as_of=THIRD_DAY)
            await until(lambda: any(entry["event"] == "notification given up" for entry in logs))
    seen = await inside(home, monkeypatch)("doctor")
    assert "given up: 1. What was wrong: moot notify list" in " ".join(seen.stdout.split())
    assert TOKEN not in str(logs)
    assert WEBHOOK_SECRET not in str(logs)
