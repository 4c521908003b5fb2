"""What a session leaves behind, as it is read back over HTTP: on both databases, with a model and a web to call."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from moot.desk import Moot
from moot.main import create_app
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_architecture import COORDINATOR, imports
from tests.fakes.careful_model import careful
from tests.fakes.clock import TickingClock
from tests.fakes.llm_server import Status
from tests.fakes.search_server import LocalWeb, Reply, local_web

RESEARCH = "/api/v1/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
SYMBOL = "900001.DEMO"
TECHNICAL, MACRO = "technical_analyst", "macro_intelligence"
THIRD_DAY = "2018-01-04"
"""On the third day of the market the technical analyst has too few bars to go by, now and on every retry."""
PAGES = json.dumps({"query": "q", "results": [{"title": "一页", "url": "https://news.example/a"}]})
TEXTS_OF_MODEL_CALLS = ("prompt_text", "completion_text")


@pytest.fixture
async def web() -> AsyncIterator[LocalWeb]:
    async with local_web() as web:
        web.replies["/search"] = Reply(PAGES, headers={"Content-Type": "application/json"})
        yield web


@pytest.fixture
def settings(home, database, llm_server, web) -> Settings:
    llm_server.default = careful
    return Settings(
        home=home,
        log_level="error",
        database_url=database.safe_url,
        llm_base_url=llm_server.url,
        llm_model="careful-1",
        searxng_url=web.url,
    )


@asynccontextmanager
async def serving(settings: Settings, clock: Clock) -> AsyncIterator[FastAPI]:
    app = create_app(Moot(settings, clock=TickingClock(clock.now())))
    async with app.router.lifespan_context(app):
        yield app


@asynccontextmanager
async def calling(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture
async def app(settings, clock) -> AsyncIterator[FastAPI]:
    """Judges by rules, and searches nothing."""
    async with serving(settings.model_copy(update={"analyst": "rubric"}), clock) as app:
        yield app


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(app) as client:
        yield client


@pytest.fixture
async def with_model(settings, clock) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(settings, clock) as app, calling(app) as client:
        yield client


async def ask(client: httpx.AsyncClient, *experts: str, **more: Any) -> httpx.Response:
    return await client.post(RESEARCH, json={"symbol": SYMBOL, "experts": experts, **more})


async def read(client: httpx.AsyncClient, path: str, **conditions: Any) -> Any:
    answer = await client.get(f"{SESSIONS}{path}", params=conditions)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.accepts("A2-30", "A2-41", "W20")
async def test_the_model_calls_of_a_session_are_listed_with_their_full_texts(with_model, llm_server):
    session = (await ask(with_model, MACRO, skip_debate=True)).json()["session_id"]
    (call,) = await read(with_model, f"/{session}/llm-calls")
    (request,) = llm_server.requests
    assert call["prompt_text"] == request.body["messages"][-1]["content"]
    assert json.loads(call["completion_text"])["macro_environment"]
    assert (call["caller_agent"], call["model_name"], call["status"]) == (MACRO, "careful-1", "success")
    assert (call["total_tokens"], call["session_id"]) == (150, session)
    assert call["latency_ms"] >= 0
    (light,) = await read(with_model, f"/{session}/llm-calls", include_text=False)
    assert {name for name in call if call[name] != light[name]} >= {*TEXTS_OF_MODEL_CALLS}
    assert [light[name] for name in TEXTS_OF_MODEL_CALLS] == [None, None]


@pytest.mark.accepts("A2-31", "A2-04", "W20")
async def test_the_searches_of_a_session_are_listed_with_what_was_asked_and_answered(with_model, web):
    session = (await ask(with_model, MACRO, skip_debate=True)).json()["session_id"]
    calls = await read(with_model, f"/{session}/api-calls")
    assert [(c["service_name"], c["operation"], c["status"]) for c in calls] == [
        ("searxng", "web-search", "success")
    ] * 4
    assert {c["request_params"]["query"] for c in calls} == {asked.query["q"] for asked in web.asked}
    assert [json.loads(c["response_data"]) for c in calls] == [json.loads(PAGES)] * 4
    assert {(c["session_id"], c["latency_ms"] >= 0, c["status_code"]) for c in calls} == {
        (session, True, 200)
    }
    light = await read(with_model, f"/{session}/api-calls", include_text=False)
    assert [c["response_data"] for c in light] == [None] * 4


@pytest.mark.accepts("A2-05", "A2-12", "W19")
async def test_calls_that_fail_are_timed_and_listed_with_the_session_they_brought_down(
    with_model, llm_server, web
):
    llm_server.default = Status(401, "bad key")
    web.replies["/search"] = Reply("no", status=503)
    answer = await ask(with_model, MACRO)
    assert (answer.status_code, answer.json()["code"]) == (500, "ALL_EXPERTS_FAILED")
    details = answer.json()["details"]
    assert (details["overall_status"], details["expert_results"][MACRO]["status"]) == ("failed", "failed")
    calls = await read(with_model, f"/{details['session_id']}/llm-calls")
    searches = await read(with_model, f"/{details['session_id']}/api-calls")
    assert {call["status"] for call in calls + searches} == {"failed"}
    assert all(call["latency_ms"] >= 0 and call["error_message"] for call in calls + searches)
    assert {search["status_code"] for search in searches} == {503}
    nodes = (await read(with_model, f"/{details['session_id']}"))["nodes"]
    assert {n["node_type"]: n["status"] for n in nodes} == {
        MACRO: "failed",
        "debate": "skipped",
        "judge": "skipped",
    }


@pytest.mark.accepts("A2-06")
async def test_calls_outside_of_a_session_are_on_the_record_without_one(with_model, database: Database):
    base = "/api/v1/llm-platform"
    assert (await with_model.post(f"{base}/chat/generate", json={"prompt": "hello"})).status_code == 200
    assert (await with_model.post(f"{base}/web-search", json={"query": "白酒"})).status_code == 200
    for table in ("llm_call_logs", "external_api_call_logs"):
        async with database.session() as db:
            rows = (await db.execute(text(f"SELECT session_id, status FROM {table}"))).all()
        assert [tuple(row) for row in rows] == [(None, "success")], table


@pytest.mark.accepts("A2-28", "A2-29", "A2-40", "W20")
async def test_every_session_is_listed_with_a_total_and_shown_with_its_nodes(client):
    completed = (await ask(client, TECHNICAL, MACRO)).json()
    partial = (await ask(client, TECHNICAL, MACRO, as_of=THIRD_DAY)).json()
    failed = (await ask(client, TECHNICAL, as_of=THIRD_DAY)).json()["details"]
    newest_first = [run["session_id"] for run in (failed, partial, completed)]

    pages = [await read(client, "", page=page, page_size=2) for page in (1, 2, 3)]
    assert [[item["id"] for item in page["items"]] for page in pages] == [
        newest_first[:2],
        newest_first[2:],
        [],
    ]
    assert {page["total"] for page in pages} == {3}
    for status, session in zip(("failed", "partial", "completed"), newest_first, strict=True):
        page = await read(client, "", status=status, symbol=SYMBOL, start_date="2026-06-30")
        assert ([item["id"] for item in page["items"]], page["total"]) == ([session], 1)
    assert (await read(client, "", end_date="2026-06-29"))["total"] == 0

    detail = await read(client, f"/{newest_first[1]}")
    assert {n["node_type"]: n["status"] for n in detail["nodes"]} == {
        TECHNICAL: "failed",
        MACRO: "success",
        "debate": "success",
        "judge": "failed",  # one voice of two is none
    }
    assert all(n["started_at"] <= n["completed_at"] and n["duration_ms"] >= 0 for n in detail["nodes"])


@pytest.mark.accepts("A2-27")
async def test_a_session_tells_who_started_it(app, client):
    by_api = (await ask(client, MACRO)).json()["session_id"]
    service = app.state.coordinator.research_orchestration_service()
    asked = {"symbol": SYMBOL, "experts": [MACRO]}
    by_scheduler = (await service.execute(asked, trigger_source="scheduler")).session_id
    for source, session in {"api": by_api, "scheduler": by_scheduler}.items():
        (item,) = (await read(client, "", trigger_source=source))["items"]
        assert (item["id"], item["trigger_source"]) == (session, source)


@pytest.mark.accepts("A1N-09", "W2")
async def test_every_retry_counts_one_more_and_keeps_what_the_one_before_had_reused(client):
    runs = [(await ask(client, TECHNICAL, MACRO, as_of=THIRD_DAY)).json()]
    for _ in range(2):
        runs.append((await client.post(f"{RESEARCH}/{runs[-1]['session_id']}/retry")).json())
    first, second, third = (run["session_id"] for run in runs)
    assert [run["retry_count"] for run in runs] == [0, 1, 2]
    assert [run["expert_results"][MACRO] for run in runs] == [runs[0]["expert_results"][MACRO]] * 3
    assert runs[2]["expert_results"][MACRO]["status"] == "success"

    details = [await read(client, f"/{session}") for session in (first, second, third)]
    assert [detail["parent_session_id"] for detail in details] == [None, first, second]
    assert [detail["retries"] for detail in details] == [[second], [third], []]
    reused = [[n["node_type"] for n in detail["nodes"] if n["reused"]] for detail in details]
    assert reused == [[], [MACRO], [MACRO]]


@pytest.mark.accepts("A2-32", "W20")
def test_history_knows_other_contexts_by_their_query_services_alone():
    platform = "moot.modules.llm_platform.application."
    adapter = COORDINATOR / "infrastructure" / "records.py"
    known = {name for name in imports(adapter) if name.startswith(platform)}
    assert {name.rpartition(".")[2] for name in known} == {
        "ExternalAPICallLogQueryService",
        "LLMCallLogQueryService",
    }
    others = {name for name in imports(COORDINATOR) if name.startswith("moot.modules.")}
    foreign = {name.split(".", 4)[3] for name in others if not name.startswith("moot.modules.coordinator.")}
    assert foreign == {"application", "container"}, "no repository of another context"
    layers = (COORDINATOR / layer for layer in ("presentation", "application", "domain"))
    assert not {
        name
        for name in imports(*layers)
        if name.startswith("moot.modules.") and not name.startswith("moot.modules.coordinator.")
    }
