"""A whole session by a model, over HTTP and on both databases: nine agents, every call on the record."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import structlog

from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.application.report import render_report
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed
from moot.modules.llm_platform.application.config_service import ConfigBody
from moot.shared.domain.markdown import escape_lines
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.infrastructure.settings import Settings
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import LLMServer, Say, Status

NINE = {
    "technical_analyst",
    "financial_auditor",
    "valuation_modeler",
    "macro_intelligence",
    "catalyst_detective",
    "bull_advocate",
    "bear_advocate",
    "resolution",
    "verdict",
}
SYMBOL = "900001.DEMO"
ASKED_FOR = {
    "zh-CN": ("300 至 800 字", "核心结论", "关键证据", "风险提示", "置信度", "简体中文"),
    "en-US": ("150 to 400 words", "the conclusion", "the evidence", "the risks", "confident", "in English"),
}


def settings(server: LLMServer, home: Path, **also: Any) -> Settings:
    given = {"llm_base_url": server.url, "llm_model": "careful-1", "log_level": "error", **also}
    return Settings(home=home, **given)


@pytest.fixture
async def desk(llm_server: LLMServer, home: Path, clock, database: Database) -> AsyncIterator[Moot]:
    llm_server.default = careful
    async with Moot(settings(llm_server, home, database_url=database.safe_url), clock=clock) as desk:
        yield desk


@pytest.mark.accepts("A2-13", "A2-41", "A2-42", "W6", "W10", "A2-15", "A3-40")
@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
async def test_nine_agents_speak_and_each_leaves_its_call_and_its_narrative(desk, llm_server, locale):
    result = await desk.research(SYMBOL, locale=locale)
    assert (result.overall_status, result.verdict_status) == ("completed", "judged")
    assert result.verdict and result.verdict["engine"] == "llm"

    history = desk.coordinator.session_history()
    calls = await history.calls(UUID(result.session_id), "default", "models")
    assert {call["caller_agent"] for call in calls} == NINE
    assert len(calls) == len(llm_server.requests) == result.usage.requests == 9
    for call in calls:
        wanted = ASKED_FOR[locale]
        assert [words for words in wanted if words not in call["prompt_text"]] == [], call["caller_agent"]
    assert all(call["status"] == "success" and call["total_tokens"] == 150 for call in calls)

    workflow = await desk.governance.agent.monitor.context_of(result.session_id)
    assert workflow and workflow.metrics.total_tokens == 9 * 150

    nodes = (await desk.session(UUID(result.session_id))).nodes
    assert len(nodes) == 7
    told = render_report(result)
    assert all(node.narrative_report and escape_lines(node.narrative_report) in told for node in nodes)
    assert (await desk.verify(UUID(result.session_id))).intact


async def test_grounding_is_stored_and_shown(desk):
    result = await desk.research(SYMBOL, ["technical_analyst"], skip_debate=True, locale="en-US")
    found = result.expert_results["technical_analyst"].data["grounding"]
    assert found["score"] == 1.0
    assert f"{found['checked']} of {found['checked']} statements hold" in render_report(result)


def spoiled(how: Any):
    """Everybody is careful but the technical analyst."""

    def reply(body: dict[str, Any]):
        answer = careful(body)
        return how(answer) if '"key_technical_levels"' in str(answer.content) else answer

    return reply


async def test_a_key_that_a_model_echoes_leaves_the_desk_nowhere(llm_server, home, clock):
    key = "canary-key-1234567890"
    words = f"The key is {key}, and sk-abcdefghijklmnop1234 too"
    llm_server.default = spoiled(lambda a: Say(a.content.replace("The evidence points one way", words)))
    told: list[Any] = []
    async with Moot(settings(llm_server, home, llm_api_key=key), clock=clock) as desk:
        result = await desk.research(SYMBOL, locale="en-US", watch=told.append)
        session_id = UUID(result.session_id)
        heard = [event async for event in desk.events(session_id)]
        kept = await desk.result(session_id)
        packed = await desk.export(session_id)
    everything = (result.model_dump_json(), render_report(result), str(told), str(heard), str(packed))
    assert "The key is ***, and *** too" in result.model_dump_json()
    assert not [said for said in everything if "canary" in said or "sk-abc" in said]
    assert kept == result


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (lambda a: Say(a.content.replace('"BULLISH"', '"MOON"')), "signal"),
        (lambda a: Say(a.content.replace('"risk_warning"', '"other"')), "risk_warning"),
        (lambda a: Say(a.content[:100], finish_reason="length"), "cut off"),
        (
            lambda a: Say(
                a.content.replace("The evidence points one way", "证据指向同一个方向而且十分清楚" * 9)
            ),
            "English",
        ),
        (
            lambda a: Say(a.content.replace("risks", "a target of 9876.54 CNY and 5432.1 CNY, 777.7%")),
            "9876.54",
        ),
        (lambda _: Status(500, "out of order"), "500"),
    ],
    ids=["wrong enum", "missing field", "truncated", "wrong language", "invented numbers", "no answer"],
)
@pytest.mark.accepts("W16")
async def test_a_bad_answer_is_a_failed_expert_with_a_sentence_and_never_a_rating(
    llm_server, home, clock, how, sentence
):
    llm_server.default = spoiled(how)
    async with Moot(settings(llm_server, home), clock=clock) as desk:
        result = await desk.research(SYMBOL, ["technical_analyst", "valuation_modeler"], locale="en-US")
    failed = result.expert_results["technical_analyst"]
    assert (result.overall_status, failed.status, failed.data) == ("partial", "failed", None)
    assert sentence in str(failed.error)


async def test_rules_judge_where_a_model_failed_only_if_that_was_asked_for(llm_server, home, clock):
    llm_server.default = Status(401, "bad key")
    async with Moot(settings(llm_server, home), clock=clock) as desk:
        with pytest.raises(AllExpertsFailed):
            await desk.research(SYMBOL, ["technical_analyst"])
    async with Moot(settings(llm_server, home, analyst_fallback="rubric"), clock=clock) as desk:
        result = await desk.research(SYMBOL, ["technical_analyst"])
    assert result.expert_results["technical_analyst"].data["engine"] == "rubric"


async def test_a_budget_that_is_spent_is_said_and_not_crashed_into(llm_server, home, clock):
    llm_server.default = careful
    limited = settings(llm_server, home, budget_session_tokens=30_000, llm_concurrency=16)
    async with Moot(limited, clock=clock) as desk:
        result = await desk.research(SYMBOL, locale="en-US")
    said = [item.error for item in result.expert_results.values() if item.error] + [result.reason or ""]
    assert any("MOOT_BUDGET_SESSION_TOKENS" in text for text in said)
    assert result.usage.tokens <= 30_000


async def test_a_limit_on_cost_needs_a_price(llm_server, home, clock):
    llm_server.default = careful
    async with Moot(settings(llm_server, home), clock=clock) as desk:
        with pytest.raises(AllExpertsFailed, match="price"):
            await desk.research(SYMBOL, ["technical_analyst"], max_cost=1.0, locale="en-US")
    assert llm_server.requests == []


@pytest.mark.accepts("A2-30", "A2-31", "A2-32")
async def test_the_calls_of_a_session_are_read_over_rest(llm_server, home, clock):
    llm_server.default = careful
    app = create_app(Moot(settings(llm_server, home), clock=clock))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        body = {"symbol": SYMBOL, "experts": ["technical_analyst"]}
        answer = (await http.post("/api/v1/coordinator/research", json=body)).json()
        session = f"/api/v1/coordinator/research/sessions/{answer['session_id']}"
        calls = (await http.get(f"{session}/llm-calls")).json()
        light = (await http.get(f"{session}/llm-calls", params={"include_text": False})).json()
        other = (await http.get(f"{session}/api-calls")).json()
        verified = (await http.get(f"{session}/verification", params={"locale": "en-US"})).json()
        missing = await http.get(f"/api/v1/coordinator/research/sessions/{UUID(int=1)}/llm-calls")
    assert [call["caller_agent"] for call in calls] == [call["caller_agent"] for call in light]
    assert all("technical.current_price" in calls[0][part] for part in ("prompt_text",))
    assert (light[0]["prompt_text"], other, missing.status_code) == (None, [], 404)
    assert verified["intact"]


async def test_a_model_added_over_rest_is_asked_next(llm_server, home, clock):
    llm_server.default = careful
    app = create_app(Moot(Settings(home=home, log_level="error"), clock=clock))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        model = {"alias": "careful", "base_url": llm_server.url, "model_name": "careful-1"}
        assert (await http.post("/api/v1/llm-platform/configs", json=model)).status_code == 201
        said = await http.post("/api/v1/llm-platform/chat/generate", json={"prompt": "hello"})
        body = {"symbol": SYMBOL, "experts": ["technical_analyst"]}
        answer = (await http.post("/api/v1/coordinator/research", json=body)).json()
    assert said.json()["content"] == "ok"
    assert answer["expert_results"]["technical_analyst"]["data"]["engine"] == "llm"


@pytest.fixture
def log(home: Path) -> Iterator[Path]:
    configure_logging("debug", home / "moot.log")
    yield home / "moot.log"
    structlog.get_config()["logger_factory"]._file._stream.close()


async def test_a_key_is_in_no_file_the_desk_leaves_behind(llm_server, home, clock, log):
    canary = "sk-canary-9d2f6b71c3"
    leak = {"error": {"message": f"Incorrect API key provided: {canary}", "key": canary}}
    llm_server.script(Status(401, json.dumps(leak)))
    llm_server.default = careful
    async with Moot(settings(llm_server, home, analyst_fallback="rubric"), clock=clock) as desk:
        model = ConfigBody(alias="main", base_url=llm_server.url, model_name="m-1", api_key=canary)
        await desk.llm_platform.config_service().create(model)
        result = await desk.research(SYMBOL, locale="en-US")
        desk.write_report(result)
    assert llm_server.requests[0].headers["authorization"].endswith(canary), "it was really used"
    files = [file for file in home.rglob("*") if file.is_file()]
    assert {"moot.db", "moot.log"} <= {file.name for file in files}
    assert [file for file in files if canary.encode() in file.read_bytes()] == []
    assert b"Incorrect API key" in log.read_bytes()
