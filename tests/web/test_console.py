"""The console in a browser, as an analyst uses it: nothing it complains of, nothing that keeps anybody out."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.conftest import console, find_barriers, look_on_a_phone

FIRST = {"en-US": "Research Mirage Hill Distillers now", "zh-CN": "立即研究幻山酒业"}


def test_from_the_one_button_to_a_verdict_with_a_reload_in_mid_stream(tmp_path, look):
    """In two languages at once: what one begins, the other looks on at."""
    with console(tmp_path) as address:
        pages = {locale: look(address, locale=locale) for locale in FIRST}
        english, chinese = pages.values()
        for locale, page in pages.items():
            assert page.locator("main button").all_inner_texts() == [FIRST[locale]]
            assert page.locator(".companies li").count() == 8
        assert find_barriers(english) == []
        chinese.get_by_role("button").get_by_text(FIRST["zh-CN"]).click()
        chinese.wait_for_url(re.compile(r"/sessions/[0-9a-f-]{36}$"))
        english.goto(chinese.url)
        for page in pages.values():
            expect(page.locator(".node")).to_have_count(7)
            page.reload()
            expect(page.locator(".node")).to_have_count(7)
            expect(page.locator(".outcome")).to_be_visible()
            expect(page.locator(".node-success")).to_have_count(7)
            expect(page.locator("[data-stream]")).to_have_count(0)
        assert find_barriers(english) == []
        for page in pages.values():
            page.goto(f"{address}/sessions")
            expect(page.locator("tbody tr")).to_have_count(1)
        assert find_barriers(english) == []
        for page in pages.values():
            page.goto(address)
        english.locator("#symbol").fill("900001")
        english.locator("form[action='/watch'] button").click()
        chinese.locator("#symbol").fill("900002")
        chinese.locator("form[action='/watch'] button").click()
        expect(chinese.locator("table.watch tbody tr")).to_have_count(2)
        expect(english.locator("table.watch .badge")).to_have_count(1)
        assert find_barriers(english) == []


def test_the_form_suggests_companies_and_says_what_is_wrong_beside_the_field(served, look):
    page = look(f"{served}/research")
    page.locator("#symbol").press_sequentially("mirage")
    page.locator("#suggestions button").first.click()
    expect(page.locator("#symbol")).to_have_value("900001.DEMO")
    assert find_barriers(page) == []
    page.locator("#max_cost").fill("much")
    with page.expect_response(lambda answer: answer.request.method == "POST") as answer:
        page.get_by_role("button", name="Start").click()
    assert answer.value.status == 400
    expect(page.locator(".flaw")).to_contain_text("max_cost")
    expect(page.locator("#max_cost")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#max_cost")).to_have_value("much")
    assert find_barriers(page) == []


@pytest.mark.parametrize("path", ["/", "/research", "/sessions", "/login"])
def test_a_phone_shows_every_page_whole_in_light_and_dark(served, look, path):
    look_on_a_phone(look, served + path)


def test_a_keyboard_reaches_the_content_first(served, look):
    page = look(f"{served}/sessions")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_language_and_theme_are_switched_on_the_page_and_stay(served, look):
    page = look(f"{served}/sessions")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("h1")).to_have_text("会话")
    page.get_by_role("button", name="自动").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{served}/research")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")


def test_the_policy_of_pages_is_in_force(served, browser):
    """Markup that got in all the same runs nothing, and the browser says so: for that every other test would fail."""
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(f"{served}/sessions")
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<a onclick=\"window.ran = 1\">x</a>')")
        page.locator("a[onclick]").dispatch_event("click")
    assert page.evaluate("window.ran") is None
    assert any("inline event handler" in text for text in refused)
    page.close()
