"""Who may look at the console: keys, cookies, scopes, and pages of other sites that would like to."""

import re
from datetime import timedelta

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from moot.modules.access.domain import LOGGED_IN_FOR
from moot.modules.access.presentation import LOGIN_COOKIE
from tests.access.desk import HERE, calling, new_key
from tests.web.conftest import HTML, OURS

PAGES = ["/", "/research", "/sessions", "/sessions/last"]


async def log_in(client, key, to="/"):
    return await client.post("/login", data={"key": key, "next": to}, headers=OURS)


async def test_whoever_is_here_needs_no_key_while_there_is_none(app):
    async with calling(app, address=HERE) as client:
        answer = await client.get("/", headers=HTML)
    assert (answer.status_code, "Welcome to the desk" in answer.text) == (200, True)


async def test_a_program_is_still_told_where_the_api_is(app):
    async with calling(app) as client:
        answer = await client.get("/", headers={"Accept": "application/json"})
    assert answer.json()["api"] == "/api/v1"


@pytest.mark.parametrize("path", PAGES)
async def test_whoever_has_no_key_is_asked_for_it_and_comes_back_to_the_page(app, path):
    key = await new_key(app, "research")
    async with calling(app) as client:
        answer = await client.get(f"{path}?a=1", headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}%3Fa%3D1")
        asked = await client.get(answer.headers["location"])
        assert f'name="next" value="{path}?a=1"' in asked.text
        entered = await log_in(client, key, to=path)
        assert (entered.status_code, entered.headers["location"]) == (303, path)
        assert (await client.get(path, headers=HTML)).status_code in {200, 404}


async def test_every_page_is_closed_to_strangers(app):
    shut = [
        (method, re.sub(r"{\w+}", "last", route.path or ""))
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, APIRoute)
        and route.original_route.endpoint.__module__.startswith("moot.web.")
        for method in route.original_route.methods
        if route.path not in {"/login", "/preferences"}
    ]
    assert len(shut) >= 10
    for number, (method, path) in enumerate(shut):
        async with calling(app, address=f"203.0.113.{number}") as client:
            answer = await client.request(method, path, headers=OURS)
        assert answer.status_code == 303, (method, path)
        assert answer.headers["location"].startswith("/login?next=/")


async def test_the_cookie_is_not_the_key_and_no_script_or_other_site_gets_it(app):
    key = await new_key(app, "read")
    async with calling(app) as client:
        answer = await log_in(client, key)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{LOGIN_COOKIE}=")
    assert ("HttpOnly" in cookie, "SameSite=strict" in cookie, key in cookie) == (True, True, False)


async def test_a_wrong_key_is_refused_in_the_form(app):
    await new_key(app, "read")
    async with calling(app) as client:
        answer = await log_in(client, "moot_aaaaaaaa_" + "b" * 43)
    assert (answer.status_code, LOGIN_COOKIE in answer.cookies) == (401, False)
    assert "This key is not valid" in answer.text


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1"])
async def test_nobody_is_sent_elsewhere_after_the_login(app, to):
    key = await new_key(app, "read")
    async with calling(app) as client:
        assert (await log_in(client, key, to=to)).headers["location"] == "/"


async def test_a_login_opens_pages_and_not_the_api(app):
    """So that no form of another site can use the API with a reader's cookie."""
    key = await new_key(app, "admin")
    async with calling(app) as client:
        await log_in(client, key)
        assert (await client.get("/sessions", headers=HTML)).status_code == 200
        assert (await client.get("/api/v1/coordinator/research/sessions")).status_code == 401


async def test_a_login_ends_with_its_key(app):
    issued = await app.state.access.create("short", ["read"])
    async with calling(app) as client:
        await log_in(client, issued.secret)
        await app.state.access.revoke(issued.key.id)
        assert (await client.get("/sessions", headers=HTML)).status_code == 303


async def test_a_login_ends_in_time(app, monkeypatch):
    async with calling(app) as client:
        await log_in(client, await new_key(app, "read"))
        access = app.state.access
        later = access._clock.now() + LOGGED_IN_FOR + timedelta(seconds=1)
        monkeypatch.setattr(access, "_clock", type("Later", (), {"now": lambda _: later})())
        assert (await client.get("/sessions", headers=HTML)).status_code == 303


async def test_whoever_logs_out_is_out_even_with_the_cookie(app):
    async with calling(app) as client:
        await log_in(client, await new_key(app, "read"))
        token = client.cookies[LOGIN_COOKIE]
        assert (await client.post("/logout", headers=OURS)).headers["location"] == "/login"
        assert LOGIN_COOKIE not in client.cookies
        client.cookies.set(LOGIN_COOKIE, token)
        assert (await client.get("/sessions", headers=HTML)).status_code == 303


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize(
    "path", ["/research", "/logout", "/watch", "/preferences", "/login", "/sessions/last/cancel"]
)
async def test_a_form_of_another_site_is_refused(app, headers, path):
    async with calling(app) as client:
        await log_in(client, await new_key(app, "admin"))
        answer = await client.post(path, data={"symbol": "900001.DEMO"}, headers=HTML | headers)
        assert (answer.status_code, "not sent from a page of this desk" in answer.text) == (403, True)


async def test_the_browsers_own_word_is_enough(app):
    async with calling(app) as client:
        await log_in(client, await new_key(app, "read"))
        answer = await client.post("/logout", headers={"Sec-Fetch-Site": "same-origin"})
        assert answer.status_code == 303


async def test_without_a_key_on_this_machine_forms_of_other_sites_are_refused_too(app):
    async with calling(app, address=HERE) as client:
        answer = await client.post("/research", data={"symbol": "900001.DEMO"}, headers=FOREIGN[0])
        assert answer.status_code == 403
        assert (await app.state.desk.sessions()).total == 0


async def test_whoever_may_only_read_is_offered_nothing_else(app):
    async with calling(app) as client:
        await log_in(client, await new_key(app, "read"))
        page = (await client.get("/", headers=HTML)).text
        assert ('href="/research"' in page, 'action="/research"' in page) == (False, False)
        begun = await client.post("/research", data={"symbol": "900001.DEMO"}, headers=OURS)
        assert (begun.status_code, "Not with this key" in begun.text) == (403, True)


async def test_a_page_shows_what_is_of_its_workspace_alone(app):
    ours, theirs = await new_key(app, "research"), await new_key(app, "research", workspace="theirs")
    async with calling(app) as client, calling(app) as other:
        await log_in(client, ours)
        begun = await client.post("/research", data={"symbol": "900001.DEMO"}, headers=OURS)
        place = begun.headers["location"]
        assert (await client.get(place, headers=HTML)).status_code == 200
        await log_in(other, theirs)
        assert (await other.get(place, headers=HTML)).status_code == 404
        assert "900001.DEMO" not in (await other.get("/sessions", headers=HTML)).text


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.mark.parametrize("path", [*PAGES, "/login", "/nowhere"])
async def test_every_page_says_what_it_may_do(app, path):
    async with calling(app, address=HERE) as client:
        answer = await client.get(path, headers=HTML)
    told = [
        answer.headers[name]
        for name in ("content-security-policy", "x-content-type-options", "referrer-policy")
    ]
    assert told == [POLICY, "nosniff", "same-origin"]
    assert not re.search(r"<style|<script>|\sstyle=|\son\w+=|javascript:", answer.text)


@pytest.mark.parametrize(
    ("language", "title"), [("en", "There is nothing here"), ("zh-CN,en;q=0.5", "此处没有内容")]
)
async def test_what_goes_wrong_on_a_page_is_a_page_and_elsewhere_json(app, language, title):
    async with calling(app, address=HERE) as client:
        page = await client.get("/nowhere", headers={**HTML, "Accept-Language": language})
        assert (page.status_code, f"<h1>{title}</h1>" in page.text) == (404, True)
        for path, accept in (("/api/v1/nowhere", "text/html"), ("/nowhere", "application/json")):
            answer = await client.get(path, headers={"Accept": accept})
            assert (answer.status_code, answer.json()["success"]) == (404, False)


async def test_a_defect_is_a_page_that_tells_nothing(app, monkeypatch):
    monkeypatch.setattr("moot.web.today._sessions", None)
    async with calling(app, address=HERE) as client:
        answer = await client.get("/", headers=HTML)
    assert (answer.status_code, "<h1>Something went wrong</h1>" in answer.text) == (500, True)
    assert "NoneType" not in answer.text


async def test_a_reader_is_remembered_with_their_language_and_colours(app):
    async with calling(app, address=HERE) as client:
        for chosen in ({"locale": "zh-CN"}, {"theme": "dark"}, {"tones": "green"}, {"theme": "pink"}):
            answer = await client.post("/preferences", data={**chosen, "next": "/sessions"}, headers=OURS)
            assert answer.headers["location"] == "/sessions"
        page = (await client.get("/sessions", headers=HTML)).text
    assert '<html lang="zh-CN" data-theme="dark" data-tones="green">' in page


async def test_a_form_is_for_pages_and_json_for_the_api(app):
    async with calling(app, address=HERE) as client:
        answer = await client.post("/api/v1/watchlists", data={"symbols": "900001.DEMO"})
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        broken = await client.post(
            "/watch", content=b"\xff", headers={**OURS, "Content-Type": "application/x-www-form-urlencoded"}
        )
        assert (broken.status_code, "could not be read" in broken.text) == (400, True)
