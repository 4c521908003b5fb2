"""From a report to its numbers, a contest, the record and a file, in a browser, in both languages."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from moot.desk import Moot
from moot.shared.domain.experts import ExpertType
from moot.shared.infrastructure.settings import Settings
from tests.web.conftest import console, find_barriers
from tests.web.hostile import poison_session

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
        return str(client.post(f"{address}/api/v1/coordinator/research", json=body).json()["session_id"])


@pytest.fixture(scope="module")
def session(served: str) -> str:
    return research(served)


@pytest.mark.parametrize("locale", LANGUAGES)
def test_from_a_report_to_its_numbers_a_contest_the_record_and_a_file(served, session, look, locale):
    weigh, replay, take, valuation, equal = LANGUAGES[locale]
    page = look(f"{served}/sessions/{session}/report", locale=locale)
    expect(page.locator(".price-chart canvas").first).to_be_visible()
    expect(page.locator(".price-chart > .drawing")).to_be_hidden()
    assert find_barriers(page) == []

    number = page.locator(".ruling .fact").first
    number.click()
    card = page.locator(f"#{number.get_attribute('popovertarget')}")
    expect(card).to_be_visible()
    expect(card).to_contain_text(re.compile("demo|演示"))
    assert find_barriers(page) == []
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
    assert find_barriers(page) == []
    moved.locator("a").first.click()
    expect(page.locator("#what-if")).to_be_visible()
    assert find_barriers(page) == []

    page.goto(f"{served}/sessions/{session}/record")
    expect(page.locator("svg .span")).to_have_count(7)
    page.get_by_role("button", name=replay).click()
    expect(page.locator("#replayed")).to_contain_text(equal, timeout=60_000)
    assert find_barriers(page) == []

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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/sessions/{}/report", "/sessions/{}/record", "/compare?s={0}&s={0}"])
def test_a_phone_shows_each_page_whole_in_light_and_dark(served, session, look, path, theme):
    size = {"width": 375, "height": 720}
    page = look(f"{served}{path.format(session)}", viewport=size, color_scheme=theme, locale="zh-CN")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert find_barriers(page) == []


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


def test_no_script_of_a_stranger_runs(tmp_path, look):
    async def prepare() -> str:
        async with Moot(Settings(home=tmp_path, log_level="error")) as desk:
            result = await desk.research("900001.DEMO", locale="en-US")
            await poison_session(desk, result.session_id)
            return result.session_id

    session = _run(prepare)
    with console(tmp_path) as address:
        for path in (f"/sessions/{session}/report", f"/sessions/{session}/record", f"/compare?s={session}"):
            page = look(address + path)
            page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
            assert page.evaluate("window.pwned") is None
            assert page.locator("main script:not([type='application/json'])").count() == 0


def _run(work):
    """In a thread: the browser has a loop of its own in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()
