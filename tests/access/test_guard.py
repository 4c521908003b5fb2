"""The guard before every route: who gets in, from where, with what; and what the others are told."""

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from structlog.testing import capture_logs

from moot.modules.access.domain import Buckets, mint
from moot.modules.access.presentation import find_scope, is_loopback
from tests.access.desk import ELSEWHERE, HERE, calling, new_key

INTAKE = "/api/v1/coordinator/intake"
SESSIONS = "/api/v1/coordinator/research/sessions"
RESEARCH = "/api/v1/coordinator/research"
CONFIGS = "/api/v1/llm-platform/configs"
MACRO = {"symbol": "900001.DEMO", "experts": ["macro_intelligence"], "skip_debate": True}


async def test_this_machine_needs_no_key(app):
    for address in (HERE, "127.8.8.8", "::1"):
        async with calling(app, address=address) as client:
            assert (await client.get(SESSIONS)).status_code == 200


async def test_everybody_else_is_told_how_to_get_in(app):
    async with calling(app) as client:
        answer = await client.get(SESSIONS)
        chinese = await client.get(SESSIONS, headers={"Accept-Language": "zh"})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    body = answer.json()
    assert body.keys() == {"success", "code", "message", "details"}
    assert (body["success"], body["code"], body["details"]) == (False, "UNAUTHENTICATED", {})
    assert body["message"].startswith("This needs a key: send it as Authorization: Bearer, or as X-API-Key.")
    assert chinese.json()["message"].startswith("此处需要访问密钥")


async def test_a_server_that_others_can_reach_asks_this_machine_for_a_key_too(app):
    app.state.open_to_loopback = False
    async with calling(app, address=HERE) as client:
        assert (await client.get(SESSIONS)).status_code == 401
    async with calling(app, await new_key(app, "read"), address=HERE) as client:
        assert (await client.get(SESSIONS)).status_code == 200


PROXY_HEADERS = [
    "Forwarded",
    "Forwarded-For",
    "X-Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X-Forwarded-Server",
    "X-Original-Forwarded-For",
    "X-Real-IP",
    "Via",
    "CF-Connecting-IP",
    "CF-Ray",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "Fastly-Client-IP",
    "Fly-Client-IP",
    "X-Remote-IP",
    "X-Remote-Addr",
    "X-Originating-IP",
    "X-Azure-ClientIP",
    "X-ARR-ClientIP",
    "X-AppEngine-User-IP",
    "X-Envoy-External-Address",
    "X-Original-Host",
    "X-Original-URL",
    "CDN-Loop",
    "Proxy-Connection",
    "X-ProxyUser-Ip",
]


@pytest.mark.parametrize(
    "header",
    PROXY_HEADERS,
)
async def test_what_a_proxy_on_this_machine_delivers_is_not_from_this_machine(app, header):
    async with calling(app, address=HERE) as client:
        assert (await client.get(SESSIONS, headers={header: "10.0.0.1"})).status_code == 401
        assert (await client.get("/healthz", headers={header: "10.0.0.1"})).status_code == 200


async def test_what_a_browser_on_this_machine_sends_is_from_this_machine(app):
    browser = {
        "User-Agent": "Mozilla/5.0",
        "Accept": "text/html",
        "Accept-Encoding": "gzip, br",
        "Connection": "keep-alive",
        "Cookie": "a=b",
        "DNT": "1",
        "Priority": "u=0, i",
        "Referer": "http://localhost/docs",
        "Sec-Fetch-Site": "same-origin",
        "Sec-CH-UA-Platform": "x",
        "Upgrade-Insecure-Requests": "1",
        "X-Requested-With": "XMLHttpRequest",
        "X-Request-Id": "1",
        "Traceparent": "00-1",
    }
    async with calling(app, address=HERE) as client:
        assert (await client.get(SESSIONS, headers=browser)).status_code == 200


async def test_once_there_are_keys_this_machine_needs_one_too(app):
    async with calling(app, address=HERE) as client:
        assert (await client.get(SESSIONS)).status_code == 200
        issued = await app.state.access.create("first", ["read"])
        refused = await client.get(SESSIONS)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.json()["message"].endswith("moot serve --open asks for none.")
        assert (await client.get(SESSIONS, headers={"X-API-Key": issued.secret})).status_code == 200
        app.state.open_with_keys = True
        assert (await client.get(SESSIONS)).status_code == 200
        app.state.open_with_keys = False
        await app.state.access.revoke(issued.key.id)
        assert (await client.get(SESSIONS)).status_code == 200, "nobody could get in any other way"


@pytest.mark.parametrize("sent", ["Basic dTpw", "Bearer", "Bearer x", "Negotiate abc", "", "moot"])
async def test_whoever_says_who_they_are_has_to_be_it_also_where_nobody_has_to(app, sent):
    async with calling(app, address=HERE) as client:
        answer = await client.get(SESSIONS, headers={"Authorization": sent})
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
        app.state.open_with_keys = True
        key = {"X-API-Key": await new_key(app, "read")}
        assert (await client.get(SESSIONS, headers={"Authorization": sent, **key})).status_code == 401


LOCAL = {"alias": "local", "base_url": "http://127.0.0.1:11434/v1", "model_name": "m"}
WITHIN = [
    {},
    {"base_url": "http://10.1.2.3/v1"},
    {"base_url": "http://[::1]:8000/v1"},
    {"base_url": "http://localhost:8000/v1"},
    {"base_url": "http://169.254.169.254/latest"},
    {"base_url": "http://0x7f000001/v1"},
    {"base_url": None, "preset": "ollama"},
    {"base_url": "https://203.0.113.1/v1"},
    {"base_url": "https://8.8.8.8/v1", "proxy": "http://192.168.1.1:3128"},
]


@pytest.mark.parametrize("change", WITHIN, ids=str)
async def test_with_a_key_no_model_can_be_had_inside_the_desks_network(app, change):
    async with calling(app, await new_key(app, "admin")) as client:
        answer = await client.post(CONFIGS, json={**LOCAL, **change})
        (problem,) = answer.json()["details"]["errors"]
        field = "proxy" if "proxy" in change else "base_url"
        assert (answer.status_code, problem["field"], problem["problem"]) == (400, field, "not_public")
        assert "MOOT_PRIVATE_URLS=on" in answer.json()["message"]
        outside = {**LOCAL, "base_url": "https://8.8.8.8/v1"}
        assert (await client.post(CONFIGS, json=outside)).json()["public_only"] is True
        moved = await client.patch(f"{CONFIGS}/local", json={"base_url": "http://127.0.0.1/v1"})
        assert moved.status_code == 400
        renamed = await client.patch(f"{CONFIGS}/local", json={"description": "x"})
        assert (renamed.json()["base_url"], renamed.json()["public_only"]) == ("https://8.8.8.8/v1", True)


async def test_the_owner_of_the_desk_has_local_models_and_may_allow_them_to_keys(app):
    async with calling(app, address=HERE) as client:
        assert (await client.post(CONFIGS, json=LOCAL)).json()["public_only"] is False
    async with calling(app, await new_key(app, "admin")) as client:
        allowing = app.state.desk.settings.model_copy(update={"private_urls": True})
        app.state.llm_platform._settings = allowing
        assert (await client.post(CONFIGS, json={**LOCAL, "alias": "theirs"})).status_code == 201


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.8.8.8", "[::1]:8000"])
async def test_by_its_own_name_the_desk_answers_this_machine_without_a_key(app, host):
    async with calling(app, address=HERE) as client:
        assert (await client.get(SESSIONS, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example:8000",
        "localhost.example",
        "127.0.0.1.example",
        "0.0.0.0:8000",
        "10.0.0.1",
        "[::1",
        "",
    ],
)
async def test_a_page_whose_name_points_here_is_not_this_machine(app, host):
    async with calling(app, address=HERE) as client:
        answer = await client.get(SESSIONS, headers={"Host": host})
        assert (answer.status_code, answer.json()["code"]) == (403, "HOST_REFUSED")
        assert (await client.get("/healthz", headers={"Host": host})).status_code == 200
    async with calling(app, await new_key(app, "read"), address=HERE) as client:
        assert (await client.get(SESSIONS, headers={"Host": host})).status_code == 200


async def test_who_uses_another_name_is_told_what_to_do_in_both_languages(app):
    async with calling(app, address=HERE) as client:
        answer = await client.get(SESSIONS, headers={"Host": "desk.example:8000"})
        chinese = await client.get(SESSIONS, headers={"Host": "desk.example", "Accept-Language": "zh"})
    assert answer.json() == {
        "success": False,
        "code": "HOST_REFUSED",
        "message": "Without a key this desk answers only at its own address, and 'desk.example:8000' is not that. "
        "Use 127.0.0.1 or localhost with the same port, or send a key.",
        "details": {"host": "desk.example:8000"},
    }
    assert chinese.json()["message"].startswith(
        "不带密钥时，本研究台只应答其自身地址，而 'desk.example' 不是。"
    )


ELSEWHERES_PAGES = ["https://evil.example", "http://localhost:3000", "http://127.0.0.1:8000", "null", ""]


@pytest.mark.parametrize("origin", ELSEWHERES_PAGES)
async def test_a_page_of_another_site_changes_nothing_without_a_key(app, origin):
    page = {"Host": "localhost:8000", "Origin": origin}
    async with calling(app, address=HERE) as client:
        answer = await client.post(RESEARCH, json=MACRO, headers=page)
        assert (answer.status_code, answer.json()["code"]) == (403, "ORIGIN_REFUSED")
        assert (await client.get(SESSIONS)).json()["total"] == 0
    async with calling(app, await new_key(app, "research"), address=HERE) as client:
        assert (await client.post(RESEARCH, json=MACRO, headers=page)).status_code == 200


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000"])
async def test_the_desks_own_page_may_change_what_this_machine_may(app, host):
    async with calling(app, address=HERE) as client:
        asked = await client.post(RESEARCH, json=MACRO, headers={"Host": host, "Origin": f"http://{host}"})
        assert asked.status_code == 200
        other = await client.get(SESSIONS, headers={"Host": host, "Origin": "https://evil.example"})
    assert other.status_code == 200
    assert "access-control-allow-origin" not in other.headers, "so the other page cannot read it"


async def test_who_keeps_coming_without_a_valid_key_is_sent_away_and_a_right_key_is_not(app):
    async with calling(app) as client:
        answers = [await client.get(SESSIONS) for _ in range(64)]
        refused = next(answer for answer in answers if answer.status_code != 401)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["code"] == "TOO_MANY_REQUESTS"
    async with calling(app, await new_key(app, "read")) as client:
        assert (await client.get(SESSIONS)).status_code == 200


async def test_who_calls_from_nowhere_needs_a_key(app):
    async def without_client(scope, receive, send):
        await app({**scope, "client": None}, receive, send)

    transport = httpx.ASGITransport(app=without_client)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get(SESSIONS)).status_code == 401


async def test_a_key_may_come_in_either_header(app):
    key = await new_key(app, "read")
    async with calling(app) as client:
        for header in (
            {"Authorization": f"Bearer {key}"},
            {"authorization": f"bearer  {key}"},
            {"X-API-Key": key},
        ):
            assert (await client.get(SESSIONS, headers=header)).status_code == 200, header
        for header in ({"Authorization": f"Basic {key}"}, {"Authorization": key}, {"Cookie": f"key={key}"}):
            assert (await client.get(SESSIONS, headers=header)).status_code == 401, header
        assert (await client.get(SESSIONS, params={"key": key})).status_code == 401


@pytest.mark.parametrize("address", [HERE, ELSEWHERE])
async def test_a_key_that_does_not_count_is_refused_everywhere(app, address):
    service = app.state.access
    key, revoked = await service.create("test")
    await service.revoke(key.id)
    async with calling(app, address=address) as client:
        for wrong in (mint(), revoked, "", "moot", "ключ".encode()):
            answer = await client.get(SESSIONS, headers={"X-API-Key": wrong})
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
            assert "unknown, or it was revoked" in answer.json()["message"]


async def test_a_scope_that_is_missing_is_named_in_both_languages(app):
    async with calling(app, await new_key(app, "read", "approve")) as client:
        answer = await client.post(RESEARCH, json=MACRO)
        chinese = await client.post(RESEARCH, json=MACRO, headers={"Accept-Language": "zh-CN"})
    assert answer.status_code == 403
    assert answer.json() == {
        "success": False,
        "code": "FORBIDDEN",
        "message": "This needs the scope research; the key test has read, approve.",
        "details": {"needed": "research", "scopes": ["read", "approve"]},
    }
    assert chinese.json()["message"] == "此处需要权限 research；密钥 test 的权限为 read、approve。"


async def test_who_asks_too_often_is_told_when_to_ask_again(app, monkeypatch):
    monkeypatch.setattr(app.state.access, "_seconds", lambda: 0.0)
    monkeypatch.setattr(app.state.access, "_requests", Buckets(60))
    async with calling(app, await new_key(app, "read")) as client:
        *_, last, refused = [await client.get("/api/v1/llm-platform/presets") for _ in range(61)]
    assert last.status_code == 200
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json()["code"] == "TOO_MANY_REQUESTS"


@pytest.mark.accepts("A4-27")
async def test_questions_have_one_door_where_keys_limits_and_checks_stand(app, monkeypatch):
    monkeypatch.setattr(app.state.access, "_seconds", lambda: 0.0)
    monkeypatch.setattr(app.state.access, "_requests", Buckets(20))
    asked = {"question": "Is 900001.DEMO cheap?"}
    asking = await new_key(app, "research")
    for key, status in ((mint(), 401), (await new_key(app, "read"), 403)):
        async with calling(app, key) as client:
            assert (await client.post(INTAKE, json=asked)).status_code == status
    async with calling(app, asking) as client:
        answers = [(await client.post(INTAKE, json={})).status_code for _ in range(21)]
        assert (answers[0], answers[-1], set(answers)) == (400, 429, {400, 429})
        assert (await client.post(INTAKE, json=asked)).status_code == 429
    async with calling(app, await new_key(app, "read")) as client:
        assert (await client.get(INTAKE)).json() == [], "nobody got in"


async def test_a_key_works_in_its_workspace_also_on_this_machine(app):
    mine = await new_key(app, "research", workspace="team-a")
    app.state.open_with_keys = True
    async with calling(app, mine, address=HERE) as client:
        done = (await client.post(RESEARCH, json=MACRO)).json()
        assert (await client.get(f"{SESSIONS}/{done['session_id']}")).status_code == 200
        assert (await client.get(SESSIONS)).json()["total"] == 1
    async with calling(app, address=HERE) as client:
        assert (await client.get(f"{SESSIONS}/{done['session_id']}")).status_code == 404
        assert (await client.get(SESSIONS)).json()["total"] == 0


async def test_health_and_documentation_are_open_to_all(app):
    app.state.open_to_loopback = False
    async with calling(app) as client:
        for path in ("/", "/healthz", "/readyz", "/docs", "/openapi.json", "/docs/assets/swagger-ui.css"):
            assert (await client.get(path)).status_code == 200, path
        for path in ("/x", "/docs/x", "/healthz/", "/docs/assets/../../api/v1/x", "/nothing"):
            assert (await client.get(path)).status_code == 401, path


async def test_a_route_that_is_added_later_is_guarded_and_needs_the_most(app):
    app.post("/api/v1/new")(lambda: {"done": True})
    app.router.routes.insert(0, Mount("/sub", PlainTextResponse("inside")))
    async with calling(app) as client:
        assert (await client.post("/api/v1/new")).status_code == 401
        assert (await client.get("/sub/x")).status_code == 401
    async with calling(app, await new_key(app, "research", "approve")) as client:
        assert (await client.post("/api/v1/new")).status_code == 403
        assert (await client.get("/sub/x")).text == "inside"
    async with calling(app, await new_key(app, "admin")) as client:
        assert (await client.post("/api/v1/new")).json() == {"done": True}


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", SESSIONS, "read"),
        ("HEAD", CONFIGS, "read"),
        ("POST", RESEARCH, "research"),
        ("POST", f"{RESEARCH}/7d3c8a52/retry", "research"),
        ("POST", f"{SESSIONS}/7d3c8a52/retry", "research"),
        ("POST", f"{SESSIONS}/7d3c8a52/contest", "research"),
        ("POST", f"{SESSIONS}/7d3c8a52/cancel", "research"),
        ("GET", f"{SESSIONS}/7d3c8a52/events", "read"),
        ("POST", f"{SESSIONS}/7d3c8a52/approve", "admin"),
        ("DELETE", f"{SESSIONS}/7d3c8a52", "admin"),
        ("POST", "/api/v1/llm-platform/chat/generate", "research"),
        ("POST", "/api/v1/llm-platform/web-search", "research"),
        ("POST", CONFIGS, "admin"),
        ("POST", f"{CONFIGS}/refresh", "admin"),
        ("PATCH", f"{CONFIGS}/main", "admin"),
        ("DELETE", f"{CONFIGS}/main", "admin"),
    ],
)
def test_what_a_request_needs(method, path, scope):
    assert find_scope(method, path) == scope


async def test_the_log_tells_of_a_refusal_and_not_of_the_key(app):
    key = await new_key(app, "read")
    with capture_logs() as logs:
        async with calling(app, key) as client:
            await client.post(CONFIGS, json={})
    assert logs == [
        {
            "event": "request refused",
            "log_level": "info",
            "code": "FORBIDDEN",
            "method": "POST",
            "path": CONFIGS,
        }
    ]


async def test_keys_that_cannot_be_looked_up_let_nobody_in(app):
    key = await new_key(app, "read")
    database = app.state.desk.database
    await database.downgrade("base")
    async with calling(app, key) as client:
        answer = await client.get(SESSIONS)
    await database.upgrade()
    assert (answer.status_code, answer.json()["code"]) == (503, "STORE_FAILED")


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_what_is_this_machine(host, private):
    assert is_loopback(host) is private
