"""Work at the console in a browser: asking, approving, changing the rules, looking after the desk."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.conftest import find_barriers

WORDS = {
    "en-US": ("Is 900001.DEMO cheap?", "Accept the plan", "And 900002.DEMO?", "Ask"),
    "zh-CN": ("900001.DEMO 估值高吗？", "接受计划", "900002.DEMO 呢？", "提问"),
}


@pytest.mark.parametrize("locale", WORDS)
def test_from_a_question_to_its_answer_and_the_next_question(served, look, locale):
    question, accept, more, ask = WORDS[locale]
    page = look(f"{served}/ask", locale=locale)
    assert find_barriers(page) == []
    page.locator("#question").fill(question)
    page.get_by_role("button", name=ask, exact=True).click()
    page.wait_for_url(re.compile(r"/ask/[0-9a-f-]{36}$"))
    page.get_by_role("button", name=accept).wait_for()
    expect(page.locator(".step-waiting")).to_have_count(1)
    assert find_barriers(page) == []
    page.get_by_role("button", name=accept).click()
    expect(page.locator(".answer")).to_be_visible()
    expect(page.locator("[data-stream]")).to_have_count(0)
    page.locator(".plan summary").click()
    expect(page.locator(".step-completed")).to_have_count(1)
    assert find_barriers(page) == []
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
