"""Every route there is, from the OpenAPI document: closed without a key, and blind to other workspaces."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from fastapi import FastAPI
from pydantic import SecretStr

from moot.api.routes import register_routes
from moot.modules.access.domain import INCLUDES, SCOPES
from moot.modules.jobs.application.destinations import DestinationBody
from tests.access.desk import HERE, calling, new_key, open_app
from tests.fakes.clock import PATIENCE, TickingClock

OPEN = {"/", "/healthz", "/readyz"}
NOBODYS_IDS = {"symbol", "expert"}
NOBODYS_LISTS = {
    "/api/v1/market-data/symbols",
    "/api/v1/market-data/tables",
    "/api/v1/llm-platform/presets",
    "/api/v1/coordinator/intake/metrics",
}
"""Facts about the market, about vendors, and about the process belong to no workspace."""
TRIED_ELSEWHERE = {"/api/v1/coordinator/intake/metrics/locale-sample"}
"""Of one workspace, and empty without a model: tests/intake/test_metrics.py."""

SESSIONS = "/api/v1/coordinator/research/sessions"
CONFIGS = "/api/v1/llm-platform/configs"
USAGE = "/api/v1/llm-platform/usage"
WATCHLISTS = "/api/v1/watchlists"
SCHEDULES = "/api/v1/schedules"
DESTINATIONS = "/api/v1/notifications/destinations"
INTAKE = "/api/v1/coordinator/intake"
GOVERNANCE, UNVERSIONED = "/api/v1/coordinator", "/api/coordinator"
OUR_RULE = {
    "id": "ours",
    "name": "Ours",
    "category": "tool",
    "condition": "payload.tool == 'ours'",
    "action": "reject",
    "requires_human": True,
    "decision_types": ["tool_call"],
    "examples": [
        {"violates": True, "payload": {"tool": "ours"}},
        {"violates": False, "payload": {"tool": "theirs"}},
    ],
}


NOBODY_TOLD = DestinationBody(name="ours", kind="webhook", url=SecretStr("http://127.0.0.1:1/"))


def our_rules(body: Any) -> int:
    return sum(rule["id"] == "ours" for rule in body["rules"])


def any_decision(body: Any) -> int:
    return bool(body["decision_statistics"]["total"])


LISTS: dict[str, Callable[[Any], int]] = {
    SESSIONS: lambda body: body["total"],
    CONFIGS: len,
    USAGE: lambda body: body["workspace"] == "default",
    f"{GOVERNANCE}/status": any_decision,
    f"{UNVERSIONED}/status": any_decision,
    f"{GOVERNANCE}/rules": our_rules,
    f"{UNVERSIONED}/rules": our_rules,
    f"{GOVERNANCE}/rulesets": lambda body: sum(ruleset["number"] > 0 for ruleset in body),
    f"{GOVERNANCE}/decisions": lambda body: sum(item["status"] == "escalated" for item in body["items"]),
    f"{GOVERNANCE}/escalations": lambda body: body["total"],
    INTAKE: len,
    WATCHLISTS: lambda body: len(body["items"]),
    SCHEDULES: lambda body: len(body["items"]),
    DESTINATIONS: len,
}
"""How to count what a list shows."""

BODIES: dict[str, dict[str, Any]] = {
    f"PATCH {CONFIGS}/{{alias}}": {"description": "theirs now"},
    f"PUT {GOVERNANCE}/rules/{{rule_id}}": {**OUR_RULE, "name": "Theirs now"},
    f"POST {INTAKE}/{{thread}}/feedback": {"decision": "accepted"},
    "POST /api/v1/coordinator/research/sessions/{session_id}/contest": {
        "moves": [{"move": "strike", "claim": "macro.pmi"}]
    },
    f"POST {GOVERNANCE}/escalations/{{escalation_id}}/approve": {"reason": "theirs"},
    f"POST {GOVERNANCE}/escalations/{{escalation_id}}/reject": {"reason": "theirs"},
    f"POST {GOVERNANCE}/escalations/{{escalation_id}}/edit": {"reason": "theirs", "payload": {}},
}
QUERIES = {f"POST {GOVERNANCE}/rulesets/{{number}}/simulate": {"since": "2026-01-01"}}
"""What a route needs before it looks for the id."""
NO_SESSION = "00000000-0000-4000-8000-000000000000"

WITH_THE_OTHERS = pytest.mark.asyncio(loop_scope="module")
"""All of them knock at one desk: whoever gets in anywhere changes what the others find."""
IN_TIME = PATIENCE
"""Seconds: a stream that should have been refused would never end."""


class Route(NamedTuple):
    method: str
    path: str

    @property
    def ids(self) -> set[str]:
        return set(re.findall(r"{(\w+)}", self.path))

    def at(self, **ids: str) -> str:
        return re.sub(r"{(\w+)}", lambda found: ids.get(found[1], "900001.DEMO"), self.path)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def routes_of(app: FastAPI) -> Iterator[Route]:
    for path, methods in app.openapi()["paths"].items():
        yield from (Route(method.upper(), path) for method in methods)


BARE = FastAPI()
register_routes(BARE)
DOCUMENT = BARE.openapi()
ROUTES = sorted(routes_of(BARE))
GUARDED = [route for route in ROUTES if route.path not in OPEN]
CHANGING = [route for route in GUARDED if route.method != "GET"]
OF_SOMEBODY = [route for route in GUARDED if route.ids - NOBODYS_IDS]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FastAPI]:
    clock = TickingClock(datetime(2026, 6, 30, 10, 0, tzinfo=UTC))
    async with open_app(tmp_path_factory.mktemp("home"), clock) as app:
        yield app


def test_there_are_routes_to_try():
    assert (len(GUARDED) >= 19, len(CHANGING) >= 6, len(OF_SOMEBODY) >= 7) == (True, True, True)


def test_every_list_says_whose_it_is():
    lists = {route.path for route in GUARDED if route.method == "GET" and not route.ids}
    assert lists == set(LISTS) | NOBODYS_LISTS | TRIED_ELSEWHERE


def test_the_application_serves_no_other_route(app):
    assert sorted(routes_of(app)) == ROUTES


@WITH_THE_OTHERS
@pytest.mark.parametrize("route", GUARDED, ids=str)
async def test_without_a_key_nobody_from_elsewhere_gets_in(app, route):
    somebody_new = f"203.0.113.{GUARDED.index(route)}"  # whoever is refused too often is told to wait
    async with calling(app, address=somebody_new) as client:
        answer = await client.request(route.method, route.at())
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")


@WITH_THE_OTHERS
@pytest.mark.parametrize("route", CHANGING, ids=str)
async def test_whoever_may_only_read_changes_nothing(app, route):
    async with calling(app, await new_key(app, "read")) as client:
        answer = await client.request(route.method, route.at())
    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")


def operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return found


@WITH_THE_OTHERS
@pytest.mark.parametrize("route", GUARDED, ids=str)
async def test_the_document_says_which_key_opens_a_route_and_no_other_does(app, route):
    bearer, header = operation(route)["security"]
    assert (
        bearer.keys() | header.keys() == DOCUMENT["components"]["securitySchemes"].keys() == {"bearer", "key"}
    )
    (needed,) = bearer["bearer"]
    assert header["key"] == [needed]
    for scope in SCOPES:
        async with calling(app, await new_key(app, scope)) as client, asyncio.timeout(IN_TIME):
            answer = await client.request(route.method, route.at(session_id=NO_SESSION))
        assert answer.status_code != 401
        assert (answer.status_code == 403) == (needed not in INCLUDES[scope]), (scope, answer.text)


@pytest.mark.parametrize("route", GUARDED, ids=str)
def test_the_document_says_how_a_route_is_refused(route):
    responses = operation(route)["responses"]
    for status in ("401", "403", "429"):
        schema = responses[status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorBody"}


def test_what_is_open_asks_for_no_key():
    assert {route.path for route in ROUTES if "security" not in operation(route)} == OPEN


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ours(app: FastAPI) -> dict[str, str]:
    """Ids of what the default workspace has: a session, a model, a rule and what it brought about; made here."""
    question = {"symbol": "900001.DEMO", "experts": ["macro_intelligence"], "skip_debate": True}
    model = {"alias": "house", "base_url": "http://127.0.0.1:1/v1", "model_name": "house-1"}
    async with calling(app, address=HERE) as client:
        done = (await client.post("/api/v1/coordinator/research", json=question)).json()
        await client.post(CONFIGS, json=model)
        await client.post(WATCHLISTS, json={"symbols": ["900001.DEMO"]})
        await client.post(SCHEDULES, json={"name": "nightly", "request": {"universe": ["900001.DEMO"]}})
        await app.state.jobs.destinations().add(NOBODY_TOLD)
        ruleset = (await client.post(f"{GOVERNANCE}/rules", json=OUR_RULE)).json()["ruleset"]
        decision = {"decision_type": "tool_call", "payload": {"tool": "ours", "args": {}}}
        asked = (await client.post(f"{GOVERNANCE}/decisions", json=decision)).json()
        talk = (await client.post(INTAKE, json={"question": "hello"})).json()
    session = {"session_id": done["session_id"], "workflow_id": done["session_id"], "alias": "house"}
    session |= {"thread": talk["id"], "name": "nightly"}
    return session | {"rule_id": "ours", "number": str(ruleset), "escalation_id": asked["escalation_id"]}


@WITH_THE_OTHERS
@pytest.mark.parametrize("route", OF_SOMEBODY, ids=str)
async def test_what_another_workspace_has_does_not_exist(app, ours, route):
    assert route.ids <= ours.keys(), "make one of these above"
    theirs = calling(app, await new_key(app, "admin", workspace="theirs"))
    async with theirs as client, asyncio.timeout(IN_TIME):
        answer = await client.request(
            route.method, route.at(**ours), json=BODIES.get(str(route)), params=QUERIES.get(str(route))
        )
    assert (answer.status_code, answer.json()["success"]) == (404, False)
    async with calling(app, address=HERE) as client:
        assert (await client.get(f"{CONFIGS}/house")).json()["description"] == ""
        assert (await client.get(f"{GOVERNANCE}/rules/ours")).json()["name"] == "Ours"
        assert (await client.get(f"{GOVERNANCE}/escalations")).json()["total"] == 1


@WITH_THE_OTHERS
@pytest.mark.parametrize("path", LISTS)
async def test_lists_show_what_is_of_the_workspace_alone(app, ours, path):
    async with calling(app, await new_key(app, "read")) as client:
        assert LISTS[path]((await client.get(path)).json()) == 1
    async with calling(app, await new_key(app, "read", workspace="theirs")) as client:
        assert LISTS[path]((await client.get(path)).json()) == 0
