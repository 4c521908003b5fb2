"""Work at the console in a browser: asking, approving, changing the rules, looking after the desk."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.web.conftest import IN_TIME_MS, console, find_barriers, let_everybody_in, look_on_a_phone

expect.set_options(timeout=IN_TIME_MS)

WORDS = {
    "en-US": ("Is 900001.DEMO cheap?", "Accept the plan", "And 900002.DEMO?", "Ask"),
    "zh-CN": ("900001.DEMO 估值高吗？", "接受计划", "900002.DEMO 呢？", "提问"),
}


@pytest.mark.parametrize("locale", WORDS)
def test_from_a_question_to_its_answer_and_the_next_question(served, look, locale):
    question, accept, more, ask = WORDS[locale]
    page = look(f"{served}/ask", locale=locale)
    let_everybody_in(page, locale)
    page.locator("#question").fill(question)
    page.get_by_role("button", name=ask, exact=True).click()
    page.wait_for_url(re.compile(r"/ask/[0-9a-f-]{36}$"))
    page.get_by_role("button", name=accept).wait_for()
    expect(page.locator("[data-stream]")).to_have_count(
        0
    )  # the plan came by the stream, which then ends in a reload
    expect(page.locator(".step-waiting")).to_have_count(1)
    let_everybody_in(page, locale)
    page.get_by_role("button", name=accept).click()
    expect(page.locator(".answer")).to_be_visible()
    expect(page.locator("[data-stream]")).to_have_count(0)
    page.locator(".plan summary").click()
    expect(page.locator(".step-completed")).to_have_count(1)
    let_everybody_in(page, locale)
    page.locator(".sources a").first.click()
    page.wait_for_url(re.compile(r"/sessions/"))
    page.go_back()
    page.locator("#question").fill(more)
    page.get_by_text(re.compile("Go ahead|直接进行")).click()
    page.get_by_role("button", name=ask, exact=True).click()
    expect(page.locator(".answer")).to_have_count(2)
    expect(page.locator("[data-stream]")).to_have_count(0)


def test_what_needs_a_model_is_answered_honestly(served, look):
    page = look(f"{served}/ask")
    page.locator("#question").fill("hello")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".card").last).to_contain_text("Questions that work here")
    expect(page.locator(".card li")).to_have_count(3)


ESCALATED = {
    "decision_type": "tool_call",
    "payload": {"tool": "database", "args": {"sql": "SELECT 1"}},
    "context": {"open_breakers": ["tushare"]},
}


@pytest.mark.parametrize("locale", WORDS)
def test_a_person_approves_one_thing_changes_another_and_rejects_a_third(served, look, locale):
    for number in range(3):
        changed = {
            **ESCALATED,
            "payload": {"tool": "database", "args": {"sql": f"SELECT {number}, '{locale}'"}},
        }
        assert httpx.post(f"{served}/api/v1/coordinator/decisions", json=changed).status_code == 202
    page = look(f"{served}/approvals", locale=locale)
    let_everybody_in(page, locale)
    for answer in ("approve", "reject", "edit"):
        page.goto(f"{served}/approvals")
        card = page.locator("article.approval").first
        card.locator("input[name=reason]").fill("known outage")
        card.locator("input[name=by]").fill("Li Ming")
        if answer == "edit":
            card.locator("summary").click()
            card.locator("textarea").fill('{"tool": "database", "args": {"sql": "SELECT 2"}}')
        card.locator(f"button[value={answer}]").click()
        state = "rejected" if answer == "reject" else "approved"
        expect(page.locator(f".escalation-{state}")).to_be_visible()
        let_everybody_in(page, locale)
    page.goto(f"{served}/approvals?status=decided")
    expect(page.locator("tbody tr").first).to_contain_text("known outage")
    let_everybody_in(page, locale)


def test_an_answer_without_sense_is_refused_where_it_was_written(served, look):
    httpx.post(f"{served}/api/v1/coordinator/decisions", json=ESCALATED)
    page = look(f"{served}/approvals")
    card = page.locator("article.approval").first
    card.locator("input[name=reason]").fill("because")
    card.locator("summary").click()
    card.locator("textarea").fill("{not json")
    card.locator("button[value=edit]").click()
    expect(page.locator(".flaw")).to_contain_text("payload")
    expect(page.locator("textarea")).to_have_value("{not json")
    assert find_barriers(page) == []


@pytest.mark.parametrize("locale", WORDS)
def test_a_rule_is_written_checked_put_in_force_and_taken_back(served, look, locale):
    page = look(f"{served}/rules", locale=locale)
    let_everybody_in(page, locale)
    before = page.locator("tbody").first.locator("tr").count()
    page.locator("a[href='/rules/edit']").click()
    expect(page.locator(".sound")).to_be_visible()
    let_everybody_in(page, locale)
    sound = page.locator("#yaml").input_value().replace("my.small_steps", f"my.steps.{locale.lower()}")
    page.locator("#yaml").fill(sound.replace("payload.action == 'BUY' && ", "payload.actoin == 'BUY' && "))
    expect(page.locator(".problems .error")).to_contain_text("actoin")
    expect(page.locator(".problems .error")).to_contain_text("6")
    expect(page.locator(".sound")).to_have_count(0)
    let_everybody_in(page, locale)
    page.locator("#yaml").fill(sound)
    expect(page.locator(".sound")).to_be_visible()
    page.locator("button.main").click()
    page.wait_for_url(re.compile(r"/rules/sets/\d+$"))
    expect(page.locator(".added")).to_have_count(1)
    let_everybody_in(page, locale)
    page.locator("form.filters button").click()
    expect(page.locator("#simulated")).to_be_visible()
    page.locator("form[action$='/activate'] button").click()
    page.wait_for_url(f"{served}/rules")
    expect(page.locator("tbody").first.locator("tr")).to_have_count(before + 1)
    page.locator(f"a[href='/rules/my.steps.{locale.lower()}']").click()
    expect(page.locator(".rule-breaks")).to_be_visible()
    let_everybody_in(page, locale)
    page.goto(f"{served}/rules/rollback")
    expect(page.locator(".removed")).to_have_count(1)
    page.locator("form[action='/rules/rollback'] button").click()
    page.wait_for_url(f"{served}/rules")
    expect(page.locator("tbody").first.locator("tr")).to_have_count(before)


@pytest.mark.parametrize(
    "path",
    [
        "/ask",
        "/approvals",
        "/rules",
        "/rules/edit",
        "/data",
        "/settings",
        "/batches",
        "/schedules",
        "/track-record",
    ],
)
def test_a_phone_shows_these_pages_whole_too(served, look, path):
    look_on_a_phone(look, served + path)


@pytest.mark.parametrize("locale", WORDS)
def test_data_is_examined(served, look, locale):
    page = look(f"{served}/data", locale=locale)
    page.locator("#symbol").fill("900001.DEMO")
    page.locator("form[action='/data/check'] button").click()
    expect(page.locator("#checked")).to_be_visible()
    let_everybody_in(page, locale)


def test_a_key_is_made_logged_in_with_and_revoked(tmp_path, look):
    with console(tmp_path) as address:
        for locale in WORDS:
            page = look(f"{address}/settings", locale=locale)
            page.locator("#name").fill("desk")
            for scope in ("research", "approve", "admin"):
                page.locator(f"input[value={scope}]").check()
            page.locator("form[action='/settings/keys'] button").click()
            secret = page.locator("#secret").inner_text()
            let_everybody_in(page, locale)
            page.goto(f"{address}/settings")
            page.locator("#key").fill(secret)
            page.locator("button.main").click()
            page.wait_for_url(f"{address}/settings")
            page.on("dialog", lambda dialog: dialog.accept())
            page.locator("form[action='/settings/keys/revoke'] button").click()
            expect(page.locator("form[action='/settings/keys/revoke']")).to_have_count(0)


@pytest.mark.parametrize("locale", WORDS)
def test_a_batch_is_begun_watched_and_downloaded(served, look, locale):
    page = look(f"{served}/batches", locale=locale)
    let_everybody_in(page, locale)
    page.locator("#universe").fill("900001.DEMO, 900002.DEMO, 900003.DEMO")
    page.locator("#top").fill("1")
    page.locator("form[action='/batches'] button").click()
    page.wait_for_url(re.compile(r"/batches/[0-9a-f-]{36}$"))
    expect(page.locator(".batch-status-done")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("tbody .badge")).to_have_count(1)
    expect(page.locator("[hx-trigger]")).to_have_count(0)
    let_everybody_in(page, locale)
    with page.expect_download() as file:
        page.get_by_role("link", name="CSV").click()
    assert "900001.DEMO" in file.value.path().read_text(encoding="utf-8")


@pytest.mark.parametrize("locale", WORDS)
def test_a_schedule_is_added_and_run_at_once(served, look, locale):
    page = look(f"{served}/schedules", locale=locale)
    page.locator("#name").fill(f"daily-{locale}")
    page.locator("#universe").fill("900001.DEMO")
    page.locator("#top").fill("0")
    page.locator("form[action='/schedules'] button").click()
    page.wait_for_url(re.compile(r"/schedules/daily"))
    page.locator("form[action$='/run'] button").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    let_everybody_in(page, locale)
    page.goto(f"{served}/schedules")
    let_everybody_in(page, locale)
