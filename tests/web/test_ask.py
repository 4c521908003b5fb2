"""Asking in the console: what its pages say and refuse, and whom."""

import re

import pytest

from moot.web.formats import prose
from tests.access.desk import HERE, calling, new_key, open_app
from tests.web.conftest import OURS

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }} javascript:alert(1) \u202e"


@pytest.fixture
async def client(home, clock):
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        client.headers.update(OURS)
        yield client


async def test_what_is_wrong_is_said_beside_the_form_and_what_was_typed_stays(client):
    blank = await client.post("/ask", data={"question": "  "})
    assert (blank.status_code, 'aria-invalid="true"' in blank.text) == (400, True)
    many = await client.post("/ask", data={"question": HOSTILE, "max_step_num": "99"})
    assert many.status_code == 400
    assert "max_step_num" in many.text
    assert "&lt;script&gt;alert(1)" in many.text
    assert "<script>alert" not in many.text


async def test_hostile_words_of_a_question_are_words_on_every_page(client):
    begun = await client.post("/ask", data={"question": f"900001.DEMO {HOSTILE}"})
    assert begun.status_code == 303
    for path in (begun.headers["location"], "/ask"):
        shown = await client.get(path)
        assert shown.status_code == 200
        assert "<script>alert" not in shown.text
        assert "<img src=x" not in shown.text
        assert "{{ 7*7 }}" in shown.text


async def test_what_is_not_there_or_not_at_its_turn_is_said(client):
    nobody = "/ask/00000000-0000-4000-8000-000000000000"
    assert (await client.get(nobody)).status_code == 404
    assert (await client.post(f"{nobody}/resume")).status_code == 404
    begun = await client.post("/ask", data={"question": "hello"})
    thread = begun.headers["location"]
    async with client.stream("GET", f"{thread}/live") as told:
        assert "event: done" in (await told.aread()).decode()
    further = {"question": "And its debt?", "thread_id": thread.rpartition("/")[2], "max_step_num": "99"}
    beyond = await client.post("/ask", data=further)
    assert (beyond.status_code, "And its debt?" in beyond.text) == (400, True)
    assert re.search(r'<input id="max_step_num"[^>]*value="99"[^>]*aria-invalid="true"', beyond.text)
    wrong = await client.post(f"{thread}/feedback", data={"decision": "accepted"})
    assert wrong.status_code == 409
    assert 'role="alert"' in wrong.text


async def test_a_key_that_may_only_read_asks_nothing(home, clock):
    async with open_app(home, clock) as app:
        key = await new_key(app, "read")
        async with calling(app, key) as client:
            client.headers.update(OURS)
            assert '<form class="ask"' not in (await client.get("/ask")).text
            refused = await client.post("/ask", data={"question": "900001.DEMO"})
            assert refused.status_code == 403
            del client.headers["Origin"]
            client.headers["Sec-Fetch-Site"] = "cross-site"
            assert (await client.post("/ask", data={"question": "x"})).status_code == 403


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](data:text/html,1)",
        "<b onclick=x>",
        "![x](http://a/b.png)",
        "[x](//a.b)",
    ],
)
def test_markdown_of_strangers_brings_no_markup_and_leads_to_the_web_alone(text):
    shown = str(prose(text))
    assert not re.search(r'<img|<b|href="(?!http)', shown)


def test_a_cited_source_leads_to_it():
    assert 'href="#s-2">[2]</a>' in prose("as it is [2]", "s-")
    assert "href" not in prose("as it is [2]")


async def test_a_question_under_way_when_the_desk_closes_is_gone_on_with(home, clock):
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        client.headers.update(OURS)
        begun = await client.post("/ask", data={"question": "900001.DEMO?", "auto_accepted_plan": "on"})
    thread = begun.headers["location"]
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        client.headers.update(OURS)
        assert f'action="{thread}/resume"' in (await client.get(thread)).text
        assert (await client.post(f"{thread}/resume")).status_code == 303
        async with client.stream("GET", f"{thread}/live") as told:
            assert "event: done" in (await told.aread()).decode()
        assert f'action="{thread}/resume"' not in (await client.get(thread)).text
