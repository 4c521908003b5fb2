"""One expert alone: the same through REST, command line and Python; on the record like any session."""

import json

import httpx
import pytest

from moot.desk import Moot
from moot.main import create_app
from moot.shared.domain.experts import ExpertType
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import inside
from tests.fakes.clock import TickingClock

EXPERT = "/api/v1/research"
ASKED = {"symbol": "900001.DEMO", "as_of": "2026-03-02"}


@pytest.fixture
async def client(home, clock):
    desk = Moot(Settings(home=home, log_level="error"), clock=TickingClock(clock.now()))
    app = create_app(desk)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


@pytest.mark.parametrize("expert", list(ExpertType))
async def test_over_rest_it_answers_with_its_claims_and_is_on_the_record(client, expert):
    answer = (await client.post(f"{EXPERT}/{expert}", json={**ASKED, "locale": "en-US"})).json()
    assert list(answer["expert_results"]) == [expert]
    assert (answer["overall_status"], answer["verdict"]) == ("completed", None)
    assert answer["expert_results"][expert]["data"]["claims"]
    stored = (await client.get(f"/api/v1/coordinator/research/sessions/{answer['session_id']}")).json()
    assert (stored["selected_experts"], stored["skip_debate"]) == ([expert], True)


async def test_its_options_are_its_own(client):
    body = {**ASKED, "options": {"limit": 3}}
    answer = (await client.post(f"{EXPERT}/financial_auditor", json=body)).json()
    data = answer["expert_results"]["financial_auditor"]["data"]
    assert len(data["financial_indicators"]["quarter_list"]) == 3
    refused = await client.post(f"{EXPERT}/macro_intelligence", json=body)
    assert refused.status_code == 400
    assert "options" in refused.json()["message"]


async def test_nobody_is_asked_who_is_not_there(client):
    refused = await client.post(f"{EXPERT}/astrologer", json=ASKED)
    assert refused.status_code == 400
    assert "technical_analyst" in refused.json()["message"]


@pytest.mark.parametrize(("locale", "view"), [("en-US", "Technical analyst"), ("zh-CN", "技术分析师")])
async def test_on_the_command_line_by_its_short_name(home, monkeypatch, locale, view):
    run, asked = inside(home, monkeypatch), ("900001.DEMO", "--as-of", "2026-03-02", "--locale", locale)
    told = await run("expert", "technical", *asked)
    assert told.returncode == 0
    assert view in told.stdout
    found = json.loads((await run("expert", "technical_analyst", *asked, "--json")).stdout)
    claims = found["expert_results"]["technical_analyst"]["data"]["claims"]
    strongest = max(claims, key=lambda claim: claim["strength"])
    assert f"{strongest['strength']:.2f}" in told.stdout


async def test_a_name_nobody_has_is_refused_with_those_there_are(home, monkeypatch):
    told = await inside(home, monkeypatch)("expert", "astrologer", "900001.DEMO")
    assert told.returncode == 2
    assert "technical_analyst" in told.stderr
