"""The console behind a real socket, in a process of its own, and a browser whose complaints fail a test.

Where there is no chromium, what needs one is skipped and says so.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

from tests.access.desk import open_app
from tests.entry.serving import free_port
from tests.fakes.clock import FixedClock, TickingClock

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IN_TIME_MS = 60_000
expect.set_options(timeout=IN_TIME_MS)
AXE = Path(__file__).parent / "axe" / "axe.min.js"


@contextmanager
def console(home: Path, **settings: str) -> Iterator[str]:
    """The address of a desk as `moot serve` opens it, on a free port, with a worker beside it."""
    port = free_port()
    environment = os.environ | {
        "MOOT_HOME": str(home),
        "MOOT_WORKER": "on",
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while it is there, a loop of its own runs in this thread, and no other test could have one."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console that is open to this machine; the tests of a module share what is on it."""
    with console(tmp_path_factory.mktemp("console")) as address:
        yield address


Open = Callable[..., Page]


@pytest.fixture
def look(browser: Browser) -> Iterator[Open]:
    """Opens a page in a browser of its own; fails the test for any complaint of the browser, of CSP above all."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        """A page or a part of one that is an error is one on purpose; what it loads must be there."""
        loaded = "/static/" in message.location["url"]
        if message.type in {"error", "warning"} and (loaded or "status of 4" not in message.text):
            complaints.append(f"{message.type}: {message.text}")

    def open_page(address: str, *, expected: int = 200, **wishes: object) -> Page:
        context = browser.new_context(**{"locale": "en-US", **wishes})  # type: ignore[arg-type]
        context.set_default_timeout(IN_TIME_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == expected, page.content()
        return page

    yield open_page
    for context in contexts:
        try:
            context.close()
        except Error:
            continue
    assert complaints == []


def find_barriers(page: Page) -> list[str]:
    """What axe-core takes to be serious, or worse. The debugger runs it: the page's own policy stays in force."""
    try:
        found = _run_axe(page)
    except Error as e:  # a page that was streamed asks for itself anew when the stream ends
        if "navigation" not in str(e):
            raise
        page.wait_for_load_state()
        found = _run_axe(page)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]


def _run_axe(page: Page) -> Any:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
