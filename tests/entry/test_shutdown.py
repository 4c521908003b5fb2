"""The end of a server, asked for or not: what runs comes to its end, here or in the next one, and is paid once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest

from moot.desk import Moot
from moot.modules.coordinator.application.session_history import SessionDetail
from moot.shared.infrastructure.settings import Settings
from tests.entry.forked import Forge, Server, server
from tests.entry.serving import IN_TIME, MACRO, ON_SQLITE, RESEARCH, SESSIONS, frames, question, until
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import Fixed, Hang, LLMServer

ASKED = question(as_of="2026-06-30")
KEY = {"Idempotency-Key": "order-66"}
AT_ONCE = {"MOOT_SHUTDOWN_GRACE": "0", "MOOT_LEASE_SECONDS": "1"}
"""When its server is gone, a worker has no time to end what it runs, and the next one need not wait long for it."""


@pytest.fixture
def env(llm_server, database) -> dict[str, str]:
    return {
        "MOOT_DATABASE_URL": database.safe_url,
        "MOOT_LLM_BASE_URL": llm_server.url,
        "MOOT_LLM_MODEL": "careful-1",
        "MOOT_LLM_CONCURRENCY": "16",
    }


@pytest.fixture
def stored(home, database) -> Callable[[str], Any]:
    async def stored(session_id: str) -> SessionDetail:
        """The session as the record leaves it, without a server."""
        async with Moot(Settings(home=home, database_url=database.safe_url, log_level="error")) as desk:
            return await desk.session(UUID(session_id))

    return stored


def held(server: LLMServer) -> asyncio.Event:
    """The model keeps its answers to itself until this is set."""
    go, answer = asyncio.Event(), server._answer

    async def wait(*request: Any) -> Any:
        await go.wait()
        return await answer(*request)

    server._answer, server.default = wait, careful  # type: ignore[method-assign]
    return go


class Stuck(NamedTuple):
    """A session in the middle: its model has no answer to the question with that field; the rest is on record."""

    field: str
    asked: dict[str, Any]
    nodes: int

    def reply(self, body: dict[str, Any]) -> Fixed:
        return Hang() if self.concerns(body) else careful(body)

    def concerns(self, body: dict[str, Any]) -> bool:
        return self.field in str(body["response_format"])


IN_AN_EXPERT = Stuck("valuation_verdict", ASKED, nodes=1)
IN_THE_DEBATE = Stuck("conflict_resolution", {**ASKED, "skip_debate": False}, nodes=2)


async def half_done(
    serving: Server, model: LLMServer, stuck: Stuck = IN_AN_EXPERT, **headers: str
) -> dict[str, Any]:
    model.default = stuck.reply
    session = await serving.start(stuck.asked, **headers)
    await until(lambda: any(stuck.concerns(seen.body) for seen in model.requests))
    async with asyncio.timeout(IN_TIME):
        while len((found := await serving.detail(session))["nodes"]) != stuck.nodes:
            await asyncio.sleep(0.02)
    return found


async def refuses_work(serving: Server) -> None:
    async with asyncio.timeout(IN_TIME):
        while (ready := await serving.http.get("/readyz")).status_code == 200:
            await asyncio.sleep(0.02)
    assert (ready.status_code, ready.json()["checks"]["desk"]["ok"]) == (503, False)
    for mode in ("sync", "async"):
        answer = await serving.http.post(RESEARCH, json=question("900002.DEMO", mode=mode))
        assert (answer.status_code, answer.json()["code"]) == (503, "DESK_CLOSING")
        assert int(answer.headers["retry-after"]) >= 1


@ON_SQLITE
async def test_what_runs_comes_to_its_end_before_the_server_goes(forge, home, env, llm_server, stored):
    go = held(llm_server)
    async with server(forge, home, **env) as serving:
        waiting = asyncio.create_task(serving.http.post(RESEARCH, json=ASKED))
        unattended = await serving.start(ASKED)
        listening = asyncio.create_task(serving.story(unattended))
        await until(lambda: llm_server.in_flight == 4)
        serving.signal(SIGTERM)
        await refuses_work(serving)
        assert [frame.event for frame in frames(await listening)].count("done") == 0, "listeners are let go"
        assert (await serving.detail(unattended))["status"] == "running"
        go.set()
        answer = await waiting
        assert (answer.status_code, answer.json()["overall_status"]) == (200, "completed")
        assert await serving.exit_code() == 0
    assert (await stored(unattended)).status == "completed"
    assert len(llm_server.requests) == 4


@ON_SQLITE
async def test_what_takes_longer_than_the_grace_period_goes_on_in_the_next_server(
    forge, home, env, llm_server, stored
):
    async with server(forge, home, MOOT_SHUTDOWN_GRACE="0.3", **env) as serving:
        session = await half_done(serving, llm_server)
        waiting = asyncio.create_task(serving.http.post(RESEARCH, json=question("900002.DEMO")))
        await until(lambda: llm_server.in_flight == 2)
        serving.signal(SIGTERM)
        answer = await waiting
        assert (answer.status_code, answer.json()["code"]) == (503, "SESSION_INTERRUPTED")
        assert await serving.exit_code() == 0
    left = await stored(session["id"])
    assert (left.status, [node.node_type for node in left.nodes]) == ("running", [MACRO])
    await until(lambda: llm_server.in_flight == 0)
    await goes_on(forge, home, env, llm_server, session)


async def goes_on(
    forge: Forge,
    home: Path,
    env: dict[str, str],
    model: LLMServer,
    left: dict[str, Any],
    stuck: Stuck = IN_AN_EXPERT,
) -> None:
    """The next server resumes it by itself; only what was not on record is run, and asked for, again."""
    asked, model.default = len(model.requests), careful
    async with server(forge, home, **env) as serving:
        told = frames(await serving.story(left["id"]))
        assert told[-1].data["status"] == "completed"
        assert [frame.id for frame in told] == list(range(1, len(told) + 1))
        assert [f.data["resumed"] for f in told if f.event == "session"][-1] is True
        again = [seen for seen in model.requests[asked:] if "900001.DEMO" in seen.prompt]
        assert [stuck.concerns(seen.body) for seen in again][:1] == [True]
        assert len(again) == (1 if stuck is IN_AN_EXPERT else 2), "and the verdict, where there is one"
        nodes = (await serving.detail(left["id"]))["nodes"]
        assert [node for node in nodes if node in left["nodes"]] == left["nodes"]
        assert len({node["node_type"] for node in nodes}) == len(nodes)
        resumed = await report(serving.http, left["id"])
        undisturbed = (await serving.http.post(RESEARCH, json=stuck.asked)).json()
        for verdict in (undisturbed["verdict"], resumed["verdict"]):
            (verdict or {}).pop("since", None)  # which the later of them alone has
        assert {name for name in undisturbed if undisturbed[name] != resumed[name]} == {"session_id", "usage"}
        assert resumed["usage"]["requests"] == undisturbed["usage"]["requests"] + 1, "one was broken off"
        serving.signal(SIGTERM)
        assert await serving.exit_code() == 0


async def report(http: httpx.AsyncClient, session: str) -> dict[str, Any]:
    answer = await http.get(f"{SESSIONS}/{session}/report", headers={"Accept": "application/json"})
    body: dict[str, Any] = answer.json()
    return body


async def test_a_server_that_is_killed_has_its_sessions_resumed_by_the_next(forge, home, env, llm_server):
    async with server(forge, home, **env, **AT_ONCE) as serving:
        left = await half_done(serving, llm_server, IN_THE_DEBATE)
        serving.signal(SIGKILL)
        assert await serving.exit_code() == -SIGKILL
    await goes_on(forge, home, env, llm_server, left, IN_THE_DEBATE)


async def test_a_key_finds_its_session_after_the_server_was_killed(forge, home, env, llm_server):
    async with server(forge, home, **env, **AT_ONCE) as serving:
        session = (await half_done(serving, llm_server, **KEY))["id"]
        serving.signal(SIGKILL)
        assert await serving.exit_code() == -SIGKILL
    llm_server.default = careful
    async with server(forge, home, **env) as serving:
        answers = await asyncio.gather(
            *(serving.http.post(RESEARCH, json=ASKED, headers=KEY) for _ in range(5))
        )
        assert {(a.status_code, a.json()["session_id"]) for a in answers} == {(200, session)}
        assert len(llm_server.requests) == 3
        assert await serving.count() == 1
        serving.signal(SIGTERM)
        assert await serving.exit_code() == 0


@ON_SQLITE
async def test_a_second_signal_is_taken_at_its_word(forge, home, env, llm_server, stored):
    async with server(forge, home, MOOT_SHUTDOWN_GRACE="3600", **env) as serving:
        session = await half_done(serving, llm_server)
        waiting = asyncio.create_task(serving.http.post(RESEARCH, json=question("900002.DEMO")))
        await until(lambda: llm_server.in_flight == 2)
        serving.signal(SIGTERM)
        await refuses_work(serving)
        serving.signal(SIGTERM)
        answer = await waiting
        assert (answer.status_code, answer.json()["code"]) == (503, "SESSION_INTERRUPTED")
        assert await serving.exit_code() == 0
    assert (await stored(session["id"])).status == "running"


@ON_SQLITE
async def test_a_client_that_detached_is_told_that_its_session_was_interrupted(
    forge, home, env, llm_server, stored
):
    llm_server.default = Hang()
    async with server(forge, home, MOOT_SHUTDOWN_GRACE="0.3", **env) as serving:
        waiting = asyncio.create_task(serving.http.post(RESEARCH, json={**ASKED, "mode": "detached"}))
        await until(lambda: llm_server.in_flight == 2)
        serving.signal(SIGTERM)
        answer = await waiting
        assert (answer.status_code, answer.json()["code"]) == (503, "SESSION_INTERRUPTED")
        assert await serving.exit_code() == 0
    assert (await stored(answer.json()["details"]["session_id"])).status == "running"
    assert len(llm_server.requests) == 2


@ON_SQLITE
async def test_a_client_that_still_waits_for_its_turn_is_turned_away(forge, home, env, llm_server):
    go = held(llm_server)
    async with server(forge, home, MOOT_MAX_SESSIONS="1", **env) as serving:
        first = asyncio.create_task(serving.http.post(RESEARCH, json=ASKED))
        await until(lambda: llm_server.in_flight == 2)
        second = asyncio.create_task(serving.http.post(RESEARCH, json=question("900002.DEMO")))
        for _ in range(
            20
        ):  # it is not stored yet, so there is nothing to look for; but it was sent before these
            await asyncio.sleep(0.01)
            assert (await serving.http.get("/healthz")).status_code == 200
        serving.signal(SIGTERM)
        await refuses_work(serving)
        go.set()
        assert (await first).status_code == 200
        answer = await second
        assert (answer.status_code, answer.json()["code"]) == (503, "DESK_CLOSING")
        assert await serving.exit_code() == 0
    assert len(llm_server.requests) == 2


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
async def test_an_idle_server_goes_at_once(forge, home, number):
    async with server(forge, home) as serving:
        assert (await serving.http.post(RESEARCH, json=question())).status_code == 200
        serving.signal(number)
        assert await serving.exit_code() == 0
