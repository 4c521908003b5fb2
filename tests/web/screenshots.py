"""Every page in both languages, in light and dark, wide and on a phone, and those that the documentation shows:
`python -m tests.web.screenshots FOLDER [PAGE ...]`."""

import asyncio
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from moot.shared.domain.experts import ExpertType
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import running_llm_server
from tests.web.conftest import CHROMIUM, IN_TIME_MS, console

PAGES = {
    "welcome": "/",
    "today": "/",
    "research": "/research",
    "sessions": "/sessions",
    "session": "/sessions/{session}",
    "report": "/sessions/{session}/report",
    "what-if": "/sessions/{what_if}/report",
    "abstained": "/sessions/{abstained}/report",
    "failed": "/sessions/{failed}/report",
    "failed-session": "/sessions/{failed}",
    "by-model": "/sessions/{by_model}/report",
    "record": "/sessions/{by_model}/record",
    "call": "/sessions/{by_model}/calls/models/1",
    "compare": "/compare?s={session}&s=900002.DEMO",
    "ask": "/ask",
    "answer": "/ask/{talk}",
    "batches": "/batches",
    "batch": "/batches/{batch}",
    "schedules": "/schedules",
    "schedule": "/schedules/nightly",
    "approvals": "/approvals",
    "approval": "/approvals/{waiting}",
    "decided": "/approvals?status=decided",
    "rules": "/rules",
    "rule-set": "/rules/sets/1",
    "rollback": "/rules/rollback",
    "rule": "/rules/risk.position_cap",
    "rule-edit": "/rules/edit",
    "track-record": "/track-record",
    "data": "/data?dataset=bars",
    "settings": "/settings",
    "login": "/login",
    "nowhere": "/nowhere",
}
"""By name, where each is found; `welcome` is taken before there is anything. A page adds itself here."""
LANGUAGES = ("zh-CN", "en-US")
THEMES = ("light", "dark")
WIDTHS = {"wide": 1280, "phone": 390}
WATCHED = ["900001.DEMO", "900002.DEMO", "900003.DEMO"]
IMAGES = Path(__file__).parents[2] / "docs" / "images"
SHOWN = {"report": LANGUAGES, "today": ("en-US",), "rule": ("en-US",)}
"""What the documentation shows, light and wide; as high as `TALL` says, or as a screen."""
TALL = {"report": 1540}
QUESTIONS = {
    "zh-CN": "900001.DEMO 和 900002.DEMO 哪个估值更低？",
    "en-US": "Is 900001.DEMO or 900002.DEMO cheaper?",
}
TOO_EARLY = "2018-01-04"
"""For the technical analyst."""
RULE = """\
rules:
  - id: team.small_positions
    name: Small positions
    category: behavior
    decision_types: [verdict]
    condition: payload.position_percent > 0.02
    action: suggest
    corrector: {kind: clamp, path: payload.position_percent, at_most: 0.02}
    examples:
      - {violates: true, payload: {position_percent: 0.1}}
      - {violates: false, payload: {position_percent: 0.0}}
"""


BARS = """\
symbol,trade_date,open,high,low,close,pre_close,volume,amount
600519.SH,2025-12-29,1402,1410,1398,1405,1400,2100000,2950000000
600519.SH,2025-12-31,1405,1422,1401,1418,1405,2500000,3530000000
000001.SZ,2025-12-30,11.4,11.6,11.3,11.5,11.4,90000000,1035000000
"""


def bring_in(home: Path) -> None:
    """Something on the page about data: what a file had."""
    file = home / "bars.csv"
    file.write_text(BARS)
    command = [sys.executable, "-m", "moot", "data", "import", str(file)]
    subprocess.run(command, env=os.environ | {"MOOT_HOME": str(home)}, check=True, capture_output=True)


def prepare(address: str, locale: str, model: str) -> dict[str, str]:
    """Something to look at on every page, in a language; by what it is called in `PAGES`."""
    headers = {"Sec-Fetch-Site": "same-origin", "Accept-Language": locale}
    with httpx.Client(base_url=address, timeout=300, trust_env=False, headers=headers) as desk:

        def send(path: str, body: dict[str, Any]) -> Any:
            return desk.post(f"/api/v1{path}", json=body).raise_for_status().json()

        def research(symbol: str, *experts: str, **also: Any) -> str:
            body = {"symbol": symbol, "experts": experts or list(ExpertType), "locale": locale, **also}
            answer = desk.post("/api/v1/coordinator/research", json=body).json()
            return str(answer.get("session_id") or answer["details"]["session_id"])

        def ask(number: int) -> str:
            payload = {"tool": "database", "args": {"sql": f"SELECT close FROM bars LIMIT {number}"}}
            context = {"open_breakers": ["tushare"]}
            body = {"decision_type": "tool_call", "payload": payload, "context": context}
            return str(send("/coordinator/decisions", body)["escalation_id"])

        send("/watchlists", {"symbols": WATCHED})
        nightly = {"universe": ["watch:default"], "top": 3, "locale": locale}
        send("/schedules", {"name": "nightly", "request": nightly})
        decided, waiting = ask(1), ask(2)
        send(f"/coordinator/escalations/{decided}/approve", {"reason": "known outage", "by": "Li Ming"})
        desk.post("/settings/keys", data={"name": "desk", "scopes": ["read", "research"]})
        desk.post("/rules/edit", data={"yaml": RULE})
        research("900001.DEMO", as_of="2026-05-29")
        research("900002.DEMO")
        first = research("900001.DEMO")
        research("900005.DEMO")
        moves = {"moves": [{"move": "strike", "claim": "technical.crowding"}]}
        contested = send(f"/coordinator/research/sessions/{first}/contest", moves)
        asked = {"question": QUESTIONS[locale], "auto_accepted_plan": True}
        many = {"universe": WATCHED, "top": 1, "name": "demo", "locale": locale}
        found = {
            "session": first,
            "what_if": contested["after"]["session_id"],
            "abstained": research("900003.DEMO", "technical_analyst", "macro_intelligence", as_of=TOO_EARLY),
            "failed": research("900003.DEMO", "technical_analyst", as_of=TOO_EARLY),
            "talk": send("/coordinator/intake", asked)["id"],
            "batch": send("/batches", many)["id"],
            "waiting": waiting,
        }
        while desk.get(f"/api/v1/batches/{found['batch']}").json()["status"] == "running":
            time.sleep(1)
        known = {
            "alias": "main",
            "base_url": model,
            "model_name": "careful-1",
            "api_key": "k",
            "vendor": "fake",
        }
        send("/llm-platform/configs", known)
        return {**found, "by_model": research("900004.DEMO")}


@contextmanager
def serve_model() -> Iterator[str]:
    """The address of a model that answers with care, in a loop of its own."""
    loop, serving = asyncio.new_event_loop(), running_llm_server()
    Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
    server.default = careful
    yield server.url
    asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result()
    loop.call_soon_threadsafe(loop.stop)


def main(folder: Path, *wanted: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=True).stdout:
        sys.exit("No font here has Chinese characters: apt-get install fonts-noto-cjk")
    with sync_playwright() as playwright, serve_model() as model:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for locale in LANGUAGES:
            with tempfile.TemporaryDirectory() as home, console(Path(home), MOOT_OPEN="1") as address:
                bring_in(Path(home))
                take(browser, locale, address, {"welcome"}.intersection(wanted or PAGES), {}, folder)
                ids = prepare(address, locale, model)
                take(browser, locale, address, set(wanted or PAGES) - {"welcome"}, ids, folder)
        browser.close()


def take(
    browser: Browser, locale: str, address: str, names: set[str], ids: dict[str, str], folder: Path
) -> None:
    for theme, (width, pixels) in product(THEMES, WIDTHS.items()):
        size = {"width": pixels, "height": 800}
        context = browser.new_context(locale=locale, color_scheme=theme, viewport=size)  # type: ignore[arg-type]
        context.set_default_timeout(IN_TIME_MS)
        page = context.new_page()
        for name in sorted(names):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.goto(address + PAGES[name].format(**ids))
            if locale in SHOWN.get(name, ()) and (theme, width) == ("light", "wide"):
                page.set_viewport_size({"width": pixels, "height": TALL.get(name, 800)})
                keep_small(page.screenshot(), IMAGES / f"{name}.{locale}.png")
            page.screenshot(path=folder / f"{name}.{locale}.{theme}.{width}.png", full_page=True)
        context.close()


def keep_small(image: bytes, file: Path) -> None:
    """In as many colours as one byte tells apart."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(image)).convert("RGB").quantize(256, kmeans=1).save(file, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
