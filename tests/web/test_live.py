"""A session on its page while it runs: what the stream brings, stopping it, running again what failed."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.shared.infrastructure.settings import Settings
from tests.access.test_every_route import OUR_RULE
from tests.entry.serving import IN_TIME, MACRO, ON_SQLITE, VALUATION, Gate, Served, question, serving
from tests.fakes.careful_model import careful

HTML = {"Accept": "text/html"}
OURS = {"Sec-Fetch-Site": "same-origin", **HTML}
THIRD_DAY = "2018-01-04"
"""Too early for the technical analyst."""


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr(GovernanceAdapter, "authorise", gate.authorise)
    return gate


@pytest.fixture
def settings(home, database):
    return Settings(home=home, database_url=database.safe_url, log_level="error")


@asynccontextmanager
async def open_desk(settings: Settings) -> AsyncIterator[Served]:
    """Each request by a connection of its own: server and test share a loop, and one that was busy for long closes an
    idle connection in the moment in which the other uses it."""
    async with serving(settings, worker=True) as served:
        served.http.headers["Connection"] = "close"
        yield served


@pytest.fixture
async def desk(settings):
    async with open_desk(settings) as served:
        yield served


async def begin(desk: Served, **form: object) -> str:
    """By the form; the path of the session."""
    answer = await desk.http.post("/research", data={"symbol": "900001.DEMO", **form}, headers=OURS)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def see(desk: Served, place: str) -> str:
    answer = await desk.http.get(place, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


def states(page: str) -> dict[str, str]:
    """How far each node is shown to be."""
    found = re.findall(r'class="node node-(\w+)" id="node-(\w+)"', page)
    return {node: state for state, node in found}


class Stream:
    """What a browser hears on a page."""

    def __init__(self, lines) -> None:
        self._lines = lines

    async def next(self) -> tuple[str, str]:
        event, data = "", []
        async with asyncio.timeout(IN_TIME):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if name == "event":
                    event = value
                elif line.startswith("data:"):
                    data.append(line.removeprefix("data:").removeprefix(" "))
                elif not line and event:
                    return event, "\n".join(data)
        return "", ""


ONLY_TWO = {"experts": [MACRO, VALUATION]}


@ON_SQLITE
async def test_whoever_joins_or_comes_back_sees_everything_and_is_told_the_rest(desk: Served, gate: Gate):
    place = await begin(desk, **ONLY_TWO)
    await gate.reached(2)
    assert f'data-stream="{place}/live"' in await see(desk, place)
    shown = {MACRO: "running", VALUATION: "running", "debate": "waiting", "judge": "waiting"}
    async with desk.http.stream("GET", f"{place}/live") as answer:
        stream = Stream(answer.aiter_lines())
        while states((await stream.next())[1]) != shown:
            pass
    assert states(await see(desk, place)) == shown
    for _ in range(2):  # the second is a reload in mid-stream
        async with desk.http.stream("GET", f"{place}/live") as answer:
            event, part = await Stream(answer.aiter_lines()).next()
            assert (event, states(part)) == ("part", shown)
    async with desk.http.stream("GET", f"{place}/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = Stream(answer.aiter_lines())
        await stream.next()
        await gate.open()
        heard = [await stream.next()]
        while heard[-1][0] == "part":
            heard.append(await stream.next())
    assert heard[-1][0] == "done"
    assert set(states(heard[-2][1]).values()) == {"success"}
    page = await see(desk, place)
    assert states(page) == states(heard[-2][1])
    assert ("data-stream" in page, "outcome" in page) == (False, True)


@ON_SQLITE
async def test_a_session_is_cancelled_on_its_page(desk: Served, gate: Gate):
    place = await begin(desk, **ONLY_TWO)
    await gate.reached(2)
    assert f'action="{place}/cancel"' in await see(desk, place)
    assert (await desk.http.post(f"{place}/cancel", headers=OURS)).headers["location"] == place
    async with asyncio.timeout(IN_TIME):
        await desk.http.get(f"{place}/live")
    page = await see(desk, place)
    assert ('class="badge status-cancelled"' in page, f'action="{place}/cancel"' in page) == (True, False)


@ON_SQLITE
async def test_what_failed_is_run_again_from_its_page(desk: Served):
    place = await begin(desk, as_of=THIRD_DAY, experts=["technical_analyst", MACRO], skip_debate="on")
    await desk.http.get(f"{place}/live")
    page = await see(desk, place)
    assert states(page)["technical_analyst"] == "failed"
    assert f'action="{place}/retry"' in page
    child = (await desk.http.post(f"{place}/retry", headers=OURS)).headers["location"]
    assert child != place
    await desk.http.get(f"{child}/live")
    assert f'href="{place}"' in (retried := await see(desk, child))
    assert "progress-reused" in retried
    assert f'href="{child}"' in await see(desk, place)


@ON_SQLITE
async def test_nothing_to_run_again_is_said(desk: Served):
    place = await begin(desk, **ONLY_TWO, skip_debate="on")
    await desk.http.get(f"{place}/live")
    assert f'action="{place}/retry"' not in await see(desk, place)
    refused = await desk.http.post(f"{place}/retry", headers=OURS)
    assert (refused.status_code, "Nothing failed" in refused.text) == (400, True)
    late = await desk.http.post(f"{place}/cancel", headers=OURS)
    assert (late.status_code, "has ended" in late.text) == (409, True)


@ON_SQLITE
async def test_tokens_and_cost_stand_beside_the_node_that_took_them(settings, llm_server, gate: Gate):
    llm_server.default = careful
    given = {"llm_base_url": llm_server.url, "llm_model": "careful-1"}
    priced = {"llm_price_in": 10.0, "llm_price_out": 20.0}
    async with open_desk(settings.model_copy(update={**given, **priced})) as desk:
        await gate.open()
        place = await begin(desk, **ONLY_TWO)
        await desk.http.get(f"{place}/live")
        page = await see(desk, place)
    for node in (MACRO, "debate", "judge"):
        card = page.partition(f'id="node-{node}"')[2].partition("</li>")[0]
        assert re.search(r"[1-9]\d* tokens", card), (node, card)
        assert re.search(r"¥0\.\d{4}", card)


async def test_a_stream_of_a_session_that_is_not_there_is_a_404(desk: Served):
    answer = await desk.http.get(f"/sessions/{'0' * 8}-0000-4000-8000-{'0' * 12}/live", headers=HTML)
    assert answer.status_code == 404


REFUSED = [
    ({"symbol": ""}, "symbol"),
    ({"symbol": "no such company at all"}, "symbol"),
    ({"as_of": "2999-01-01"}, "as_of"),
    ({"as_of": "yesterday"}, "as_of"),
    ({"horizon": "7"}, "horizon"),
    ({"rounds": "many"}, "rounds"),
    ({"max_cost": "-1"}, "max_cost"),
    ({"experts": "astrologer"}, "experts"),
    ({"holding": "on", "holder.cost": "-3"}, "holder.cost"),
]


@ON_SQLITE
@pytest.mark.parametrize(("form", "field"), REFUSED, ids=str)
async def test_what_is_refused_is_said_beside_its_field_and_nothing_begins(desk: Served, form, field):
    answer = await desk.http.post("/research", data={"symbol": "900001.DEMO", **form}, headers=OURS)
    assert (answer.status_code, 'class="flaw" role="alert"' in answer.text) == (400, True)
    if field == "experts":
        assert '<fieldset class="refused">' in answer.text
    else:
        assert re.search(rf'id="{re.escape(field)}"[^>]*aria-invalid="true"', answer.text), answer.text
    assert await desk.count() == 0


HOSTILE = "<script>alert(1)</script>"


@ON_SQLITE
async def test_what_was_typed_comes_back_as_text(desk: Served):
    form = {"symbol": HOSTILE, "max_cost": '"><img src=x onerror=alert(1)>'}
    answer = await desk.http.post("/research", data=form, headers=OURS)
    assert ("<script>alert" in answer.text, "<img src=x" in answer.text) == (False, False)
    listed = await desk.http.get("/sessions", params={"symbol": HOSTILE, "status": HOSTILE}, headers=HTML)
    assert (listed.status_code, "<script>alert" in listed.text) == (400, False)


@ON_SQLITE
async def test_the_list_is_filtered_and_paged(desk: Served):
    for symbol in ("900001.DEMO", "900002.DEMO", "900001.DEMO"):
        await desk.http.post("/api/v1/coordinator/research", json=question(symbol))
    everything = await see(desk, "/sessions")
    assert everything.count('<td><a href="/sessions/') == 3
    assert "Mirage Hill Distillers" in everything
    assert everything.count('<td class="quiet">API</td>') == 3
    assert (await see(desk, "/sessions?symbol=900002&status=")).count('<td><a href="/sessions/') == 1
    second = await see(desk, "/sessions?page=2&page_size=2")
    assert second.count('<td><a href="/sessions/') == 1
    assert 'href="/sessions?page=1&amp;page_size=2"' in second


@ON_SQLITE
async def test_today_tells_what_waits_for_a_person(desk: Served):
    await desk.http.post("/api/v1/coordinator/rules", json=OUR_RULE)
    asked = {"decision_type": "tool_call", "payload": {"tool": "ours", "args": {}}}
    assert (await desk.http.post("/api/v1/coordinator/decisions", json=asked)).status_code == 202
    page = await see(desk, "/")
    assert "Waiting for a person: 1" in page
    assert OUR_RULE["name"] in page.partition("Waiting for a person")[2]


@ON_SQLITE
async def test_today_tells_what_is_watched_and_what_runs(desk: Served, gate: Gate):
    added = await desk.http.post("/watch", data={"symbol": "900001"}, headers=OURS)
    assert added.headers["location"] == "/"
    assert "not researched yet" in await see(desk, "/")
    await desk.http.post("/watch", data={"symbol": "900002"}, headers=OURS)
    place = await begin(desk, symbol="900002.DEMO")
    await gate.reached(1)
    page = await see(desk, "/")
    assert f'<li><a href="{place}"><b>Fogharbour Bank</b></a>' in page
    await gate.open()
    await desk.http.get(f"{place}/live")
    page = await see(desk, "/")
    row = page.partition("900002.DEMO</span></td>")[2].partition("</tr>")[0]
    assert (f'href="{place}/report"' in row, 'class="badge action-' in row) == (True, True)
    assert re.search(r"\d{4}-\d\d-\d\d</span> <span lang=\"en-US\">Deadline", row)
    await desk.http.post("/watch/remove", data={"symbol": "900002.DEMO"}, headers=OURS)
    assert "900002.DEMO</span></td>" not in (await see(desk, "/")).partition("Latest research")[0]
    refused = await desk.http.post("/watch", data={"symbol": "nobody knows"}, headers=OURS)
    assert (refused.status_code, 'class="flaw"' in refused.text) == (400, True)
