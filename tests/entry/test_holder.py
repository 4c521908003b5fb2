"""How often bull and bear speak, and who asks: the same through REST, command line, Python and a desk elsewhere."""

import json
from uuid import UUID

import httpx
import pytest

import moot
from moot.desk import Moot
from moot.main import create_app
from moot.remote.client import RemoteMoot
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import inside
from tests.entry.test_remote_desk import serving
from tests.fakes.clock import TickingClock

RESEARCH = "/api/v1/coordinator/research"
ASKED = {"symbol": "900001.DEMO", "experts": ["technical_analyst", "macro_intelligence"]}
HOLDER = {"holding": True, "cost": 12.3, "horizon": "long", "risk": "low"}
THIRD_DAY = "2018-01-04"
"""On the third day of the market the technical analyst has too few bars to go by."""


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
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


async def test_over_rest_they_are_kept_and_go_with_a_retry(client):
    body = {**ASKED, "rounds": 2, "holder": HOLDER, "as_of": THIRD_DAY}
    first = (await client.post(RESEARCH, json=body)).json()
    again = (await client.post(f"{RESEARCH}/{first['session_id']}/retry")).json()
    for answer in (first, again):
        session = (await client.get(f"{RESEARCH}/sessions/{answer['session_id']}")).json()
        assert (session["rounds"], session["holder"]) == (2, HOLDER)


@pytest.mark.parametrize(
    ("asked", "field", "said", "in_chinese"),
    [
        ({"rounds": 4}, "rounds", "out of range", "超出"),
        ({"rounds": "often"}, "rounds", "whole number", "整数"),
        ({"horizon": 7}, "horizon", "is not known", "5"),
        ({"holder": {"cost": 0}}, "holder.cost", "out of range", "超出"),
        ({"holder": {"risk": "lots"}}, "holder.risk", "is not known", "low"),
        ({"holder": {"horison": "long"}}, "holder", "Did you mean horizon?", "horizon"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_the_readers_language(client, asked, field, said, in_chinese):
    english, chinese = [
        (await client.post(RESEARCH, json={**ASKED, **asked}, headers={"Accept-Language": locale})).json()
        for locale in ("en-US", "zh-CN")
    ]
    assert (english["code"], english["details"]["errors"][0]["field"]) == ("INVALID_REQUEST", field)
    assert said in english["message"]
    assert in_chinese in chinese["message"]


async def test_the_description_of_the_api_names_them(app):
    schemas = app.openapi()["components"]["schemas"]
    assert {"rounds", "holder"} <= set(schemas["ResearchOrder"]["properties"])
    assert set(schemas["Holder"]["properties"]) == set(HOLDER)


async def test_in_python_here_and_elsewhere(app, desk):
    async with serving(app) as url, RemoteMoot(url) as remote:
        for one, holder in ((desk, moot.Holder(**HOLDER)), (remote, HOLDER)):
            asked = {"as_of": "2026-03-31", "skip_debate": True}
            result = await one.research(**ASKED, **asked, rounds=3, holder=holder)
            session = await one.session(UUID(result.session_id))
            assert (session.rounds, session.holder) == (3, moot.Holder(**HOLDER))


async def test_on_the_command_line(home, monkeypatch):
    run = inside(home, monkeypatch)
    asked = ("research", "900001.DEMO", "--experts", "technical_analyst", "--skip-debate")
    told = await run(
        *asked, "--rounds", "2", "--cost", "12.3", "--horizon", "long", "--risk", "low", "--json"
    )
    session = json.loads((await run("sessions", "show", "last", "--json")).stdout)
    assert (told.returncode, session["rounds"], session["holder"]) == (0, 2, HOLDER)
    refused = await run(*asked, "--horizon", "ages")
    assert (refused.returncode, "holder.horizon" in refused.stderr) == (2, True)
    assert "Who asks" in (await run("research", "--help")).stdout
