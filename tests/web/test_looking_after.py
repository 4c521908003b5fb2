"""Data and settings in the console: what is kept, which models answer, who has a key."""

import re

import pytest

from tests.access.desk import calling, new_key, open_app
from tests.fakes.llm_server import Say, Status, running_llm_server
from tests.web.conftest import OURS

SECRET = "sk-secret-0123456789"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"
BARS = """\
symbol,trade_date,open,high,low,close,pre_close,volume,amount
600519.SH,2025-12-29,10,10,10,10,10,100,1000
600519.SH,2026-01-05,10,10,10,10,10,100,1000
"""


@pytest.fixture
async def app(home, clock):
    async with open_app(home, clock) as app:
        yield app


async def test_an_empty_lake_says_how_to_fill_it(client):
    shown = await client.get("/data")
    assert (shown.status_code, "moot data sync" in shown.text) == (200, True)


async def test_what_is_kept_is_told_by_dataset_and_then_by_share(app, client, tmp_path):
    file = tmp_path / "bars.csv"
    file.write_text(BARS)
    await app.state.market_data.imports().bring_in(file, None)
    shown = await client.get("/data?dataset=bars")
    assert "600519.SH" in shown.text
    assert "2026-01-05" in shown.text
    assert "files" in shown.text or "import" in shown.text


async def test_one_company_is_examined_and_an_unknown_one_refused(client):
    checked = await client.post("/data/check", data={"symbol": "900001.DEMO"})
    assert re.search(r"\d+ remarks", checked.text)
    unknown = await client.post("/data/check", data={"symbol": HOSTILE})
    assert unknown.status_code in {400, 404}
    assert HOSTILE not in unknown.text
    assert 'aria-invalid="true"' in unknown.text


def answer(body):
    if body.get("tools"):
        return Say(None, tool_calls=[("call_1", "add", '{"a": 2, "b": 3}')], finish_reason="tool_calls")
    return Say('{"sum": 5}' if body.get("response_format") else "ready")


async def add_model(client, url, alias="main"):
    body = {"alias": alias, "base_url": url, "model_name": HOSTILE, "api_key": SECRET, "vendor": "fake"}
    added = await client.post("/api/v1/llm-platform/configs", json=body)
    assert added.status_code == 201, added.text


async def test_a_model_is_tested_and_its_key_never_shown(client):
    async with running_llm_server() as server:
        server.default = answer
        await add_model(client, server.url)
        tried = await client.post(
            "/settings/models/test", data={"alias": "main"}, headers={"HX-Request": "1"}
        )
        assert tried.text.count("✓") == 3
        assert "<html" not in tried.text
        server.default = Status(401, "no such key " + SECRET)
        whole = await client.post("/settings/models/test", data={"alias": "main"})
    assert (whole.status_code, whole.text.count("✗"), "<html" in whole.text) == (200, 1, True)
    shown = await client.get("/settings")
    for page in (tried, whole, shown):
        assert SECRET not in page.text
        assert HOSTILE not in page.text
    assert (await client.post("/settings/models/test", data={"alias": "nobody"})).status_code == 404


async def test_a_key_is_shown_once_and_lets_in_until_it_is_revoked(app, client):
    made = await client.post("/settings/keys", data={"name": HOSTILE, "scopes": ["read", "research"]})
    secret = re.search(r'id="secret">(moot_[^<]+)<', made.text)[1]
    assert HOSTILE not in made.text
    assert made.headers["cache-control"] == "no-store"
    shown = await client.get("/settings")
    assert secret not in shown.text
    assert HOSTILE not in shown.text
    async with calling(app, secret) as holder:
        assert (await holder.get("/api/v1/watchlists")).status_code == 200
        key_id = re.search(r'name="id" value="(\w+)"', shown.text)[1]
        await client.post("/settings/keys/revoke", data={"id": key_id})
        assert (await holder.get("/api/v1/watchlists")).status_code == 401


@pytest.mark.parametrize(
    "sent", [{"name": "", "scopes": "read"}, {"name": "x"}, {"name": "x", "scopes": "all"}]
)
async def test_a_key_that_makes_no_sense_is_refused(client, sent):
    refused = await client.post("/settings/keys", data=sent)
    assert (refused.status_code, 'role="alert"' in refused.text) == (400, True)


async def test_nobody_sees_or_revokes_keys_of_another_workspace(app):
    mine, _theirs = await new_key(app, "read", "admin"), await new_key(app, "read", workspace="theirs")
    theirs = next(key for key in await app.state.access.list() if key.workspace_id == "theirs")
    async with calling(app, mine) as client:
        client.headers.update(OURS)
        assert theirs.id not in (await client.get("/settings")).text
        assert (await client.post("/settings/keys/revoke", data={"id": theirs.id})).status_code == 404


async def test_settings_offer_only_what_the_key_may(app):
    async with calling(app, await new_key(app, "read")) as client:
        client.headers.update(OURS)
        shown = await client.get("/settings")
        assert (shown.status_code, "/settings/keys" in shown.text) == (200, False)
        for path in ("/settings/keys", "/settings/keys/revoke", "/settings/models/test", "/data/check"):
            assert (await client.post(path, data={"name": "x"})).status_code == 403, path
