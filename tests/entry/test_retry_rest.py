"""Retry over REST and as an SDK, on a real desk over the demo market."""

from uuid import UUID

import httpx
import pytest

from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_session_repository import a_session
from tests.fakes.clock import TickingClock
from tests.fakes.coordinator import MACRO, TECHNICAL, FakeDebate, FakeJudge, FakeResearch

RESEARCH = "/api/v1/coordinator/research"
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"
ALL = [expert.value for expert in ExpertType]
THIRD_DAY = "2018-01-04"
"""On the third day of the market the technical analyst has too few bars to go by, now and on every retry."""


@pytest.fixture
def desk(home, clock):
    return Moot(Settings(home=home, log_level="error"), clock=TickingClock(clock.now()))


@pytest.fixture
async def app(desk):
    app = create_app(desk)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def client(app):
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture
def repository(desk):
    return SqlResearchSessionRepository(desk.trail)


@pytest.fixture
def served_by(app, desk, repository):
    """Replace the experts behind the routes; the journal stays real."""

    def serve(research: FakeResearch) -> None:
        layers = NodeLayers(repository=repository)
        engine = LangGraphResearchOrchestrator(research, FakeDebate(), FakeJudge(), layers=layers)
        service = ResearchOrchestrationService(engine, repository=repository)
        app.state.coordinator.research_orchestration_service = lambda: service

    return serve


def retry(session_id: object) -> str:
    return f"{RESEARCH}/{session_id}/retry"


def question(**changes):
    return {"symbol": "900001.DEMO", "experts": ALL, "locale": "en-US", **changes}


async def test_a_retry_answers_like_research_with_the_session_it_opened(client, served_by):
    served_by(FakeResearch({MACRO: AppError("no data")}))
    partial = (await client.post(RESEARCH, json=question(experts=[TECHNICAL, MACRO]))).json()
    served_by(FakeResearch())
    answer = await client.post(retry(partial["session_id"]), json={"skip_debate": False})
    assert answer.status_code == 200
    body = answer.json()
    assert body.keys() == partial.keys()
    assert (partial["overall_status"], body["overall_status"], body["retry_count"]) == (
        "partial",
        "completed",
        1,
    )
    assert {name: item["status"] for name, item in body["expert_results"].items()} == {
        "technical_analyst": "success",
        "macro_intelligence": "success",
    }
    child = (await client.get(f"{RESEARCH}/sessions/{body['session_id']}")).json()
    assert (child["parent_session_id"], child["selected_experts"]) == (partial["session_id"], [MACRO])
    assert [n["node_type"] for n in child["nodes"] if n["reused"]] == [TECHNICAL]
    record = (await client.get(f"{RESEARCH}/sessions/{body['session_id']}/verification")).json()
    assert record["intact"] is True


async def test_a_retry_that_changes_nothing_comes_to_the_same_verdict(client):
    """Nothing is lost on the way: reused results, their evidence and the number of experts asked are as before."""
    first = (await client.post(RESEARCH, json=question(as_of=THIRD_DAY))).json()
    again = (await client.post(retry(first["session_id"]))).json()
    assert first["overall_status"] == "partial"
    assert first["expert_results"]["technical_analyst"]["status"] == "failed"
    changed = {name for name in first if first[name] != again[name]}
    assert changed == {"session_id", "retry_count"}


async def test_a_retry_may_skip_the_debate(client):
    first = (await client.post(RESEARCH, json=question(as_of=THIRD_DAY))).json()
    body = (await client.post(retry(first["session_id"]), json={"skip_debate": True})).json()
    assert (body["debate_outcome"], body["verdict"], body["verdict_status"]) == (None, None, "skipped")


async def test_all_still_failed_is_a_500_with_the_new_session(client, served_by):
    served_by(FakeResearch({TECHNICAL: AppError("no bars")}))
    first = await client.post(RESEARCH, json=question(experts=[TECHNICAL]))
    parent = first.json()["details"]["session_id"]
    second = await client.post(retry(parent))
    assert (first.status_code, second.status_code) == (500, 500)
    body = second.json()
    assert (body["code"], body["details"]["overall_status"]) == ("ALL_EXPERTS_FAILED", "failed")
    child = (await client.get(f"{RESEARCH}/sessions/{body['details']['session_id']}")).json()
    assert (child["parent_session_id"], child["retry_count"]) == (parent, 1)


async def refused(client, session_id, **more) -> tuple[int, str]:
    answer = await client.post(retry(session_id), **more)
    assert answer.json().keys() == {"success", "code", "message", "details"}
    return answer.status_code, answer.json()["code"]


async def test_a_completed_session_is_a_400(client):
    done = (await client.post(RESEARCH, json=question())).json()
    assert await refused(client, done["session_id"]) == (400, "SESSION_NOT_RETRYABLE")


async def test_a_running_session_is_a_409(client, repository):
    session = a_session(workspace_id="default")
    await repository.save_session(session)
    assert await refused(client, session.id) == (409, "SESSION_RUNNING")


async def test_a_session_unknown_or_of_another_workspace_is_a_404(client, repository):
    theirs = a_session(workspace_id="another", status="failed")
    await repository.save_session(theirs)
    assert await refused(client, theirs.id) == (404, "SESSION_NOT_FOUND")
    assert await refused(client, NOBODY) == (404, "SESSION_NOT_FOUND")


@pytest.mark.parametrize("body", [{"skip_debate": "no"}, {"experts": ALL}, [1]])
async def test_bad_input_is_a_400(client, body):
    assert await refused(client, "not-an-id") == (400, "INVALID_REQUEST")
    assert await refused(client, NOBODY, json=body) == (400, "INVALID_REQUEST")


async def test_openapi_documents_every_answer(client):
    document = (await client.get("/openapi.json")).json()
    post = document["paths"][retry("{session_id}")]["post"]
    assert set(post["responses"]) >= {"200", "400", "404", "409", "500"}
    assert post["requestBody"].get("required", False) is False


async def test_the_desk_retries_too_and_tells_who_watches(desk):
    heard = []
    async with desk:
        first = await desk.research("900001.DEMO", as_of=THIRD_DAY)
        again = await desk.retry(UUID(first.session_id), watch=heard.append)
        child = await desk.session(UUID(again.session_id))
    assert (again.retry_count, child.trigger_source) == (1, "sdk")
    assert child.parent_session_id == UUID(first.session_id)
    ran = {event.data["node"] for event in heard if event.type == "node_started"}
    assert ran == {TECHNICAL, "debate", "judge"}
    assert (heard[0].type, heard[-1].type) == ("session", "done")
