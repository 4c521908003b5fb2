"""Approvals and rules in the console: what their pages say and refuse, whom they let, and what stays words."""

import re

import pytest

from tests.access.desk import calling, new_key, open_app
from tests.web.conftest import OURS

V1 = "/api/v1/coordinator"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"
RULE = """\
rules:
  - id: my.rule
    name: 'A <b>rule</b>'
    category: behavior
    decision_types: [verdict]
    condition: payload.action == 'BUY'
    action: reject
    examples:
      - {violates: true, payload: {action: BUY}}
      - {violates: false, payload: {action: HOLD}}
"""


@pytest.fixture
async def app(home, clock):
    async with open_app(home, clock) as app:
        yield app


async def escalate(client, sql="SELECT 1", **more):
    body = {
        "decision_type": "tool_call",
        "payload": {"tool": "database", "args": {"sql": sql}},
        "context": {"open_breakers": ["tushare"]},
        **more,
    }
    asked = await client.post(f"{V1}/decisions", json=body)
    assert asked.status_code == 202
    return asked.json()["escalation_id"]


async def save_rule(client, yaml=RULE):
    saved = await client.post("/rules/edit", data={"yaml": yaml})
    assert saved.status_code == 303
    return saved.headers["location"]


def is_harmless(text):
    return "<script>alert" not in text and "<img src=x" not in text


async def test_what_waits_is_told_with_why_and_who_asked(client):
    one = await escalate(client, requester="trader")
    for path in ("/approvals", f"/approvals/{one}"):
        shown = await client.get(path)
        assert shown.status_code == 200
        assert all(word in shown.text for word in ("trader", "SELECT 1", "open_breakers"))


async def test_an_answer_is_kept_with_its_reason_and_who_gave_it(client):
    one = await escalate(client)
    done = await client.post(f"/approvals/{one}", data={"answer": "reject", "reason": "no", "by": "Li Ming"})
    assert (done.status_code, done.headers["location"]) == (303, f"/approvals/{one}")
    kept = (await client.get(f"{V1}/escalations/{one}", headers={"Accept": "application/json"})).json()
    assert (kept["status"], kept["decided_by"], kept["reason"]) == ("rejected", "Li Ming", "no")
    late = await client.post(f"/approvals/{one}", data={"answer": "approve", "reason": "yes"})
    assert (late.status_code, "rejected" in late.text) == (409, True)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"answer": "approve"}, "reason"),
        ({"answer": "perhaps", "reason": "x"}, "answer"),
        ({"answer": "edit", "reason": "x", "payload": "{"}, "payload"),
        ({"answer": "edit", "reason": "x", "payload": "[1]"}, "payload"),
    ],
)
async def test_an_answer_that_says_nothing_is_refused_by_its_field(client, sent, field):
    one = await escalate(client)
    refused = await client.post(f"/approvals/{one}", data=sent)
    assert refused.status_code == 400
    assert field in re.search(r'class="flaw"[^>]*>([^<]+)', refused.text)[1]


async def test_what_the_rules_forbid_cannot_be_approved_instead(client):
    one = await escalate(client)
    payload = '{"tool": "database", "args": {"sql": "DROP TABLE bars"}}'
    refused = await client.post(
        f"/approvals/{one}", data={"answer": "edit", "reason": "x", "payload": payload}
    )
    assert (refused.status_code, "DROP TABLE bars" in refused.text) == (403, True)


async def test_answering_takes_its_scope_and_nobody_answers_themselves(app):
    reader, approver = (
        await new_key(app, "read", "research"),
        await new_key(app, "read", "research", "approve"),
    )
    async with calling(app, reader) as client:
        client.headers.update(OURS)
        one = await escalate(client)
        assert '<form method="post" action="/approvals' not in (await client.get("/approvals")).text
        assert (await client.post(f"/approvals/{one}", data={"answer": "approve"})).status_code == 403
    async with calling(app, approver) as client:
        client.headers.update(OURS)
        own = await client.post(f"/approvals/{one}", data={"answer": "approve", "reason": "x"})
        assert own.status_code == 403  # both keys are called the same
        assert 'role="alert"' in own.text


async def test_hostile_words_of_agents_and_people_stay_words(client):
    payload = {"tool": "mail", "args": {"text": HOSTILE}}
    one = await escalate(client, payload=payload, requester="<script>alert(1)</script>")
    sent = {"answer": "reject", "reason": HOSTILE, "by": "<img src=x onerror=alert(1)>"}
    for path in ("/approvals", f"/approvals/{one}"):
        assert is_harmless((await client.get(path)).text)
    await client.post(f"/approvals/{one}", data=sent)
    for path in (f"/approvals/{one}", "/approvals?status=decided"):
        shown = await client.get(path)
        assert is_harmless(shown.text)
        assert "{{ 7*7 }}" in shown.text


async def test_a_mistake_is_found_by_line_and_column(client):
    wrong = RULE.replace("payload.action ==", "payload.actoin ==")
    told = await client.post("/rules/check", data={"yaml": wrong}, headers={"HX-Request": "true"})
    assert told.status_code == 200
    assert re.search(r"line 6, column \d+", told.text)
    assert "actoin" in told.text
    assert "<html" not in told.text
    refused = await client.post("/rules/edit", data={"yaml": wrong})
    assert (refused.status_code, "line 6, column" in refused.text) == (400, True)


async def test_an_example_that_comes_out_otherwise_keeps_a_rule_from_being_saved(client):
    refused = await client.post("/rules/edit", data={"yaml": RULE.replace("action: HOLD", "action: BUY")})
    assert (refused.status_code, "examples.1" in refused.text) == (400, True)


async def test_a_rule_decides_once_it_is_put_in_force_and_no_more_once_it_is_taken_back(client):
    async def buys():
        body = {"decision_type": "verdict", "payload": {"action": "BUY"}}
        told = await client.post(f"{V1}/decisions?dry_run=true", json=body)
        return "my.rule" in told.text

    where = await save_rule(client)
    shown = await client.get(where)
    assert "A &lt;b&gt;rule&lt;/b&gt;" in shown.text
    assert 'name="instead_of" value="0"' in shown.text
    assert not await buys()
    assert (await client.post(f"{where}/activate", data={"instead_of": "0"})).status_code == 303
    assert await buys()
    assert "my.rule" in (await client.get("/rules/rollback")).text
    assert (await client.post("/rules/rollback")).status_code == 303
    assert not await buys()


async def test_what_was_put_in_force_meanwhile_is_not_overwritten_unseen(client):
    one = await save_rule(client)
    other = await save_rule(client, RULE.replace("my.rule", "your.rule"))
    await client.post(f"{other}/activate", data={"instead_of": "0"})
    late = await client.post(f"{one}/activate", data={"instead_of": "0"})
    assert late.status_code == 409
    assert 'name="instead_of" value="2"' in late.text
    assert (await client.post(f"{one}/activate", data={"instead_of": "x"})).status_code == 400


async def test_a_changed_rule_shows_each_field_before_and_after(client):
    await client.post(f"{await save_rule(client)}/activate", data={"instead_of": "0"})
    assert "my.rule" in (await client.get("/rules/edit?rule=my.rule")).text
    changed = await client.get(await save_rule(client, RULE.replace("action: reject", "action: log_warning")))
    assert re.search(r"<pre>reject</pre>.*<pre>log_warning</pre>", changed.text, re.DOTALL)
    gone = await client.post("/rules/remove", data={"rule": "my.rule"})
    assert "removed" in (await client.get(gone.headers["location"])).text


async def test_rules_are_tried_on_what_was_decided(client):
    body = {"decision_type": "verdict", "payload": {"action": "BUY", "position_percent": 0.01}}
    await client.post(f"{V1}/decisions", json=body)
    where = await save_rule(client)
    told = await client.post(f"{where}/simulate", data={"since": "2020-01-01"})
    assert "1 decisions" in told.text
    wrong = await client.post(f"{where}/simulate", data={"since": "yesterday"})
    assert (wrong.status_code, "since" in wrong.text) == (400, True)


async def test_what_is_not_there_is_not_found(client):
    for path in ("/rules/no.such", "/rules/sets/77", "/rules/edit?rule=no.such", "/rules/sets/99999999999"):
        assert (await client.get(path)).status_code in {400, 404}, path
    assert (await client.post("/rules/remove", data={"rule": "no.such"})).status_code == 404


@pytest.mark.parametrize(
    "yaml", [HOSTILE, "rules: [", "a: *b", "x" * 1_100_000, "rules:\n  - id: " + HOSTILE]
)
async def test_hostile_rules_are_told_what_is_wrong(client, yaml):
    told = await client.post("/rules/edit", data={"yaml": yaml})
    assert told.status_code in {400, 413}
    assert is_harmless(told.text)


async def test_changing_rules_takes_admin_and_trying_them_research(app):
    key = await new_key(app, "read", "research")
    async with calling(app, key) as client:
        client.headers.update(OURS)
        assert (await client.get("/rules")).status_code == 200
        assert (await client.post("/rules/check", data={"yaml": RULE})).status_code == 200
        for path in ("/rules/edit", "/rules/remove", "/rules/rollback", "/rules/sets/0/activate"):
            assert (await client.post(path, data={"yaml": RULE})).status_code == 403, path
        client.headers["Origin"] = "https://elsewhere.example"
        assert (await client.post("/rules/check", data={"yaml": RULE})).status_code == 403
