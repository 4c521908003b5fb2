"""From a report to its numbers, a contest, the record and a file, in a browser, in both languages."""

import re
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from moot.shared.domain.experts import ExpertType
from tests.web.conftest import let_everybody_in, look_on_a_phone

LANGUAGES = {
    "en-US": (
        "Weigh again",
        "Replay now",
        "Take along",
        "Valuation modeler",
        "Everything came out as it is on record.",
    ),
    "zh-CN": ("重新权衡", "立即重放", "下载", "估值建模师", "结果与记录完全一致。"),
}


def research(address: str, symbol: str = "900001.DEMO") -> str:
    body = {"symbol": symbol, "experts": list(ExpertType), "locale": "en-US"}
    with httpx.Client(timeout=300, trust_env=False) as client:
        answer = client.post(f"{address}/api/v1/coordinator/research", json=body)
        assert answer.is_success, answer.text
        return str(answer.json()["session_id"])


@pytest.fixture(scope="module")
def session(served: str) -> str:
    return research(served)


@pytest.mark.parametrize("locale", LANGUAGES)
def test_from_a_report_to_its_numbers_a_contest_the_record_and_a_file(served, session, look, locale):
    weigh, replay, take, valuation, equal = LANGUAGES[locale]
    page = look(f"{served}/sessions/{session}/report", locale=locale)
    expect(page.locator(".price-chart canvas").first).to_be_visible()
    expect(page.locator(".price-chart > .drawing")).to_be_hidden()
    let_everybody_in(page, locale)

    number = page.locator(".ruling .fact").first
    number.click()
    card = page.locator(f"#{number.get_attribute('popovertarget')}")
    expect(card).to_be_visible()
    expect(card).to_contain_text(re.compile("demo|演示"))
    let_everybody_in(page, locale, ".popover:popover-open")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()

    page.get_by_role("tab", name=valuation).click()
    expect(page.locator("#expert-valuation_modeler")).to_be_visible()
    expect(page.locator("#expert-technical_analyst")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#expert-financial_auditor")).to_be_visible()

    page.locator("input[name=strike]").first.check()
    page.locator("input.weigh").nth(3).fill("0.9")
    page.get_by_role("button", name=weigh).click()
    moved = page.locator("#moved .moved")
    expect(moved).to_be_visible(timeout=60_000)
    let_everybody_in(page, locale, "#moved")
    moved.locator("a").first.click()
    expect(page.locator("#what-if")).to_be_visible()
    let_everybody_in(page, locale, "section.notice:has(#what-if)")

    page.goto(f"{served}/sessions/{session}/record")
    expect(page.locator("svg .span")).to_have_count(7)
    page.get_by_role("button", name=replay).click()
    expect(page.locator("#replayed")).to_contain_text(equal, timeout=60_000)
    let_everybody_in(page, locale)

    page.goto(f"{served}/sessions/{session}/report")
    page.get_by_text(take, exact=True).click()
    with page.expect_download() as taken:
        page.locator(f"a[href='/sessions/{session}/files/report.html']").click()
    assert Path(taken.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_move_that_cannot_be_made_is_told_in_its_place(served, session, look):
    page = look(f"{served}/sessions/{session}/report")
    page.locator("input.weigh").first.fill("seven")
    with page.expect_response(lambda answer: answer.request.method == "POST") as answer:
        page.get_by_role("button", name="Weigh again").click()
    assert answer.value.status == 400
    expect(page.locator("#moved .flaw")).to_contain_text("strength")


@pytest.mark.parametrize("path", ["/sessions/{}/record", "/compare?s={0}&s={0}"])
def test_a_phone_shows_each_page_whole_in_light_and_dark(served, session, look, path):
    look_on_a_phone(look, served + path.format(session))


def test_a_phone_shows_a_report_whole_its_chart_as_wide_as_its_card_and_tabs_above_what_they_open(
    served, session, look
):
    page = look_on_a_phone(look, f"{served}/sessions/{session}/report")
    left = [page.locator(part).first.bounding_box()["x"] for part in (".price-chart", ".price-chart canvas")]
    assert left[0] == left[1]
    parts = ("#experts h2", "#experts .tablist", "#experts .panel:visible")
    boxes = [page.locator(part).bounding_box() for part in parts]
    assert all(one["y"] + one["height"] <= below["y"] for one, below in pairwise(boxes))


def test_a_report_is_whole_without_a_script(served, session, look):
    page = look(f"{served}/sessions/{session}/report", java_script_enabled=False)
    expect(page.locator(".price-chart > .drawing")).to_be_visible()
    expect(page.locator(".panel:visible")).to_have_count(5)
    number = page.locator(".ruling .fact").first
    number.click()
    expect(page.locator(f"#{number.get_attribute('popovertarget')}")).to_be_visible()
    page.locator("input[name=strike]").first.check()
    page.get_by_role("button", name="Weigh again").click()
    expect(page.locator("#what-if")).to_be_visible(timeout=60_000)
