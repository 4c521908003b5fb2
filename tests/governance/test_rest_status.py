"""How governance stands, over HTTP: at the addresses of its first document and below the version alike."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI

from moot.desk import Moot
from moot.main import create_app
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import HERE, calling, new_key, open_app
from tests.fakes.clock import FixedClock, TickingClock

BOTH = pytest.mark.parametrize("root", ["/api/coordinator", "/api/v1/coordinator"])
V1 = "/api/v1/coordinator"
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"
MACRO, VALUATION = "macro_intelligence", "valuation_modeler"

READ = {"decision_type": "tool_call", "payload": {"tool": "database", "args": {"sql": "SELECT 1"}}}
DROP = {"decision_type": "tool_call", "payload": {"tool": "database", "args": {"sql": "DROP TABLE bars"}}}
NO_SHELL = {
    "name": "No shell",
    "category": "tool",
    "action": "reject",
    "condition": "payload.tool == 'shell'",
    "decision_types": ["tool_call"],
    "examples": [
        {"violates": True, "payload": {"tool": "shell", "args": {}}},
        {"violates": False, "payload": {"tool": "quote", "args": {}}},
    ],
}
BROKEN = {**READ, "context": {"open_breakers": ["tushare"]}}


@pytest.fixture
async def app(home, clock: FixedClock) -> AsyncIterator[FastAPI]:
    async with open_app(home, TickingClock(clock.now())) as app:
        yield app


async def asked(app: FastAPI, path: str, key: str | None = None, **params: str) -> Any:
    async with calling(app, key, address=HERE) as client:
        return await client.get(path, params=params)


async def decided(app: FastAPI, *bodies: dict[str, Any]) -> None:
    async with calling(app, address=HERE) as client:
        for body in bodies:
            await client.post(f"{V1}/decisions", json=body)


async def researched(app: FastAPI) -> str:
    body = {"symbol": "900001.DEMO", "experts": [MACRO, VALUATION], "locale": "en-US", "skip_debate": True}
    async with calling(app, address=HERE) as client:
        return str((await client.post(f"{V1}/research", json=body)).json()["session_id"])


@BOTH
@pytest.mark.accepts("A3-49")
async def test_the_status_counts_decisions_by_how_they_ended(app, root):
    await decided(app, READ, READ, DROP, BROKEN)
    body = (await asked(app, f"{root}/status")).json()
    assert body == {
        "decision_statistics": {"total": 4, "approved": 2, "modified": 0, "rejected": 1, "escalated": 1},
        "active_workflows": 0,
        "circuit_breaker_state": "closed",
        "circuit_breakers": [],
    }
    theirs = await asked(app, f"{root}/status", await new_key(app, "read", workspace="theirs"))
    assert theirs.json()["decision_statistics"]["total"] == 0


@pytest.mark.accepts("A3-49")
async def test_the_status_shows_the_worst_breaker_and_lists_each(app):
    breakers = app.state.governance.agent.breakers
    async with breakers.of("bocha").call(counts=lambda _error: True):
        pass
    for _ in range(5):
        with pytest.raises(ConnectionError):
            async with breakers.of("tushare").call(counts=lambda _error: True):
                raise ConnectionError
    body = (await asked(app, f"{V1}/status")).json()
    assert body["circuit_breaker_state"] == "open"
    assert [(each["name"], each["state"], each["failed"]) for each in body["circuit_breakers"]] == [
        ("bocha", "closed", 0),
        ("tushare", "open", 5),
    ]


async def test_what_is_broken_for_another_workspace_is_neither_shown_nor_held_against_this_one(app):
    model = app.state.governance.agent.breakers.of("model:main", "theirs")
    for _ in range(5):
        with pytest.raises(ConnectionError):
            async with model.call(counts=lambda _error: True):
                raise ConnectionError
    ours = (await asked(app, f"{V1}/status")).json()
    assert (ours["circuit_breaker_state"], ours["circuit_breakers"]) == ("closed", [])
    key = await new_key(app, "read", "research", workspace="theirs")
    theirs = (await asked(app, f"{V1}/status", key)).json()
    assert [(each["name"], each["state"]) for each in theirs["circuit_breakers"]] == [("model:main", "open")]
    async with calling(app, address=HERE) as here, calling(app, key, address=HERE) as there:
        answers = [await client.post(f"{V1}/decisions", json=READ) for client in (here, there)]
    assert [answer.status_code for answer in answers] == [200, 202]


@BOTH
@pytest.mark.accepts("A3-50")
async def test_the_rules_in_force_are_listed_with_the_ruleset_they_are(app, root):
    body = (await asked(app, f"{root}/rules")).json()
    ids = [rule["id"] for rule in body["rules"]]
    assert (body["ruleset"], len(body["digest"])) == (0, 64)
    assert {"risk.position_cap", "tools.sql_guard"} < set(ids)
    cap = body["rules"][ids.index("risk.position_cap")]
    assert (cap["name"], cap["category"], cap["enabled"], cap["version"]) == (
        "Position cap",
        "behavior",
        True,
        1,
    )
    assert cap["condition"] == "payload.position_percent > 0.2"
    guard = body["rules"][ids.index("tools.sql_guard")]
    assert guard["condition"] == "call:sql_guard@1"


@pytest.mark.accepts("A3-50")
async def test_rules_are_found_by_category_source_and_whether_they_are_on(app):
    everything = (await asked(app, f"{V1}/rules")).json()["rules"]
    goal = (await asked(app, f"{V1}/rules", category="goal")).json()["rules"]
    assert {rule["category"] for rule in goal} == {"goal"}
    assert goal == [rule for rule in everything if rule["category"] == "goal"]
    assert (await asked(app, f"{V1}/rules", source="user")).json()["rules"] == []

    async def found(**wanted: str) -> list[str]:
        return [rule["id"] for rule in (await asked(app, f"{V1}/rules", **wanted)).json()["rules"]]

    shipped = [rule["id"] for rule in everything]
    async with calling(app, address=HERE) as client:
        for name, enabled in (("house.on", True), ("house.off", False)):
            added = await client.post(f"{V1}/rules", json={**NO_SHELL, "id": name, "enabled": enabled})
            assert added.status_code == 201, added.text
    assert set(await found()) == {*shipped, "house.on", "house.off"}
    assert set(await found(source="user")) == {"house.on", "house.off"}
    assert await found(source="user", enabled="true") == ["house.on"]
    assert await found(enabled="false") == ["house.off"]
    assert set(await found(source="system", enabled="true")) == set(shipped)


async def test_a_filter_nobody_knows_is_refused(app):
    for wrong in ({"category": "moods"}, {"colour": "red"}):
        answer = await asked(app, f"{V1}/rules", **wrong)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")


@BOTH
@pytest.mark.accepts("A3-51")
async def test_a_workflow_tells_where_each_of_its_nodes_stands(app, root):
    session_id = await researched(app)
    body = (await asked(app, f"{root}/workflow/{session_id}/context")).json()
    assert (body["workflow_id"], body["status"]) == (session_id, "completed")
    assert sorted(body["executed_nodes"]) == [MACRO, VALUATION]
    assert (
        body["running_nodes"] == body["pending_nodes"] == body["failed_nodes"] == body["skipped_nodes"] == []
    )
    assert body["error_log"] == []
    metrics = body["metrics"]
    assert (metrics["total_nodes"], metrics["completed_nodes"], metrics["total_tokens"]) == (2, 2, 0)
    assert metrics["total_time_ms"] >= 0 and metrics["total_cost"] == 0.0


@pytest.mark.accepts("A3-51")
async def test_a_workflow_of_an_earlier_process_is_told_from_its_record(home, clock):
    async with open_app(home, TickingClock(clock.now())) as app:
        session_id = await researched(app)
    async with open_app(home, TickingClock(clock.now())) as app:
        body = (await asked(app, f"{V1}/workflow/{session_id}/context")).json()
    assert (body["status"], sorted(body["executed_nodes"])) == ("completed", [MACRO, VALUATION])


@pytest.mark.accepts("A3-51")
async def test_a_workflow_that_is_not_ours_does_not_exist(app):
    session_id = await researched(app)
    theirs = await new_key(app, "read", workspace="theirs")
    assert (await asked(app, f"{V1}/workflow/{session_id}/context", theirs)).status_code == 404
    unknown = await asked(app, f"{V1}/workflow/{NOBODY}/context")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SESSION_NOT_FOUND")
    assert (await asked(app, f"{V1}/workflow/wf_123/context")).status_code == 400


async def test_a_session_that_never_ran_as_a_workflow_says_so(app):
    session_id = await researched(app)
    monitor = app.state.governance.agent.monitor
    monitor._forget(session_id)
    monitor._journal = None
    answer = await asked(app, f"{V1}/workflow/{session_id}/context")
    assert (answer.status_code, answer.json()["code"]) == (404, "WORKFLOW_NOT_FOUND")
    assert answer.json()["message"] == f"There is no record of the workflow {session_id}."


@pytest.fixture
async def forgetful(home, clock: FixedClock) -> AsyncIterator[FastAPI]:
    app = create_app(Moot(Settings(home=home, persistence=False, log_level="error"), clock=clock))
    async with app.router.lifespan_context(app):
        yield app


async def test_without_persistence_the_shipped_rules_decide_and_nothing_is_counted(forgetful):
    rules = (await asked(forgetful, f"{V1}/rules")).json()
    assert rules["ruleset"] is None and "risk.position_cap" in [rule["id"] for rule in rules["rules"]]
    async with calling(forgetful, address=HERE) as client:
        approved = await client.post(f"{V1}/decisions", json=READ)
        waiting = await client.post(f"{V1}/decisions", json=BROKEN)
    assert (approved.status_code, approved.json()["record_id"]) == (200, None)
    assert (waiting.status_code, waiting.json()["details"]["status"]) == (403, "escalated")
    assert (await asked(forgetful, f"{V1}/status")).json()["decision_statistics"]["total"] == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/decisions"),
        ("GET", "/rulesets"),
        ("GET", "/rulesets/1"),
        ("POST", "/rulesets/rollback"),
        ("DELETE", "/rules/risk.position_cap"),
        ("GET", "/escalations"),
        ("GET", f"/escalations/{NOBODY}"),
        ("GET", f"/workflow/{NOBODY}/context"),
        ("GET", f"/research/sessions/{NOBODY}/decisions"),
    ],
)
async def test_without_persistence_there_is_nothing_to_look_at(forgetful, method, path):
    async with calling(forgetful, address=HERE) as client:
        answer = await client.request(method, V1 + path)
    assert (answer.status_code, answer.json()["code"]) == (503, "PERSISTENCE_OFF")
