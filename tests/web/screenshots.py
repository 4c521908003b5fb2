"""Every page in both languages, in light and dark, wide and on a phone, and those that the documentation shows:
`python -m tests.web.screenshots FOLDER`."""

import io
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import httpx
from PIL import Image
from playwright.sync_api import sync_playwright

from moot.shared.domain.experts import ExpertType
from tests.web.conftest import CHROMIUM, IN_TIME_MS, console

PAGES = {
    "today": "/",
    "research": "/research",
    "sessions": "/sessions",
    "session": "/sessions/{session}",
    "report": "/sessions/{session}/report",
    "what-if": "/sessions/{what_if}/report",
    "record": "/sessions/{session}/record",
    "compare": "/compare?s={session}&s=900002.DEMO",
    "ask": "/ask",
    "answer": "/ask/{talk}",
    "batches": "/batches",
    "batch": "/batches/{batch}",
    "schedules": "/schedules",
    "schedule": "/schedules/nightly",
    "approvals": "/approvals",
    "rules": "/rules",
    "rule": "/rules/risk.position_cap",
    "rule-edit": "/rules/edit",
    "track-record": "/track-record",
    "data": "/data",
    "settings": "/settings",
    "login": "/login",
    "nowhere": "/nowhere",
}
"""By name, where each is found; `{session}` is one that has ended. A page adds itself here."""
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
WAITS = {
    "decision_type": "tool_call",
    "payload": {"tool": "database", "args": {"sql": "SELECT close FROM bars"}},
    "context": {"open_breakers": ["tushare"]},
}


def prepare(address: str, locale: str) -> dict[str, str]:
    """Something to look at on every page, in a language."""
    with httpx.Client(base_url=f"{address}/api/v1", timeout=300, trust_env=False) as api:

        def send(path: str, body: dict[str, Any]) -> Any:
            return api.post(path, json=body).raise_for_status().json()

        experts = list(ExpertType)
        research = [{"symbol": symbol, "experts": experts, "locale": locale} for symbol in WATCHED[1::-1]]
        first = [send("/coordinator/research", body)["session_id"] for body in research][-1]
        moves = {"moves": [{"move": "strike", "claim": "technical.crowding"}]}
        contested = send(f"/coordinator/research/sessions/{first}/contest", moves)
        asked = {"question": QUESTIONS[locale], "auto_accepted_plan": True}
        many = {"universe": WATCHED, "top": 1, "name": "demo", "locale": locale}
        return {
            "session": first,
            "what_if": contested["after"]["session_id"],
            "talk": send("/coordinator/intake", asked)["id"],
            "batch": send("/batches", many)["id"],
        }


def prepare_once(address: str) -> None:
    """What has no language: a list, a schedule, a question for a person."""
    with httpx.Client(base_url=f"{address}/api/v1", timeout=300, trust_env=False) as api:
        api.post("/watchlists", json={"symbols": WATCHED}).raise_for_status()
        nightly = {"universe": ["watch:default"], "top": 3, "locale": "zh-CN"}
        api.post("/schedules", json={"name": "nightly", "request": nightly}).raise_for_status()
        api.post("/coordinator/decisions", json=WAITS).raise_for_status()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        console(Path(home)) as address,
        sync_playwright() as playwright,
    ):
        prepare_once(address)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for locale in LANGUAGES:
            ids = prepare(address, locale)
            for (name, path), theme, (width, pixels) in product(PAGES.items(), THEMES, WIDTHS.items()):
                size = {"width": pixels, "height": 800}
                context = browser.new_context(locale=locale, color_scheme=theme, viewport=size)  # type: ignore[arg-type]
                context.set_default_timeout(IN_TIME_MS)
                page = context.new_page()
                page.goto(address + path.format(**ids), wait_until="networkidle")
                if locale in SHOWN.get(name, ()) and (theme, width) == ("light", "wide"):
                    page.set_viewport_size({"width": pixels, "height": TALL.get(name, 800)})
                    keep_small(page.screenshot(), IMAGES / f"{name}.{locale}.png")
                page.screenshot(path=folder / f"{name}.{locale}.{theme}.{width}.png", full_page=True)
                context.close()
        browser.close()


def keep_small(image: bytes, file: Path) -> None:
    """In as many colours as one byte tells apart."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(image)).convert("RGB").quantize(256, kmeans=1).save(file, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
