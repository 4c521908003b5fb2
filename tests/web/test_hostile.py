"""Words of strangers in every field that a page shows, and in every field that a form has: they stay words."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import html5lib
import httpx
import pytest

from moot.desk import Moot
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.markdown import drop_unseen
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import HERE, calling, open_app
from tests.web.conftest import OURS, console
from tests.web.hostile import hostile_texts, poison_session
from tests.web.hostile_desk import poison_desk, prepare, settle

PAGES = (
    *("/", "/ask", "/research", "/research/symbols?symbol=600519", "/research?symbol=x", "/sessions"),
    *(
        "/batches",
        "/schedules",
        "/approvals",
        "/approvals?status=decided",
        "/rules",
        "/rules/edit?rule=team.r1",
    ),
    *("/rules/rollback", "/track-record", "/data?dataset=companies", "/settings", "/compare?s=900001.DEMO"),
    "/login",
)
SILENT = {
    "/research",
    "/research?symbol=x",
    "/track-record",
    "/login",
    "/compare?s=900001.DEMO",
}
"""Pages without a word of others."""
ECHOING = (
    *("/research?symbol={}", "/research/symbols?symbol={}", "/ask?question={}", "/login?next={}"),
    *("/sessions?symbol={}", "/sessions?status={}", "/sessions?start_date={}", "/sessions?page={}"),
    *(
        "/approvals?status={}",
        "/data?dataset={}",
        "/compare?s={}",
        "/batches?page={}",
        "/batches?universe={}",
    ),
    *(
        "/sessions/{}",
        "/batches/{}",
        "/schedules/{}",
        "/ask/{}",
        "/approvals/{}",
        "/rules/{}",
        "/rules/sets/{}",
    ),
    *("/rules/edit?rule={}", "/schedules?name={}", "/nowhere/{}", "/sessions/{}/files/report.md"),
)
TELLING = ('"><img src=x onerror=window.pwned=1>', "javascript:window.pwned=1", "{{7*7}}'\u202e\0")
ELEMENTS = """
html head meta title link script body a header img nav form input button main footer section article div p span
h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead tbody tr th td b i em strong small code pre blockquote hr br
label select option textarea fieldset legend details summary time progress meter svg path polyline line polygon
rect text
"""
ECHO = {"value", "title", "aria-label", "data-confirm", "href", "action"}
"""Attributes in which a page says what others wrote."""
LEADING = ("/", "#", "https://www.tradingview.com/", "https://example.com/")


class Read(NamedTuple):
    """All that a page says, and its forms: where each goes, and the fields it has."""

    said: str
    forms: dict[tuple[str, str], list[str]]


def read(answer: httpx.Response) -> Read:
    """As a browser does; nothing on a page is anybody else's doing."""
    assert answer.status_code < 500, (answer.url, answer.text)
    where, said, forms = str(answer.url)[:200], list[str](), {}
    for element in html5lib.parse(answer.text, namespaceHTMLElements=False).iter():
        assert isinstance(element.tag, str), (where, "a comment", element.text)
        tag, given = element.tag.rpartition("}")[2], element.attrib
        assert tag in ELEMENTS.split(), (where, tag)
        for name, value in given.items():
            assert not name.startswith("on") and name not in {"style", "http-equiv"}, (where, tag, name)
            assert "pwned" not in name + (value if name not in ECHO else ""), (where, tag, name, value)
        for name in ("href", "src", "action"):
            assert given.get(name, "/").startswith(LEADING), (where, tag, given[name])
        if tag == "script":
            assert (given["src"].startswith("/static/"), element.text) == (True, None), where
        if tag == "form":
            names = {field.get("name") for field in element.iter() if field.get("name")}
            forms[given.get("method", "get"), given["action"]] = sorted(names)
        said += [element.text or "", element.tail or "", *given.values()]
    return Read("\n".join(said), forms)


async def settled(home: Path) -> None:
    async with Moot(Settings(home=home, log_level="error")) as desk:
        await settle(desk, home)


@pytest.fixture
async def client(home, clock):
    await settled(home)
    async with open_app(home, clock, worker=False) as app, calling(app, address=HERE) as client:
        client.headers.update(OURS)
        client.desk = app.state.desk
        yield client


async def test_words_of_strangers_are_words_on_every_page_and_in_every_form(client):
    found = await prepare(client)
    await poison_desk(client.desk)
    texts, seen, forms = {drop_unseen(text) for text in hostile_texts()}, set[str](), {}
    for path in (*PAGES, *found.values()):
        answer = await client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        page = read(answer)
        shown = {text for text in texts if text in page.said}
        assert shown or path in SILENT, path
        assert not set("\0\u202e").intersection(page.said), path
        seen |= shown
        forms |= page.forms
    assert len(seen) >= 500
    for path in ECHOING:
        for text in TELLING:
            read(await client.get(path.format(quote(text, safe=""))))
    assert len(forms) > 30
    sent = cycle(hostile_texts())
    for (method, to), names in forms.items():
        for fields in ({name: next(sent) for name in names}, *({name: next(sent)} for name in names)):
            body = {"params": fields} if method == "get" else {"data": fields}
            answer = await client.request(method, to, **body)
            if not answer.headers.get("content-disposition", "").startswith("attachment"):
                read(answer)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """The address of such a desk, and where its pages are. The browser has a loop of its own in this thread."""
    home = tmp_path_factory.mktemp("hostile")

    async def work() -> list[str]:
        await settled(home)
        async with open_app(home, SystemClock(), worker=False) as app, calling(app, address=HERE) as client:
            whole = await app.state.desk.research("900001.DEMO", locale="en-US")
            found = await prepare(client)
            await poison_desk(app.state.desk)
            await poison_session(app.state.desk, whole.session_id)
            there = f"/sessions/{whole.session_id}"
            return [*PAGES, *found.values(), f"{there}/report", f"{there}/record", f"/compare?s={there[10:]}"]

    with ThreadPoolExecutor(1) as pool:
        paths = pool.submit(lambda: asyncio.run(work())).result()
    with console(home, MOOT_OPEN="1") as address:
        yield address, paths


def test_no_word_of_a_stranger_runs(poisoned, look):
    """Each page in one language or the other, by turns: what templates escape is the same in both."""
    address, paths = poisoned
    pages = [look(address, locale=locale) for locale in ("en-US", "zh-CN")]
    for page, path in zip(cycle(pages), paths, strict=False):
        assert page.goto(address + path).url == address + path
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.evaluate("window.pwned") is None, path
        assert page.locator("main script:not([type='application/json'])").count() == 0, path
