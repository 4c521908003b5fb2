"""Every page in both languages, in light and dark, wide and on a phone: `python -m tests.web.screenshots FOLDER`."""

import sys
import tempfile
from itertools import product
from pathlib import Path

import httpx
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
    "batches": "/batches",
    "schedules": "/schedules",
    "approvals": "/approvals",
    "rules": "/rules",
    "rule": "/rules/risk.position_cap",
    "rule-edit": "/rules/edit",
    "track-record": "/track-record",
    "data": "/data",
    "settings": "/settings",
    "nowhere": "/nowhere",
}
"""By name, where each is found; `{session}` is one that has ended. A page adds itself here."""
LANGUAGES = ("zh-CN", "en-US")
THEMES = ("light", "dark")
WIDTHS = {"wide": 1280, "phone": 390}
WATCHED = ["900001.DEMO", "900002.DEMO", "900003.DEMO"]


def prepare(address: str) -> dict[str, str]:
    """Something to look at: verdicts on two shares, and a list of three."""
    with httpx.Client(base_url=f"{address}/api/v1", timeout=300, trust_env=False) as api:
        asked = [{"symbol": symbol, "experts": list(ExpertType)} for symbol in WATCHED[:2]]
        done = [api.post("/coordinator/research", json=body).json() for body in asked]
        api.post("/watchlists", json={"symbols": WATCHED}).raise_for_status()
        first = done[0]["session_id"]
        moves = {"moves": [{"move": "strike", "claim": "technical.crowding"}]}
        contested = api.post(f"/coordinator/research/sessions/{first}/contest", json=moves).json()
    return {"session": first, "what_if": contested["after"]["session_id"]}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        console(Path(home)) as address,
        sync_playwright() as playwright,
    ):
        ids = prepare(address)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for (name, path), locale, theme, (width, pixels) in product(
            PAGES.items(), LANGUAGES, THEMES, WIDTHS.items()
        ):
            size = {"width": pixels, "height": 800}
            context = browser.new_context(locale=locale, color_scheme=theme, viewport=size)  # type: ignore[arg-type]
            context.set_default_timeout(IN_TIME_MS)
            page = context.new_page()
            page.goto(address + path.format(**ids))
            page.screenshot(path=folder / f"{name}.{locale}.{theme}.{width}.png", full_page=True)
            context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
