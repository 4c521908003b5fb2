"""`moot sessions retry|resume|cancel`, as a user types them, in both languages."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog

from moot.desk import Moot
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import Run, inside
from tests.entry.serving import MACRO, NOBODY, Gate

TECHNICAL = "technical_analyst"
THIRD_DAY = "2018-01-04"
"""Too early for the technical analyst, now and on every retry."""
CHINESE = {"LANG": "zh_CN.UTF-8"}


@pytest.fixture
def moot(home, monkeypatch) -> Run:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return inside(home, monkeypatch)


@pytest.fixture
def settings(home):
    return Settings(home=home, log_level="error", locale="en-US")


@pytest.fixture
def interrupted(settings, monkeypatch) -> Callable[..., Awaitable[list[str]]]:
    async def interrupt(*symbols: str, of_first: Any = (), **more: Any) -> list[str]:
        """Sessions whose desk closed while their expert worked. The next desk goes on with them: all begin in one."""
        asked: list[dict[str, Any]] = [{"symbol": symbol, "experts": [MACRO]} | more for symbol in symbols]
        asked[0].update(of_first)
        with monkeypatch.context() as patched:
            gate = Gate()
            patched.setattr(GovernanceAdapter, "authorise", gate.authorise)
            async with Moot(settings.model_copy(update={"worker": True})) as desk:
                begun = [await desk.start(**question, skip_debate=True) for question in asked]
                await gate.reached(len(symbols))
        return [str(session.id) for session in begun]

    return interrupt


async def researched(moot: Run, *more: str) -> str:
    answer = await moot("research", "900001.DEMO", "--skip-debate", "--json", *more)
    assert answer.returncode == 0, answer.stderr
    session: str = json.loads(answer.stdout)["session_id"]
    return session


async def status_of(moot: Run, session: str) -> str:
    shown = await moot("sessions", "show", session, "--json")
    status: str = json.loads(shown.stdout)["status"]
    return status


async def test_a_retry_shows_its_result_and_leaves_a_session_of_its_own(moot, home):
    parent = await researched(moot, "--experts", f"{TECHNICAL},{MACRO}", "--as-of", THIRD_DAY)
    seen = await moot("sessions", "retry", parent, "--skip-debate")
    assert seen.returncode == 0, seen.stderr
    assert "Technical analyst · failed" in seen.stderr
    assert "Macro intelligence · working" not in seen.stderr, "what had succeeded is reused"
    assert "Report: " in seen.stdout
    chinese = await moot("sessions", "retry", parent, "--skip-debate", **CHINESE)
    assert chinese.returncode == 0
    assert "Report: " in chinese.stdout, "the language is that of the session"
    as_json = await moot("sessions", "retry", parent, "--skip-debate", "--json")
    body = json.loads(as_json.stdout)
    assert (body["overall_status"], body["retry_count"]) == ("partial", 1)
    children = json.loads((await moot("sessions", "show", parent, "--json")).stdout)["retries"]
    assert len(children) == 3
    assert body["session_id"] == children[-1]
    assert len(list((home / "reports").glob("*.md"))) >= 3


async def test_a_retry_that_cannot_be_says_why(moot, interrupted):
    done = await researched(moot, "--experts", MACRO)
    (open_still,) = await interrupted("900002.DEMO")
    for session, code, english, chinese in (
        (done, 2, f"Nothing failed in session {done}", f"会话 {done}"),
        (open_still, 1, f"Session {open_still} is still running", f"会话 {open_still}"),
        (NOBODY, 1, f"There is no session {NOBODY}", f"会话 {NOBODY}"),
        ("not-an-id", 2, "not-an-id", "not-an-id"),
    ):
        seen = await moot("sessions", "retry", session)
        assert (seen.returncode, seen.stdout) == (code, ""), session
        assert english in seen.stderr
        assert chinese in (await moot("sessions", "retry", session, **CHINESE)).stderr
    as_json = await moot("sessions", "retry", done, "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)["code"]) == (2, "SESSION_NOT_RETRYABLE")


@pytest.mark.parametrize(
    ("locale", "language", "going_on", "report"),
    [
        ("en-US", {}, "Going on with session {id} (900001.DEMO).\n", "Report: "),
        ("zh-CN", CHINESE, "继续会话 {id}（900001.DEMO）。\n", "报告："),
    ],
    ids=["en-US", "zh-CN"],
)
async def test_an_interrupted_session_is_resumed_to_its_end(
    moot, interrupted, locale, language, going_on, report
):
    (session,) = await interrupted("900001.DEMO", locale=locale)
    seen = await moot("sessions", "resume", session, **language)
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout.startswith(going_on.format(id=session))
    assert report in seen.stdout
    assert await status_of(moot, session) == "completed"


async def test_without_an_id_all_that_were_interrupted_are_resumed(moot, interrupted):
    nothing = await moot("sessions", "resume")
    assert (nothing.returncode, nothing.stdout) == (0, "No session was interrupted.\n")
    assert (await moot("sessions", "resume", **CHINESE)).stdout == "没有被中断的会话。\n"
    sessions = await interrupted("900001.DEMO", "900002.DEMO")
    seen = await moot("sessions", "resume")
    assert seen.returncode == 0, seen.stderr
    for session in sessions:
        assert f"Going on with session {session}" in seen.stdout
        assert await status_of(moot, session) == "completed"
    again = await moot("sessions", "resume")
    assert again.stdout == "No session was interrupted.\n"


async def test_one_that_fails_does_not_keep_the_others_from_being_resumed(moot, interrupted):
    too_early = {"experts": [TECHNICAL], "as_of": THIRD_DAY}
    failing, fine = await interrupted("900001.DEMO", "900002.DEMO", of_first=too_early)
    seen = await moot("sessions", "resume")
    assert seen.returncode == 1
    assert f"Session {failing}: No expert could say anything about 900001.DEMO." in seen.stderr
    assert [await status_of(moot, session) for session in (failing, fine)] == ["failed", "completed"]


async def test_in_json_a_resumed_session_is_the_body_and_nothing_else(moot, interrupted):
    (session,) = await interrupted("900001.DEMO")
    seen = await moot("sessions", "resume", session, "--json")
    body = json.loads(seen.stdout)
    assert (seen.returncode, body["session_id"], body["overall_status"]) == (0, session, "completed")
    assert "Going on" in seen.stderr
    ended = await moot("sessions", "resume", session, "--json")
    assert (ended.returncode, json.loads(ended.stdout)["code"]) == (1, "SESSION_ENDED")


async def test_what_cannot_be_resumed_is_said(moot):
    done = await researched(moot, "--experts", MACRO)
    ended = await moot("sessions", "resume", done)
    assert (ended.returncode, f"Session {done} has ended (completed)." in ended.stderr) == (1, True)
    assert "已" in (await moot("sessions", "resume", done, **CHINESE)).stderr
    assert (await moot("sessions", "resume", NOBODY)).returncode == 1
    assert (await moot("sessions", "resume", "not-an-id")).returncode == 2


async def test_a_session_that_somebody_runs_is_neither_resumed_nor_stopped_at_once(
    moot, settings, monkeypatch
):
    gate, slow_heart = Gate(), {"worker": True, "lease_seconds": 600.0}
    monkeypatch.setattr(GovernanceAdapter, "authorise", gate.authorise)
    async with Moot(settings.model_copy(update=slow_heart)) as desk:
        session = str((await desk.start("900001.DEMO", [MACRO], skip_debate=True)).id)
        await gate.reached(1)
        held = await moot("sessions", "resume", session)
        assert held.returncode == 1
        assert "is under way in another process" in held.stderr
        assert (await moot("sessions", "resume")).stdout == "No session was interrupted.\n"
        asked = await moot("sessions", "cancel", session)
        assert asked.returncode == 0
        assert asked.stdout == (
            f"Session {session} runs in another process, which has been asked to stop it. "
            "It does so within 8 s.\n"
        )
        chinese = await moot("sessions", "cancel", session, **CHINESE)
        assert (chinese.returncode, "8" in chinese.stdout) == (0, True)
        assert await status_of(moot, session) == "running"


async def test_a_session_that_nobody_runs_is_cancelled(moot, interrupted):
    first, second = await interrupted("900001.DEMO", "900002.DEMO")
    seen = await moot("sessions", "cancel", first)
    assert (seen.returncode, seen.stdout) == (0, f"Session {first} was cancelled.\n")
    assert await status_of(moot, first) == "cancelled"
    assert (await moot("sessions", "cancel", first)).returncode == 0, "twice is fine"
    chinese = await moot("sessions", "cancel", second, **CHINESE)
    assert (chinese.returncode, chinese.stdout) == (0, f"会话 {second} 已取消。\n")
    resumed = await moot("sessions", "resume", first)
    assert (resumed.returncode, "has ended (cancelled)" in resumed.stderr) == (1, True)


async def test_what_cannot_be_cancelled_is_said(moot):
    done = await researched(moot, "--experts", MACRO)
    ended = await moot("sessions", "cancel", done)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"Session {done} has ended (completed)." in ended.stderr
    assert "已" in (await moot("sessions", "cancel", done, **CHINESE)).stderr
    unknown = await moot("sessions", "cancel", NOBODY)
    assert (unknown.returncode, f"There is no session {NOBODY}" in unknown.stderr) == (1, True)
    assert (await moot("sessions", "cancel", "not-an-id")).returncode == 2
