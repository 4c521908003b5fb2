"""Looking back over HTTP: filters, what is refused, and the report of a stored session in its three forms."""

from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest

from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.application.dtos.research_dtos import ExpertResultItem, ResearchResult
from moot.modules.coordinator.application.report import render_report
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.presentation.rest.session_routes import choose_type
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_session_repository import a_session
from tests.fakes.clock import TickingClock
from tests.fakes.coordinator import MACRO, TECHNICAL, FakeDebate, FakeJudge, FakeResearch

RESEARCH = "/api/v1/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
ALL = [expert.value for expert in ExpertType]
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"


@pytest.fixture
async def app(home, clock):
    app = create_app(Moot(Settings(home=home, log_level="error"), clock=TickingClock(clock.now())))
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers={"accept-language": "en"}
    ) as client:
        yield client


async def ask(client, **changes) -> httpx.Response:
    body = {"symbol": "900001.DEMO", "experts": ALL, "locale": "en-US", **changes}
    return await client.post(RESEARCH, json=body)


def keep_but_fail(app, error: Exception, failing=ExpertType) -> None:
    """Replace the experts by those that fail; the record stays the desk's own."""
    repository = app.state.coordinator.session_history()._repository
    engine = LangGraphResearchOrchestrator(
        FakeResearch(dict.fromkeys(failing, error)),
        FakeDebate(),
        FakeJudge(),
        layers=NodeLayers(repository=repository),
    )
    app.state.coordinator.research_orchestration_service = lambda: ResearchOrchestrationService(
        engine, repository=repository
    )


async def found(client, **conditions) -> list[str]:
    page = (await client.get(SESSIONS, params=conditions)).json()
    assert page["total"] >= len(page["items"])
    return [item["id"] for item in page["items"]]


@pytest.mark.accepts("A2-28")
async def test_sessions_are_found_by_what_they_were_and_when(client):
    judged = (await ask(client)).json()
    skipped = (await ask(client, symbol="900002.DEMO", experts=[MACRO], skip_debate=True)).json()
    ids = [skipped["session_id"], judged["session_id"]]
    assert await found(client) == ids
    assert await found(client, status="completed", trigger_source="api") == ids
    assert await found(client, verdict_action=judged["verdict"]["action"]) == ids[1:]
    assert await found(client, symbol="900002.demo") == ids[:1]
    assert await found(client, status="partial") == []
    assert await found(client, trigger_source="cli") == []
    assert await found(client, start_date="2026-06-30", end_date="2026-06-30") == ids
    assert await found(client, end_date="2026-06-29") == []
    assert await found(client, created_after="2026-06-30T18:00:00+08:00") == ids
    assert await found(client, created_before="2026-06-30T10:00:00Z") == []
    assert await found(client, page=2, page_size=1) == ids[1:]
    assert await found(client, skip=1, limit=5) == ids[1:]


@pytest.mark.accepts("A2-29")
async def test_a_session_is_shown_with_its_verdict_and_every_node(client):
    answer = (await ask(client)).json()
    detail = (await client.get(f"{SESSIONS}/{answer['session_id']}")).json()
    assert detail["verdict_action"] == answer["verdict"]["action"]
    assert (detail["parent_session_id"], detail["retries"]) == (None, [])
    assert {node["node_type"] for node in detail["nodes"]} == {*ALL, "debate", "judge"}
    assert {node["status"] for node in detail["nodes"]} == {"success"}


async def test_a_session_is_found_by_the_beginning_of_its_id_and_as_the_last(client):
    first, last = [(await ask(client, experts=[MACRO])).json()["session_id"] for _ in range(2)]
    same = next((n for n in range(36) if first[n] != last[n]), 36)
    for name, meant in ((first[: same + 1], first), (first.upper(), first), ("last", last)):
        assert (await client.get(f"{SESSIONS}/{name}")).json()["id"] == meant
        assert (await client.get(f"{SESSIONS}/{name}/report")).status_code == 200
        decided = (await client.get(f"{SESSIONS}/{name}/decisions")).json()
        assert {decision["session_id"] for decision in decided} == {meant}
    told = [event async for event in read_events(client, f"{SESSIONS}/last/events")]
    assert told[-1] == "done"
    retried = await client.post(f"{SESSIONS}/{first[: same + 1]}/retry")
    assert (retried.status_code, retried.json()["code"]) == (400, "SESSION_NOT_RETRYABLE")


async def read_events(client, path):
    async with client.stream("GET", path) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                yield line.removeprefix("event: ")


async def test_a_beginning_that_several_ids_share_names_them_and_one_of_none_is_a_404(app, client):
    repository = app.state.coordinator.session_history()._repository
    ids = [UUID(f"7d3c8a52-0000-4000-8000-00000000000{n}") for n in range(2)]
    for session_id in ids:
        await repository.save_session(a_session(id=session_id, workspace_id="default"))
    shared = await client.get(f"{SESSIONS}/7d3c")
    assert (shared.status_code, shared.json()["code"]) == (400, "INVALID_REQUEST")
    assert all(str(session_id) in shared.json()["message"] for session_id in ids)
    missed = await client.get(f"{SESSIONS}/7d3d")
    assert (missed.status_code, missed.json()["code"]) == (404, "SESSION_NOT_FOUND")
    slip = await client.get(f"{SESSIONS}/7d3c8a52-0000-4000-8000-000000000009")
    assert (slip.status_code, slip.json()["code"]) == (404, "SESSION_NOT_FOUND")
    assert str(ids[0]) in slip.json()["message"]


@pytest.mark.accepts("A2-40")
async def test_every_run_is_kept_and_found_however_it_ended(app, client):
    completed = (await ask(client, experts=[MACRO])).json()["session_id"]
    keep_but_fail(app, RuntimeError("search is down"), [TECHNICAL])
    partial = (await ask(client, experts=[MACRO, TECHNICAL])).json()["session_id"]
    keep_but_fail(app, RuntimeError("all is down"))
    refused = await ask(client, experts=[MACRO, TECHNICAL])
    assert refused.status_code == 500
    failed = refused.json()["details"]["session_id"]

    by_status = {status: await found(client, status=status) for status in ("completed", "partial", "failed")}
    assert by_status == {"completed": [completed], "partial": [partial], "failed": [failed]}
    detail = (await client.get(f"{SESSIONS}/{failed}")).json()
    assert (detail["status"], detail["verdict_status"], detail["verdict_action"]) == (
        "failed",
        "failed",
        None,
    )
    errors = {node["node_type"]: node["error_message"] for node in detail["nodes"]}
    assert errors == {MACRO: "all is down", TECHNICAL: "all is down", "debate": None, "judge": None}
    report = (await client.get(f"{SESSIONS}/{failed}/report")).text
    assert "Failed: all is down" in report
    assert "No verdict (failed). No expert succeeded" in report


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            {"status": "done"},
            "status: 'done' is not known. Allowed: queued, running, waiting, completed, partial, failed, cancelled.",
        ),
        (
            {"verdict_action": "buy"},
            "verdict_action: 'buy' is not known. Did you mean BUY? Allowed: BUY, SELL, HOLD.",
        ),
        ({"symbol": "??"}, "symbol: nothing was found for '??'."),
        ({"trigger_source": " "}, "trigger_source: must not be blank."),
        ({"start_date": "soon"}, "start_date: 'soon' is not a date; write YYYY-MM-DD."),
        ({"end_date": "2026-02-30"}, "end_date: '2026-02-30' is not a date; write YYYY-MM-DD."),
        (
            {"end_date": "9999-12-31"},
            "end_date: '9999-12-31' is out of range. Allowed: 1990-01-01 - 9998-12-31.",
        ),
        (
            {"created_after": "2026-06-30T10:00:00"},
            "created_after: '2026-06-30T10:00:00' is not a date; write YYYY-MM-DD, or a time with its zone",
        ),
        (
            {"created_before": "0001-01-01T00:00:00+08:00"},
            "created_before: '0001-01-01T00:00:00+08:00' is too long ago.",
        ),
        ({"page": "0"}, "page: '0' is out of range. Allowed: >= 1."),
        ({"page": "x"}, "page: must be a whole number, not 'x'."),
        ({"page": "9" * 30}, "page: "),
        ({"page_size": "201"}, "page_size: '201' is out of range. Allowed: <= 200."),
        ({"skip": "-1"}, "skip: '-1' is out of range. Allowed: >= 0."),
        ({"skip": "1", "page": "2"}, "skip: give either skip or page, not both."),
        (
            {"state": "failed"},
            "query: has no field named state. Did you mean status? Allowed: symbol, status,",
        ),
    ],
)
async def test_what_cannot_be_looked_for_is_a_400_that_says_why(client, asked, sentence):
    answer = await client.get(SESSIONS, params=asked)
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"].startswith(sentence)
    assert answer.json().keys() == {"success", "code", "message", "details"}


async def test_the_report_is_the_answer_once_more_from_the_record(client):
    answer = (await ask(client)).json()
    path = f"{SESSIONS}/{answer['session_id']}/report"

    as_json = await client.get(path, headers={"accept": "application/json"})
    assert as_json.headers["content-type"] == "application/json"
    assert as_json.json() == answer

    experts = [ExpertResultItem(expert_type=e, **item) for e, item in answer["expert_results"].items()]
    result = ResearchResult.model_validate({**answer, "expert_results": experts})
    markdown = await client.get(path)
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert markdown.headers["content-language"] == "en-US"
    assert markdown.text == render_report(result)
    assert (await client.get(path, params={"style": "brief"})).text == render_report(result, "brief")
    assert (await client.get(path, params={"style": "short"})).status_code in (400, 422)

    page = await client.get(path, headers={"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["vary"] == "Accept"
    assert "<h2>On the record</h2>" in page.text
    assert answer["session_id"] in page.text


async def test_the_report_of_a_chinese_session_is_chinese_to_every_reader(client):
    answer = (await ask(client, experts=[MACRO], locale="zh-CN")).json()
    path = f"{SESSIONS}/{answer['session_id']}/report"
    page = await client.get(path, headers={"accept": "text/html"})
    assert '<html lang="zh-CN">' in page.text
    assert "<h1>研究报告：幻山酒业（900001.DEMO）</h1>" in page.text


async def test_a_report_that_cannot_be_given_says_why(client):
    session = (await ask(client, experts=[MACRO])).json()["session_id"]
    other = await client.get(f"{SESSIONS}/{session}/report", headers={"accept": "application/pdf"})
    assert (other.status_code, other.json()["code"]) == (406, "NOT_ACCEPTABLE")
    assert (
        other.json()["message"]
        == "Accept: a report can be had as text/markdown, text/html, application/json."
    )
    unknown = await client.get(f"{SESSIONS}/{NOBODY}/report")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SESSION_NOT_FOUND")
    no_id = await client.get(f"{SESSIONS}/x/report")
    assert (no_id.status_code, no_id.json()["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        (None, "text/markdown"),
        ("", "text/markdown"),
        ("*/*", "text/markdown"),
        ("text/*", "text/markdown"),
        ("application/*", "application/json"),
        ("TEXT/HTML", "text/html"),
        ("text/html, text/markdown", "text/markdown"),
        ("text/html, */*", "text/html"),
        ("text/html;q=0.5, application/json;q=0.9", "application/json"),
        ("text/html; charset=utf-8; q=0.2, text/*;q=0.1", "text/html"),
        ("*/*, text/markdown;q=0", "text/html"),
        ("application/pdf", None),
        ("text/html;q=0", None),
        ("text/html;q=much", None),
        (";,=", None),
    ],
)
def test_a_client_gets_the_form_it_prefers(accept, given):
    assert choose_type(accept, ["text/markdown", "text/html", "application/json"]) == given
