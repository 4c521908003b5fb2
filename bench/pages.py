"""How the API and the console answer while sessions run, what the report weighs, and when it is first seen."""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
from playwright.async_api import async_playwright
from tests.entry.serving import calling, free_port

from bench.desk import QUESTION
from bench.line import Line

RUNNING = 4
LOOKS = 40
P95 = 200.0
"""Milliseconds within which 95 of 100 answers are there while sessions run."""
HEAVIEST = 500.0
"""Kilobytes that a first visit to a report may bring over the line, with all that it loads."""
SEEN = 1000.0
"""Milliseconds until the browser paints something of it."""
RESEARCH = "/api/v1/coordinator/research"
ANSWERS = (f"{RESEARCH}/sessions/{{session}}", f"{RESEARCH}/sessions/{{session}}/report")
PAGES = (
    *("/", "/ask", "/research", "/sessions", "/sessions/{session}", "/sessions/{session}/report"),
    *("/sessions/{session}/record", "/compare?s={session}", "/batches", "/schedules", "/approvals", "/rules"),
    *("/track-record", "/data", "/settings"),
)
VISITS = 5
SAW = """() => ({
  bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((sum, one) => sum + one.transferSize, 0),
  painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
})"""


@asynccontextmanager
async def served() -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """`moot serve` on the demo market, and a session that has ended there."""
    with tempfile.TemporaryDirectory() as home:
        port = free_port()
        env = os.environ | {
            "MOOT_HOME": home,
            "MOOT_LOG_LEVEL": "error",
            "MOOT_WORKER_SESSIONS": str(RUNNING),
        }
        env.pop("MOOT_WORKER", None)
        command = [sys.executable, "-m", "moot", "serve", "--port", str(port)]
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as server:  # noqa: ASYNC220
            try:
                async with calling(port) as http:
                    await _until_ready(http)
                    yield http, (await http.post(RESEARCH, json=QUESTION)).json()["session_id"]
            finally:
                server.terminate()


async def _until_ready(http: httpx.AsyncClient) -> None:
    while True:
        try:
            (await http.get("/readyz")).raise_for_status()
            return
        except httpx.HTTPError:  # not there yet
            await asyncio.sleep(0.1)


async def look(http: httpx.AsyncClient, paths: Sequence[str], accept: str) -> list[tuple[float, str]]:
    """How long each took while four sessions of the demo market ran, and others waited."""
    times: list[tuple[float, str]] = []
    for n in range(LOOKS):
        page = await http.get(f"{RESEARCH}/sessions", params={"status": "queued", "page_size": 1})
        for _ in range(RUNNING + 4 - page.json()["total"]):
            await http.post(
                RESEARCH, json={**QUESTION, "mode": "async", "symbol": f"9000{1 + n % 6:02}.DEMO"}
            )
        for path in paths:
            at = time.perf_counter()
            (await http.get(path, headers={"Accept": accept})).raise_for_status()
            times.append((1e3 * (time.perf_counter() - at), path))
        await asyncio.sleep(0.05)
    return times


def p95(name: str, times: Sequence[tuple[float, str]]) -> Line:
    took = [each for each, _ in times]
    medians = {at: statistics.median(each for each, path in times if path == at) for _, at in times}
    slowest = max(medians, key=lambda path: medians[path])
    value, middle = sorted(took)[int(0.95 * len(took))], statistics.median(took)
    detail = f"median {middle:.0f} of {len(took)}; slowest {slowest.split('?')[0]}: {medians[slowest]:.0f}"
    return Line(f"{name} while four sessions run, p95, ms", value, P95, detail)


async def visit(address: str) -> list[Line]:
    """The report as a browser gets it that was never here; nothing runs meanwhile."""
    saw = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(VISITS):
            page = await (await browser.new_context()).new_page()
            await page.goto(address, wait_until="networkidle")
            saw.append(await page.evaluate(SAW))
        await browser.close()
    weighs, painted = saw[0]["bytes"] / 1e3, statistics.median(one["painted"] for one in saw)
    return [
        Line("first visit to a report, kB", weighs, HEAVIEST, "HTML, styles and scripts as transferred"),
        Line("first contentful paint of a report, ms", painted, SEEN, f"median of {VISITS} visits, Chromium"),
    ]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


async def lines() -> list[Line]:
    """Without a browser, only what needs none."""
    async with served() as (http, session):
        report = f"{http.base_url}/sessions/{session}/report"
        seen = await visit(report) if CHROMIUM else []
        answers = await look(http, [path.format(session=session) for path in ANSWERS], "application/json")
        pages = await look(http, [path.format(session=session) for path in PAGES], "text/html")
    return [p95("detail and report", answers), p95("pages of the console", pages), *seen]
