"""Report, record, comparison and files as they are sent: what stands on them, in which language, for whom."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from moot.modules.coordinator.application import report_pdf
from moot.modules.coordinator.application.report_pdf import render_pdf
from moot.modules.coordinator.container import check_session_pack
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.experts import ExpertType
from tests.access.desk import HERE, calling, new_key, open_app
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import Say, Status
from tests.web.conftest import HTML, OURS
from tests.web.hostile import MODEL, hostile_texts, poison_session

RESEARCH = "/api/v1/coordinator/research"
WORDS = {
    "en-US": (
        "Weight of the argument",
        "The argument",
        "Known since",
        "Weigh again",
        "This is the first verdict",
    ),
    "zh-CN": ("论证权重", "论证", "获知时间", "重新权衡", "首次裁决"),
}
HEAVIEST = 500_000
OTHERS = ("financial_score", "valuation_verdict", "macro_environment", "catalyst_assessment")
"""What everybody but the technical analyst answers with."""


class Seen(HTMLParser):
    """Which elements a page has, with which attributes, where its links lead, and what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shape, self.links, self.ids, self.opens = Counter[Any](), list[str](), list[str](), list[str]()
        self.said = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.shape[tag, tuple(sorted(given))] += 1
        self.links += [given[name] for name in ("href", "src", "action") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        self.opens += [given["popovertarget"]] if "popovertarget" in given else []

    def handle_data(self, data):
        self.said += data


@pytest.fixture
async def desk(app):
    """Whoever sits at it, and needs no key."""
    async with calling(app, address=HERE) as client:
        client.headers.update(HTML)
        yield client


async def research(client, symbol="900001.DEMO", **also) -> str:
    body = {"symbol": symbol, "experts": list(ExpertType), "locale": "en-US", **also}
    return (await client.post(RESEARCH, json=body)).json()["session_id"]


async def read(client, path, locale="en-US", status=200) -> Seen:
    answer = await client.get(path, headers={**HTML, "Accept-Language": locale})
    assert answer.status_code == status, answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    return Seen(answer.text)


@pytest.mark.parametrize("locale", WORDS)
async def test_a_report_tells_the_verdict_the_argument_and_where_each_number_is_from(desk, locale):
    session = await research(desk, locale=locale)
    answer = await desk.get(f"/sessions/{session}/report", headers={"Accept-Language": locale})
    assert (len(answer.content) <= HEAVIEST, answer.headers["content-encoding"]) == (True, "gzip")
    page, result = (
        Seen(answer.text),
        (
            await desk.get(f"{RESEARCH}/sessions/{session}/report", headers={"Accept": "application/json"})
        ).json(),
    )
    assert [words for words in WORDS[locale] if words not in page.said] == []
    card = Seen(answer.text.partition('class="card ruling"')[2].partition("</section>")[0]).said
    told = [result["verdict"]["reasoning"].splitlines()[0], WORDS[locale][-1], result["verdict"]["stop_loss"]]
    assert [words for words in told if words not in card] == []
    assert result["verdict"]["headline"] in page.said
    assert set(page.opens) <= set(page.ids)
    argument = result["debate_outcome"]["argument"]
    for claim in argument["claims"]:
        assert claim["says"][locale] in page.said
        assert f"claim-{claim['id']}" in page.ids
    facts = [fact for expert in result["expert_results"].values() for fact in expert["data"]["evidence"]]
    assert sum(id_.startswith("fact-") for id_ in page.ids) == len(facts)
    assert [fact["id"] for fact in facts if fact["id"] not in page.said] == []
    assert {name for name, _ in page.shape if name == "svg"} == {"svg"}
    chart = json.loads(re.search(r'id="chart-data">(.*?)</script>', answer.text, re.DOTALL)[1])
    assert len(chart["candles"]) == 180 and set(chart["averages"]) == {"MA20", "MA60"}
    assert list(chart["levels"].values()) == [
        result["verdict"]["levels"][name] for name in ("entry", "stop", "target")
    ]
    assert len(chart["events"]) > 3


async def test_what_changed_since_the_last_verdict_leads_to_it(desk, app):
    first = await research(desk, as_of="2026-05-29")
    page = await read(desk, f"/sessions/{await research(desk)}/report")
    assert f"/sessions/{first}/report" in page.links
    assert "This is the first verdict" not in page.said


async def test_advice_stands_in_the_card_for_whoever_holds_the_share(desk):
    session = await research(desk, holder={"holding": True, "cost": 300.0})
    page = await read(desk, f"/sessions/{session}/report")
    assert "For the holder" in page.said


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"skip_debate": True},
            ["no debate", "No verdict was asked for.", "neither buy, nor sell, nor hold"],
        ),
        ({"experts": ["technical_analyst"]}, ["Technical analyst"]),
    ],
)
async def test_a_session_without_debate_or_with_one_expert_reads_well(desk, asked, words):
    page = await read(desk, f"/sessions/{await research(desk, **asked)}/report")
    assert [text for text in words if text not in page.said] == []
    assert len(page.ids) == len(set(page.ids))


async def test_a_session_that_failed_says_so_and_gives_no_rating(home, clock, llm_server):
    llm_server.default = Status(500, "out of order")
    async with (
        open_app(home, clock, llm_base_url=llm_server.url, llm_model="m") as app,
        calling(app, address=HERE) as client,
    ):
        answer = await client.post(
            RESEARCH, json={"symbol": "900001.DEMO", "experts": list(ExpertType), "locale": "en-US"}
        )
        session = answer.json()["details"]["session_id"]
        page = await read(client, f"/sessions/{session}/report")
        record = await read(client, f"/sessions/{session}/record")
    assert "There is no verdict." in page.said
    assert "neither buy, nor sell, nor hold" in page.said
    assert page.said.count("This expert failed:") == 5
    assert not re.search(r"\b(BUY|SELL|HOLD)\b", page.said)
    assert "out of order" in record.said


async def test_one_voice_of_several_is_an_abstention(home, clock, llm_server):
    def reply(body):
        answer = careful(body)
        return (
            Say("I would rather not.")
            if any(f'"{name}"' in str(answer.content) for name in OTHERS)
            else answer
        )

    llm_server.default = reply
    async with (
        open_app(home, clock, llm_base_url=llm_server.url, llm_model="m") as app,
        calling(app, address=HERE) as client,
    ):
        session = await research(client)
        page = await read(client, f"/sessions/{session}/report")
        chinese = await read(client, f"/sessions/{session}/report", "zh-CN")
    assert ("The judge abstained." in page.said, "裁判弃权" in chinese.said) == (True, True)
    assert page.said.count("This expert failed:") == 4


async def test_what_the_rules_changed_stands_beside_the_verdict(desk):
    rule = {
        "id": "team.small_positions",
        "name": "Small positions",
        "category": "behavior",
        "condition": "payload.position_percent > 0.01",
        "action": "suggest",
        "decision_types": ["verdict"],
        "corrector": {"kind": "clamp", "path": "payload.position_percent", "at_most": 0.01},
        "examples": [
            {"violates": True, "payload": {"position_percent": 0.1}},
            {"violates": False, "payload": {"position_percent": 0.0}},
        ],
    }
    answer = await desk.post("/api/v1/coordinator/rules", json=rule)
    assert answer.status_code == 201, answer.text
    page = await read(desk, f"/sessions/{await research(desk, '900005.DEMO')}/report")
    assert "What the rules changed" in page.said
    assert "team.small_positions@1" in page.said


async def contest(client, session, headers=OURS, **fields):
    return await client.post(
        f"/sessions/{session}/contest", data=fields, headers={**headers, "Accept-Language": "en"}
    )


async def test_striking_what_speaks_for_it_turns_the_verdict_and_is_on_record(desk):
    session = await research(desk, "900005.DEMO")
    page = await read(desk, f"/sessions/{session}/report")
    assert "BUY" in page.said
    claims = [id_.removeprefix("claim-") for id_ in page.ids if id_.startswith("claim-")]
    answer = await contest(desk, session, strike=claims[:40])
    assert answer.status_code == 303
    page = await read(desk, answer.headers["location"])
    assert [
        text for text in ("What if", "The verdict turns.", f"Struck {claims[0]}") if text not in page.said
    ] == []
    what_if = answer.headers["location"].split("/")[2]
    assert f"/sessions/{what_if}/report" in (await read(desk, f"/sessions/{session}/report")).links
    for path in ("/", "/sessions", f"/sessions/{what_if}"):
        assert (await read(desk, path)).said.count("what if") == 1, path


async def test_with_a_script_only_what_moved_is_sent(desk):
    session = await research(desk)
    answer = await contest(desk, session, {**OURS, "HX-Request": "true"}, **{"weigh financial.roic": "0.1"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "financial.roic" in answer.text
    added = await contest(
        desk,
        session,
        {**OURS, "HX-Request": "true"},
        claim="financial.roic",
        kind="attack",
        says="<b>A licence ends",
    )
    assert "&lt;b&gt;A licence ends" in added.text


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"weigh financial.roic": "much"}, "strength"),
        ({"weigh financial.roic": "7"}, "strength"),
        ({"strike": "financial.nothing"}, "financial.nothing"),
        ({}, "moves"),
    ],
)
async def test_a_move_that_cannot_be_made_is_told_by_name(desk, fields, word):
    answer = await contest(desk, await research(desk), **fields)
    assert (answer.status_code, word in Seen(answer.text).said) == (400, True)


async def test_whoever_may_only_read_is_offered_no_move(app):
    async with calling(app, address=HERE) as here:
        session = await research(here)
    async with calling(app, await new_key(app, "read")) as reader:
        page = await read(reader, f"/sessions/{session}/report")
        assert (
            not [link for link in page.links if link.endswith(("/contest", "/pack"))]
            or "Weigh again" not in page.said
        )
        assert "Weigh again" not in page.said
        for path in ("contest", "replay", "pack"):
            answer = await reader.post(f"/sessions/{session}/{path}", headers=OURS)
            assert answer.status_code == 403, path


async def test_the_record_shows_calls_decisions_and_a_chain_that_holds(home, clock, llm_server):
    llm_server.default = careful
    async with (
        open_app(home, clock, llm_base_url=llm_server.url, llm_model="careful-1") as app,
        calling(app, address=HERE) as client,
    ):
        session = await research(client)
        page = await read(client, f"/sessions/{session}/record")
        first = await read(client, f"/sessions/{session}/calls/models/1")
        beyond = await client.get(f"/sessions/{session}/calls/models/99", headers=HTML)
        replayed = await client.post(f"/sessions/{session}/replay", headers=OURS)
    assert "Model calls (9)" in page.said
    assert page.said.count("careful-1") == 9
    assert [node for node in ("Debate", "Judge", "Technical analyst") if node not in page.said] == []
    assert ("Resolution of the debate" in page.said, "bull_advocate" in page.said) == (True, False)
    assert "holds" in page.said
    assert "Decisions of the rules (9)" in page.said
    assert "The evidence points one way" in first.said
    assert ("Prompt" in first.said, "Answer" in first.said, beyond.status_code) == (True, True, 404)
    assert "Everything came out as it is on record." in replayed.text


async def test_a_record_that_was_changed_is_shown_as_broken(desk, app):
    session = await research(desk)
    await poison_session(app.state.desk, session)
    page = await read(desk, f"/sessions/{session}/record")
    assert "broken" in page.said
    replayed = await desk.post(f"/sessions/{session}/replay", headers=OURS)
    assert "Something came out otherwise." in replayed.text
    assert "differs" in Seen(replayed.text).said


async def test_sessions_stand_side_by_side(desk):
    first = await research(desk)
    second = await research(
        desk, "900002.DEMO", experts=["macro_intelligence"]
    )  # of the others it knows nothing
    page = await read(desk, f"/compare?s={first}&s=900002.DEMO&s=")
    assert {f"/sessions/{first}/report", f"/sessions/{second}/report"} <= set(page.links)
    assert [word for word in ("Trend", "What decides it") if word not in page.said] == []
    chinese = await read(desk, f"/compare?s={first[:8]}&s={second[:8]}", "zh-CN")
    assert "决定性论点" in chinese.said


async def test_sessions_are_chosen_from_their_list(desk):
    chosen = {await research(desk), await research(desk, "900002.DEMO")}
    listed = (await desk.get("/sessions")).text
    assert set(re.findall(r'form="compare" name="s" value="([^"]+)"', listed)) == chosen
    assert '<form id="compare" class="action" method="get" action="/compare">' in listed


@pytest.mark.parametrize(
    ("query", "word"),
    [("s=nobody", "nobody"), ("s=1&s=2&s=3&s=4&s=5", "At most 4"), (f"s={quote('<b>')}", "<b>")],
)
async def test_what_cannot_be_compared_is_told(desk, query, word):
    await research(desk)
    assert word in (await read(desk, f"/compare?{query}", status=400)).said


async def test_a_comparison_of_nothing_explains_itself(desk):
    assert "Nothing to compare yet" in (await read(desk, "/compare")).said


async def test_a_report_is_taken_along_in_each_format(desk):
    session = await research(desk)
    begins = {"md": b"# Research report", "html": b"<!doctype html>", "pdf": b"%PDF-", "json": b"{"}
    for kind, first in begins.items():
        answer = await desk.get(f"/sessions/{session}/files/report.{kind}")
        assert answer.content.startswith(first), kind
        assert answer.headers["content-disposition"] == f'attachment; filename="moot-{session[:8]}.{kind}"'
        policy = answer.headers["content-security-policy"]
        assert ("default-src 'none'" in policy, "frame-ancestors 'none'" in policy) == (True, True)
    assert (await desk.get(f"/sessions/{session}/files/report.docx")).status_code == 404
    packed = await desk.post(f"/sessions/{session}/pack", headers=OURS)
    assert check_session_pack(packed.content, "en-US").intact


async def test_words_of_strangers_are_words_on_every_page(home, clock, llm_server):
    llm_server.default = careful
    async with (
        open_app(home, clock, llm_base_url=llm_server.url, llm_model="m") as app,
        calling(app, address=HERE) as client,
    ):
        session = await research(client)
        paths = ["report", "record", "calls/models/1"]
        tame = {path: await read(client, f"/sessions/{session}/{path}") for path in paths}
        side_by_side = await read(client, f"/compare?s={session}")
        assert await poison_session(app.state.desk, session) >= 500
        given = {*hostile_texts(), MODEL}
        for path in paths:
            page = await read(client, f"/sessions/{session}/{path}")
            assert page.shape == tame[path].shape, path
            assert page.links == tame[path].links, path
            assert any(text in page.said for text in given), path
            assert not set("\x00\u202e").intersection(page.said)
        assert (await read(client, f"/compare?s={session}")).shape == side_by_side.shape
        document = (await client.get(f"/sessions/{session}/files/report.html")).text
    assert {name for name, _ in Seen(document).shape}.isdisjoint(
        {"script", "img", "iframe", "a", "form", "object"}
    )


def test_there_are_hostile_texts_enough():
    assert len(set(hostile_texts())) >= 500


@pytest.mark.parametrize(
    ("module", "error", "code", "told"),
    [
        (None, None, "PDF_NOT_INSTALLED", "moot[pdf]"),
        ("raise OSError(\"cannot load library 'libpango-1.0-0'\")", None, "PDF_NO_PANGO", "libpango"),
    ],
)
async def test_what_a_pdf_lacks_is_named_in_both_languages(
    desk, app, monkeypatch, tmp_path, module, error, code, told
):
    session = await research(desk)
    result = await app.state.desk.result(session)
    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    if module is None:
        monkeypatch.setitem(sys.modules, "weasyprint", None)
    else:
        (tmp_path / "weasyprint.py").write_text(module)
        monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unavailable) as raised:
        render_pdf(result)
    assert raised.value.code == code
    assert all(told in raised.value.in_locale(locale) for locale in ("zh-CN", "en-US"))
    answer = await desk.get(
        f"/sessions/{session}/files/report.pdf", headers={**HTML, "Accept-Language": "zh-CN"}
    )
    assert (answer.status_code, told in Seen(answer.text).said) == (503, True)


FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{cache}</cachedir></fontconfig>"""


async def test_a_system_without_a_chinese_font_is_told_so(app, desk, tmp_path):
    latin = next(iter(sorted(Path("/usr/share/fonts").rglob("DejaVuSans.ttf"))), None)
    if latin is None:
        pytest.skip("no font here that has no Chinese characters")
    session = await research(desk, locale="zh-CN")
    (tmp_path / "result.json").write_text((await app.state.desk.result(session)).model_dump_json())
    (tmp_path / "fonts.conf").write_text(FONTS.format(folder=latin.parent, cache=tmp_path / "cache"))
    code = (
        "import sys, pathlib\n"
        "from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult\n"
        "from moot.modules.coordinator.application.report_pdf import render_pdf\n"
        "from moot.shared.domain.errors import Unavailable\n"
        "try: render_pdf(ResearchResult.model_validate_json(pathlib.Path(sys.argv[1]).read_text()), 'brief')\n"
        "except Unavailable as e: print(e.code, e.in_locale('zh-CN'))\n"
    )
    environment = os.environ | {"FONTCONFIG_FILE": str(tmp_path / "fonts.conf"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "result.json")],
        env=environment,
        capture_output=True,
        check=True,
    )
    assert "PDF_NO_FONT" in done.stdout.decode()
    assert "fonts-noto-cjk" in done.stdout.decode()


async def test_a_pdf_loads_nothing():
    with pytest.raises(ValueError, match="loads nothing"):
        report_pdf._fetch_nothing("https://example.com/pixel.png")
