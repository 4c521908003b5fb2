"""The console behind a real socket, in a process of its own, and a browser whose complaints fail a test.

Where there is no chromium, what needs one is skipped and says so.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

from tests.access.desk import HERE, calling, open_app
from tests.entry.serving import free_port
from tests.fakes.clock import FixedClock, TickingClock

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IN_TIME_MS = 60_000
expect.set_options(timeout=IN_TIME_MS)
PHONE = (375, 720)
HTML = {"Accept": "text/html"}
OURS = {"Origin": "http://localhost", **HTML}
"""As a browser sends a form of the console."""
AXE = Path(__file__).parent / "axe" / "axe.min.js"


@contextmanager
def console(home: Path, **settings: str) -> Iterator[str]:
    """The address of a desk as `moot serve` opens it, on a free port, with a worker beside it."""
    port = free_port()
    environment = os.environ | {
        "MOOT_HOME": str(home),
        "MOOT_WORKER": "on",
        "MOOT_LEASE_SECONDS": "60",  # a machine with a browser to run has a desk wait for longer than most
        "LANG": "en_US.UTF-8",
        **settings,
    }
    command = [sys.executable, "-m", "moot", "serve", "--port", str(port)]
    log = home / "serve.log"
    with log.open("wb") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(address, server, log)
            yield address
        finally:
            server.terminate()


def _wait(address: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    """Until it can serve; a process that ended will not."""
    with httpx.Client(transport=httpx.HTTPTransport(retries=50), timeout=60, trust_env=False) as client:
        while True:
            assert server.poll() is None, log.read_text(encoding="utf-8")
            try:
                if client.get(f"{address}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                continue


@pytest.fixture
async def app(home: Path, clock: FixedClock) -> AsyncIterator[FastAPI]:
    """A desk that lets nobody in without a key, once there is one."""
    async with open_app(home, TickingClock(clock.now()), open=False) as app:
        yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A browser on the desk's own machine."""
    async with calling(app, address=HERE) as client:
        client.headers.update(OURS)
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while it is there, a loop of its own runs in this thread, and no other test could have one."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console that is open to this machine; tests share what is on it."""
    with console(tmp_path_factory.mktemp("console")) as address:
        yield address


Open = Callable[..., Page]
Contexts = dict[tuple[tuple[str, object], ...], BrowserContext]


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Contexts:
    """By what was wished for: to make one takes more than to show a page in it."""
    return {}


@pytest.fixture
def look(browser: Browser, contexts: Contexts) -> Iterator[Open]:
    """Opens a page for a reader not known yet; fails the test for any complaint of the browser, of CSP above all."""
    pages: list[Page] = []
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        """A page or a part of one that is an error is one on purpose; what it loads must be there."""
        loaded = "/static/" in message.location["url"]
        if message.type in {"error", "warning"} and (loaded or "status of 4" not in message.text):
            complaints.append(f"{message.type}: {message.text}")

    def open_page(
        address: str, *, expected: int = 200, size: tuple[int, int] | None = None, **wishes: object
    ) -> Page:
        wished = {"locale": "en-US", "reduced_motion": "reduce", **wishes}
        key = tuple(sorted(wished.items()))
        if key not in contexts:
            contexts[key] = browser.new_context(**wished)  # type: ignore[arg-type]
            contexts[key].set_default_timeout(IN_TIME_MS)
        page = contexts[key].new_page()
        pages.append(page)
        if size:
            page.set_viewport_size({"width": size[0], "height": size[1]})
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == expected, page.content()
        return page

    yield open_page
    for page in pages:
        page.close()
    for context in contexts.values():
        context.clear_cookies()
    assert complaints == []


def look_on_a_phone(look: Open, address: str) -> Page:
    """The page, which is as wide as the phone and keeps nobody out, in light and in dark."""
    page = look(address, size=PHONE, locale="zh-CN")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert find_barriers(page) == []
    page.emulate_media(color_scheme="dark")
    assert find_barriers(page, rules=["color-contrast"]) == []
    return page


def let_everybody_in(page: Page, locale: str, part: str = "html") -> None:
    """What a page is made of is the same in each language: it is looked at in one."""
    assert locale != "en-US" or find_barriers(page, part) == []


def find_barriers(page: Page, part: str = "html", rules: Sequence[str] = ()) -> list[str]:
    """What axe-core takes to be serious, or worse, in a part of the page and by some of its rules, if so wished. The
    debugger runs it: the page's own policy stays in force."""
    try:
        found = _run_axe(page, part, rules)
    except Error as e:  # a page that was streamed asks for itself anew when the stream ends
        if "navigation" not in str(e):
            raise
        page.wait_for_load_state()
        found = _run_axe(page, part, rules)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]


def _run_axe(page: Page, part: str, rules: Sequence[str]) -> Any:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    wished = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    return page.evaluate("([part, wished]) => axe.run(part, wished)", [part, wished])
