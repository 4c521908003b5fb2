"""The REST API, served by a real desk over the demo market, and by engines that fail on purpose."""

import re
from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest
from structlog.testing import capture_logs

from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import TickingClock
from tests.fakes.coordinator import CATALYST, MACRO, TECHNICAL, FakeDebate, FakeJudge, FakeResearch

RESEARCH = "/api/v1/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
ALL = [expert.value for expert in ExpertType]
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"


def question(**changes):
    return {"symbol": "900001.DEMO", "experts": ALL, "locale": "en-US", **changes}


@pytest.fixture
async def app(home, clock):
    desk = Moot(Settings(home=home, log_level="error"), clock=TickingClock(clock.now()))
    app = create_app(desk)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def served_by(app, research: FakeResearch, debate=None, judge=None) -> None:
    """Replace the engine behind the route; everything before and after it stays real."""
    engine = LangGraphResearchOrchestrator(research, debate or FakeDebate(), judge or FakeJudge())
    app.state.coordinator.research_orchestration_service = lambda: ResearchOrchestrationService(engine)


@pytest.mark.accepts("A1S-01", "A0-20", "A0-21", "A0-23", "A1S-65", "A1N-32", "A1S-08", "A1S-09", "A1S-11")
async def test_a_question_gets_experts_debate_and_verdict(client):
    answer = await client.post(RESEARCH, json=question())
    assert answer.status_code == 200
    body = answer.json()
    assert (body["symbol"], body["overall_status"], body["retry_count"]) == ("900001.DEMO", "completed", 0)
    assert set(body["expert_results"]) == set(ALL)
    assert {item["status"] for item in body["expert_results"].values()} == {"success"}
    assert body["debate_outcome"].keys() >= {
        "direction",
        "confidence",
        "bull_case",
        "bear_case",
        "risk_matrix",
        "key_disagreements",
        "conflict_resolution",
    }
    assert body["verdict"].keys() >= {
        "action",
        "position_percent",
        "confidence",
        "entry_strategy",
        "stop_loss",
        "take_profit",
        "time_horizon",
        "risk_warnings",
        "reasoning",
    }
    assert body["verdict_status"] == "judged"
    assert UUID(body["session_id"])
    assert body["notices"][0].startswith("Synthetic data")


@pytest.mark.accepts("A1S-06", "A1S-07", "A0-07", "A0-08")
async def test_options_reach_the_experts_and_defaults_fill_in(client):
    options = {"technical_analyst": {"analysis_date": "2026-02-13"}, "financial_auditor": {"limit": 3}}
    experts = ["technical_analyst", "financial_auditor"]
    asked = (await client.post(RESEARCH, json=question(experts=experts, options=options))).json()
    plain = (await client.post(RESEARCH, json=question(experts=experts))).json()

    def auditor_periods(body):
        return len(
            body["expert_results"]["financial_auditor"]["data"]["financial_indicators"]["quarter_list"]
        )

    def newest_bar(body):
        evidence = body["expert_results"]["technical_analyst"]["data"]["evidence"]
        return next(e["as_of"][:10] for e in evidence if e["id"] == "technical.current_price")

    assert (auditor_periods(asked), auditor_periods(plain)) == (3, 5)
    assert (newest_bar(asked), newest_bar(plain)) == ("2026-02-13", "2026-06-29")


@pytest.mark.accepts("A1S-12", "A1N-06", "A1N-07")
async def test_skip_debate_leaves_out_debate_and_verdict(client):
    body = (await client.post(RESEARCH, json=question(experts=[MACRO], skip_debate=True))).json()
    assert (body["debate_outcome"], body["verdict"], body["verdict_status"]) == (None, None, "skipped")
    assert body["expert_results"][MACRO]["status"] == "success"


@pytest.mark.accepts("A1S-22", "A1S-16", "A0-21")
async def test_one_failure_is_still_an_answer(app, client):
    served_by(app, FakeResearch({CATALYST: RuntimeError("search is down")}))
    answer = await client.post(RESEARCH, json=question(experts=[TECHNICAL, MACRO, CATALYST]))
    assert answer.status_code == 200
    body = answer.json()
    assert body["overall_status"] == "partial"
    assert body["expert_results"][CATALYST] == {"status": "failed", "error": "search is down"}
    assert body["expert_results"][MACRO] == {"status": "success", "data": {"said": "macro_intelligence"}}


@pytest.mark.accepts("A1S-05", "A1S-23", "A0-21", "W19")
async def test_all_failed_is_a_500_that_says_why_and_which_session(app, client):
    served_by(app, FakeResearch({e: RuntimeError("down") for e in ExpertType}))
    answer = await client.post(RESEARCH, json=question())
    assert answer.status_code == 500
    body = answer.json()
    assert (body["success"], body["code"]) == (False, "ALL_EXPERTS_FAILED")
    assert body["details"]["overall_status"] == "failed"
    assert body["details"]["expert_results"] == {e: {"status": "failed", "error": "down"} for e in ALL}
    assert "session_id" in body["details"]


@pytest.mark.accepts("A1N-02")
async def test_an_unexpected_error_is_a_500_that_tells_nothing_of_the_inside(app, client):
    class Broken:
        async def execute(self, request):
            raise RuntimeError("password=hunter2")

    app.state.coordinator.research_orchestration_service = Broken
    with capture_logs() as logs:
        answer = await client.post(RESEARCH, json=question())
    assert answer.status_code == 500
    assert answer.json() == {
        "success": False,
        "code": "INTERNAL_ERROR",
        "message": "Something went wrong inside Moot; the log has the details.",
        "details": {},
    }
    assert [(log["event"], log["log_level"]) for log in logs] == [("unexpected error", "error")]


BAD = {
    "no symbol": ({"experts": ALL}, "symbol: is required."),
    "blank symbol": (question(symbol=" "), "symbol: must not be blank."),
    "no experts": (question(experts=[]), f"experts: choose at least one. Allowed: {', '.join(ALL)}."),
    "unknown expert": (
        question(experts=["unknown_expert"]),
        f"experts.0: 'unknown_expert' is not known. Allowed: {', '.join(ALL)}.",
    ),
    "wrong type": (question(skip_debate="no"), "skip_debate: must be true or false, not 'no'."),
    "unknown field": (
        question(expert=["x"]),
        "body: has no field named expert. Did you mean experts? Allowed: symbol, experts, options, skip_debate, "
        "as_of, locale, rounds, horizon, holder, max_cost, mode.",
    ),
    "limit": (
        question(options={"financial_auditor": {"limit": 99}}),
        "options.financial_auditor.limit: 99 is out of range. Allowed: <= 20.",
    ),
    "future": (question(as_of="2027-01-01"), "as_of: '2027-01-01' lies in the future."),
    "not an object": ([1, 2], "body: must be an object, not list."),
}


@pytest.mark.accepts("A1S-02", "A1S-03", "A1S-04", "A1N-28", "A1N-03", "A0-21", "A0-27", "W19")
@pytest.mark.parametrize(("body", "sentence"), BAD.values(), ids=BAD)
async def test_bad_input_is_a_400_that_names_the_field_and_what_is_allowed(client, body, sentence):
    answer = await client.post(RESEARCH, json=body, headers={"accept-language": "en-GB"})
    assert answer.status_code == 400
    assert answer.json().keys() == {"success", "code", "message", "details"}
    assert (answer.json()["success"], answer.json()["code"]) == (False, "INVALID_REQUEST")
    assert answer.json()["message"] == sentence


@pytest.mark.parametrize("raw", ["{not json", "", "\x00", '{"symbol": "900001.DEMO",}'])
async def test_malformed_json_is_a_400(client, raw):
    answer = await client.post(RESEARCH, content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("symbol", "code"),
    [
        ("900099.DEMO", "SYMBOL_UNKNOWN"),
        ("600519.SH", "SYMBOL_UNSUPPORTED"),
        ("AAPL", "SYMBOL_UNSUPPORTED"),
        ("what is this", "SYMBOL_UNKNOWN"),
    ],
)
async def test_a_symbol_nobody_can_research_is_a_400_and_opens_no_session(client, symbol, code):
    answer = await client.post(RESEARCH, json=question(symbol=symbol))
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert answer.json()["message"].startswith("symbol: ")
    assert (await client.get(SESSIONS)).json()["total"] == 0


@pytest.mark.parametrize(
    ("locale", "header", "language"),
    [("zh-CN", "en", "zh"), ("en-US", "zh", "en"), (None, "en-GB,zh;q=0.1", "en"), (None, "", "zh")],
)
async def test_errors_speak_the_language_asked_for(client, locale, header, language):
    body = {"symbol": "900099.DEMO", "experts": ALL} | ({"locale": locale} if locale else {})
    answer = await client.post(RESEARCH, json=body, headers={"accept-language": header})
    expected = {"zh": "symbol：没有查到代码", "en": "symbol: nobody lists"}[language]
    assert answer.json()["message"].startswith(expected)


async def test_history_lists_sessions_newest_first_and_shows_their_nodes(client):
    first = (await client.post(RESEARCH, json=question(experts=[MACRO], skip_debate=True))).json()
    second = (await client.post(RESEARCH, json=question(symbol="900002.DEMO"))).json()
    page = (await client.get(SESSIONS, params={"page_size": 1})).json()
    assert page["items"][0]["id"] == second["session_id"]
    assert (page["total"], page["page"], page["page_size"], len(page["items"])) == (2, 1, 1, 1)
    of_one = (await client.get(SESSIONS, params={"symbol": "900001.DEMO"})).json()
    assert [item["id"] for item in of_one["items"]] == [first["session_id"]]
    detail = (await client.get(f"{SESSIONS}/{second['session_id']}")).json()
    assert (detail["status"], detail["verdict_status"], detail["audit_gaps"]) == ("completed", "judged", 0)
    assert {n["node_type"]: n["status"] for n in detail["nodes"]} == {
        **dict.fromkeys(ALL, "success"),
        "debate": "success",
        "judge": "success",
    }
    assert [n["node_type"] for n in detail["nodes"]][-2:] == ["debate", "judge"]
    assert all(n["narrative_report"] for n in detail["nodes"])
    assert all(n["evidence"] for n in detail["nodes"] if n["node_type"] in ALL)
    assert detail["notices"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (f"{SESSIONS}/{NOBODY}", 404, "SESSION_NOT_FOUND"),
        (f"{SESSIONS}/not-an-id", 400, "INVALID_REQUEST"),
        (f"{SESSIONS}?page=0", 400, "INVALID_REQUEST"),
        (f"{SESSIONS}?page_size=1000", 400, "INVALID_REQUEST"),
        (f"{SESSIONS}?start_date=soon", 400, "INVALID_REQUEST"),
        ("/nowhere", 404, "HTTP_404"),
    ],
)
@pytest.mark.accepts("W19")
async def test_other_errors_have_the_same_shape(client, path, status, code):
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json().keys() == {"success", "code", "message", "details"}


async def test_a_desk_without_persistence_has_no_history_and_says_so(bare_home, clock):
    desk = Moot(Settings(home=bare_home, persistence=False, log_level="error"), clock=clock)
    app = create_app(desk)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as c,
    ):
        answer = await c.post(RESEARCH, json=question(experts=[MACRO]))
        assert (answer.status_code, answer.json()["session_id"]) == (200, "")
        history = await c.get(SESSIONS)
        assert (history.status_code, history.json()["code"]) == (503, "PERSISTENCE_OFF")
        assert (await c.get("/readyz")).status_code == 200
    assert not (bare_home / "moot.db").exists()


async def test_health_and_readiness(client, app):
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    await app.state.desk.database.downgrade("base")
    not_ready = await client.get("/readyz")
    assert not_ready.status_code == 503
    assert "moot db upgrade" in not_ready.json()["checks"]["database"]["detail"]


@pytest.mark.accepts("A2-39")
async def test_without_its_tables_the_desk_answers_all_the_same_and_counts_what_is_missing(client, app):
    await app.state.desk.database.downgrade("base")
    answer = await client.post(RESEARCH, json=question(experts=[MACRO, TECHNICAL]))
    assert answer.status_code == 200
    assert answer.json()["verdict_status"] == "judged"
    assert answer.json()["audit_gaps"] == 11, "the session, four nodes and six decisions"


async def test_openapi_documents_the_request_and_every_error(client):
    document = (await client.get("/openapi.json")).json()
    post = document["paths"][RESEARCH]["post"]
    assert set(post["responses"]) >= {"200", "202", "400", "409", "429", "500", "503"}
    assert "422" not in post["responses"]
    schema = document["components"]["schemas"]["ResearchOrder"]
    asked = ["symbol", "experts", "options", "skip_debate", "as_of", "locale"]
    assert list(schema["properties"]) == [*asked, "rounds", "horizon", "holder", "max_cost", "mode"]
    assert schema["required"] == ["symbol", "experts"]


async def test_openapi_tells_errors_in_json_beside_a_stream_of_events_too(client):
    paths = (await client.get("/openapi.json")).json()["paths"]
    answers = [
        (status, set(answer.get("content", {})))
        for operations in paths.values()
        for operation in operations.values()
        for status, answer in operation["responses"].items()
    ]
    assert any(types == {"text/event-stream"} for _, types in answers)
    assert {types for status, content in answers if not status.startswith("2") for types in content} == {
        "application/json"
    }


@pytest.mark.accepts("A0-23", "A1S-65")
def test_the_container_wires_all_three_adapters(home, clock):
    coordinator = Moot(Settings(home=home), clock=clock).coordinator
    assert isinstance(coordinator, CoordinatorContainer)
    engine = coordinator._orchestrator
    assert [type(part).__name__ for part in (engine._gateway, *engine._after)] == [
        "ResearchGatewayAdapter",
        "DebateGatewayAdapter",
        "JudgeGatewayAdapter",
    ]


async def test_the_documentation_loads_nothing_from_elsewhere(client):
    page = await client.get("/docs")
    assert page.status_code == 200
    assert "http" not in page.text.replace("http-equiv", "")
    assets = set(re.findall(r'(?:src|href)="([^"]+)"', page.text))
    assert len(assets) == 3
    for asset in assets:
        assert (await client.get(asset)).status_code == 200


DATA = "/api/v1/market-data"


async def test_market_data_are_read_as_they_were_known(client):
    asked = {"start": "2026-01-01", "end": "2026-06-30", "as_of": "2026-03-31T12:00:00Z"}
    bars = (await client.get(f"{DATA}/900001.DEMO/bars", params=asked)).json()
    assert bars[0]["trade_date"] >= "2026-01-01"
    assert bars[-1]["trade_date"] == "2026-03-31"
    valuations = (await client.get(f"{DATA}/900001.DEMO/valuations", params=asked)).json()
    assert [v["trade_date"] for v in valuations] == [b["trade_date"] for b in bars]
    for part in ("reports", "news"):
        facts = (await client.get(f"{DATA}/900001.DEMO/{part}", params={"as_of": asked["as_of"]})).json()
        assert facts
        assert max(fact["available_at"] for fact in facts) <= asked["as_of"]


async def test_companies_are_found_and_shown(client):
    found = (await client.get(f"{DATA}/symbols", params={"q": "幻山"})).json()
    assert [match["company"]["symbol"] for match in found] == ["900001.DEMO"]
    company = (await client.get(f"{DATA}/900001.DEMO")).json()
    assert (company["name_en"], company["synthetic"]) == ("Mirage Hill Distillers", True)


async def test_a_path_takes_a_share_as_people_write_it(client):
    for written in ("900001", "900001.demo", "幻山酒业", "Mirage Hill Distillers", "hsjy"):
        company = (await client.get(f"{DATA}/{written}")).json()
        assert company["symbol"] == "900001.DEMO"
    news = (await client.get(f"{DATA}/幻山酒业/news")).json()
    assert {item["symbol"] for item in news} - {None} == {"900001.DEMO"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/900099.DEMO", "SYMBOL_UNKNOWN"),
        ("/nobody at all", "SYMBOL_UNKNOWN"),
        ("/600519/bars", "SYMBOL_UNSUPPORTED"),
        ("/600519.SH/bars", "SYMBOL_UNSUPPORTED"),
        ("/900001.DEMO/bars?start=soon", "INVALID_REQUEST"),
        ("/900001.DEMO/bars?as_of=2026-01-01T00:00:00", "INVALID_REQUEST"),
        ("/900001.DEMO/reports?periods=0", "INVALID_REQUEST"),
        ("/symbols", "INVALID_REQUEST"),
    ],
)
async def test_bad_questions_about_market_data_are_400s(client, path, code):
    answer = await client.get(DATA + path)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
