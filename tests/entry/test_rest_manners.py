"""How REST speaks: in the reader's language, about what was sent, without a word of Python."""

import hashlib
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest
import pytest_asyncio

from moot.desk import Moot
from moot.main import create_app
from moot.shared.domain.messages import nearest, shorten
from moot.shared.domain.validation import quote, refuse_field
from moot.shared.infrastructure.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESEARCH = "/api/v1/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
CONFIGS = "/api/v1/llm-platform/configs"
MACRO = {"symbol": "900001.DEMO", "experts": ["macro_intelligence"], "skip_debate": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Moot(Settings(home=tmp_path_factory.mktemp("home"), log_level="error")))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=("127.0.0.1", 1))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


async def test_the_root_says_what_this_is_and_where_to_look(client):
    answer = await client.get("/")
    assert (answer.status_code, answer.json()["name"]) == (200, "Moot")
    for link in ("docs", "openapi", "health", "ready"):
        assert (await client.get(answer.json()[link])).status_code == 200


async def test_the_page_of_docs_runs_its_own_scripts_alone_and_in_nobodys_frame(client):
    page = await client.get("/docs")
    policy = dict(
        part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";") if part
    )
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    inline = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digests = [b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in inline]
    assert policy["script-src"] == " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
    assert len(inline) == 1
    outside = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert outside
    assert all(link.startswith("/docs/assets/") for link in outside)


CHINESE, ENGLISH = "此处没有内容：GET /nowhere。", "There is nothing here: GET /nowhere."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("zh", CHINESE),
        ("zh-TW", CHINESE),
        ("ZH-Hant-HK;q=0.9", CHINESE),
        ("en;q=0.5, zh;q=0.9", CHINESE),
        ("zh;q=0.5, en;q=0.9", ENGLISH),
        ("zh;q=0, de", ENGLISH),
        ("de-DE,de;q=0.9,en;q=0.8", ENGLISH),
        ("ja", ENGLISH),
        ("fr, zh;q=0.4", ENGLISH),
        ("*", CHINESE),
        ("", CHINESE),
        (None, CHINESE),
    ],
)
async def test_errors_are_in_the_language_that_is_wanted_most(client, asked, said):
    headers = {} if asked is None else {"Accept-Language": asked}
    assert (await client.get("/nowhere", headers=headers)).json()["message"] == said


async def test_without_a_wish_the_desk_speaks_its_own_language(client):
    state = client._transport.app.state
    state.locale = "en-US"
    try:
        assert (await client.get("/nowhere")).json()["message"] == ENGLISH
        assert (await client.post(RESEARCH, json=MACRO)).json()["locale"] == "en-US"
        wanted = await client.post(RESEARCH, json=MACRO, headers={"Accept-Language": "zh"})
        assert wanted.json()["locale"] == "zh-CN"
    finally:
        state.locale = None


@pytest.mark.parametrize(
    ("body", "header", "locale"),
    [
        ({}, None, "zh-CN"),
        ({}, "fr-FR", "en-US"),
        ({"locale": None}, "fr-FR", "en-US"),
        ({"locale": "zh-CN"}, "fr-FR", "zh-CN"),
        ({}, "zh-HK, en;q=0.2", "zh-CN"),
    ],
)
async def test_research_is_in_the_language_of_its_body_then_of_its_header_then_chinese(
    client, body, header, locale
):
    headers = {"Accept-Language": header} if header else {}
    done = (await client.post(RESEARCH, json={**MACRO, **body}, headers=headers)).json()
    assert done["locale"] == locale
    events = await client.get(f"{SESSIONS}/{done['session_id']}/events", headers=headers)
    assert f'"locale": "{locale}"' in events.text
    checked = (await client.get(f"{SESSIONS}/{done['session_id']}/verification", headers=headers)).json()
    assert ("The record is intact" in checked["explanation"]) == (header == "fr-FR" or locale == "en-US")


async def test_a_null_says_no_more_than_leaving_out(client):
    nulls = dict.fromkeys(("options", "skip_debate", "as_of", "locale", "max_cost", "mode"))
    answer = await client.post(RESEARCH, json={**MACRO, **nulls, "skip_debate": True})
    assert answer.status_code == 200, answer.text
    english = {"Accept-Language": "en"}
    required = await client.post(RESEARCH, json={**MACRO, "symbol": None}, headers=english)
    assert required.json()["message"] == "symbol: must be text, not null."


async def test_a_method_that_is_not_possible_is_told_those_that_are(client):
    answer = await client.request("PATCH", CONFIGS, headers={"Accept-Language": "en"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert answer.json()["message"] == f"PATCH is not possible at {CONFIGS}. Allowed: GET, POST."
    assert answer.json()["details"] == {"allowed": ["GET", "POST"]}
    assert (await client.request("DELETE", "/healthz")).headers["allow"] == "GET"
    beside = await client.get("/api/v1/coordinator/rulesets/check")  # a number could stand in its place
    assert (beside.status_code, beside.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", RESEARCH, {**MACRO, "experts": ["macro_inteligence"]}, "Did you mean macro_intelligence?"),
        ("POST", RESEARCH, {**MACRO, "skip_debat": True}, "Did you mean skip_debate?"),
        ("POST", RESEARCH, {**MACRO, "mode": "asinc"}, "Did you mean async?"),
        ("POST", CONFIGS, {"alias": "a", "model_name": "m", "preset": "olama"}, "Did you mean ollama?"),
        ("GET", f"{SESSIONS}?pge=1", None, "query: has no field named pge. Did you mean page?"),
        ("GET", "/api/v1/market-data/900001.DEMO/bars?strat=2026-01-01", None, "Did you mean start?"),
        ("GET", "/api/v1/coordinator/decisions?form=2026-01-01", None, "Did you mean from?"),
        ("GET", "/api/v1/coordinator/status?x=1", None, "query: has no field named x."),
        (
            "POST",
            "/api/v1/llm-platform/web-search",
            {"query": "x", "freshnes": "oneDay"},
            "Did you mean freshness?",
        ),
    ],
)
async def test_a_name_that_nobody_has_is_told_the_nearest(client, method, path, body, said):
    answer = await client.request(method, path, json=body, headers={"Accept-Language": "en"})
    assert answer.status_code == 400
    assert said in answer.json()["message"]


async def test_a_model_that_nobody_added_is_told_the_nearest(client):
    await client.post(
        CONFIGS, json={"alias": "house-main", "base_url": "http://127.0.0.1:1/v1", "model_name": "m"}
    )
    answer = await client.get(f"{CONFIGS}/house-mian", headers={"Accept-Language": "en"})
    await client.delete(f"{CONFIGS}/house-main")  # the other tests of this desk ask no model
    assert answer.status_code == 404
    assert answer.json()["message"].endswith("Did you mean house-main?")


@pytest.mark.parametrize(
    ("missed", "meant"),
    [
        ("/api/v1/coordinator/reserch", "/api/v1/coordinator/research"),
        (f"{RESEARCH}/sesions/{UUID(int=7)}", SESSIONS),
        ("/heatlhz", "/healthz"),
        ("/API/V1/llm-platform/configs/", "/api/v1/llm-platform/configs"),
    ],
)
async def test_a_path_that_nobody_serves_is_told_the_nearest(client, missed, meant):
    answer = await client.get(missed, headers={"Accept-Language": "en"})
    assert answer.status_code == 404
    assert answer.json()["details"]["nearest"][0] == meant
    assert f"There is nothing here: GET {missed}. Did you mean {meant}" in answer.json()["message"]


@pytest.mark.parametrize(
    "body",
    [
        {**MACRO, "symbol": "9" * 100_000},
        {**MACRO, "symbol": {"a": [1, None, True]}},
        {**MACRO, "x" * 100_000: 1},
        {**MACRO, "experts": [None, True, "y" * 5_000]},
        {**MACRO, "experts": ["z"] * 50_000},
        {**MACRO, "skip_debate": [None] * 10_000},
        {**MACRO, "as_of": None, "max_cost": "1" * 3_000},
        {**MACRO, "as_of": ["2026"]},
        [None],
        None,
    ],
    ids=lambda body: str(body)[:60],
)
async def test_what_is_wrong_is_told_short_and_without_a_word_of_python(client, body):
    for locale in ("en", "zh"):
        answer = await client.post(RESEARCH, json=body, headers={"Accept-Language": locale})
        assert answer.status_code == 400
        message = answer.json()["message"]
        assert len(message) < 3_000
        assert not re.search(r"\bNone\b|NoneType|\bTrue\b|\bFalse\b|\bb'|<class|\bdict\b", message), message


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("short", 10, "short"),
        ("about 1234.56 more", 10, "about …"),
        ("about 1234.56 more", 14, "about 1234.56…"),
        ("plain words here", 8, "plain w…"),
        ("x -12e10 y", 5, "x …"),
    ],
)
async def test_a_number_is_never_cut(text, most, kept):
    assert shorten(text, most) == kept


async def test_values_are_quoted_as_they_were_sent():
    assert [quote(value) for value in (None, True, [1, None], {"a": "b"}, "it")] == [
        "null",
        "true",
        "[1,null]",
        '{"a":"b"}',
        "'it'",
    ]


async def test_the_nearest_are_found_whatever_their_case():
    assert nearest("OLAMA", ["ollama", "vllm"]) == ["ollama"]
    assert nearest("x" * 10_000, ["x" * 10_000]) == []
    several = refuse_field("unknown_field", "query", None, got=["pge", "zzz"], allowed=["page", "size"])
    assert several.details["errors"][0]["nearest"] == ["page"]
    assert "nearest" not in refuse_field("enum", "query", None, allowed=["a"]).details["errors"][0]
