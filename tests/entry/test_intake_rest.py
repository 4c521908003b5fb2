"""Questions over HTTP, on a real socket: as JSON, as events, and what is refused."""

import asyncio
import json
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from moot.modules.intake.infrastructure.conversations import SqlConversations
from moot.modules.intake.presentation import routes as intake_routes
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.settings import Settings
from tests.entry.serving import IN_TIME, NOBODY, ON_SQLITE, SESSIONS, Served, calling, serving
from tests.fakes.llm_server import Say

INTAKE = "/api/v1/coordinator/intake"
EVENTS = {"Accept": "text/event-stream"}
VALUATION = "Is 900001.DEMO cheap?"
ACCEPTED = {"decision": "accepted"}


class Told(NamedTuple):
    event: str
    data: dict[str, Any]


def told(text: str) -> list[Told]:
    """The events of a whole stream; lines that say nothing are left out."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("event: ")]
    assert all(len(block) == 2 and block[1].startswith("data: ") for block in blocks)
    return [
        Told(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks
    ]


@pytest.fixture
async def desk(home, database):
    settings = Settings(home=home, database_url=database.safe_url, log_level="error")
    async with serving(settings) as served:
        yield served


async def asked(desk: Served, question: str = VALUATION, **more: Any) -> dict[str, Any]:
    answer = await desk.http.post(INTAKE, json={"question": question, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_question_is_answered_by_a_session_of_the_desk(desk: Served):
    body = await asked(desk, auto_accepted_plan=True)
    (turn,) = body["turns"]
    assert (body["status"], turn["status"], turn["locale"]) == ("answered", "answered", "en-US")
    assert turn["plan"]["steps"][0]["symbol"] == "900001.DEMO"
    (finding,) = turn["findings"]
    session = (await desk.http.get(f"{SESSIONS}/{finding['session_id']}")).json()
    assert (session["symbol"], session["status"]) == ("900001.DEMO", "completed")
    assert turn["answer"]["markdown"].startswith(f"# {turn['answer']['title']}\n")
    assert (await desk.http.get(f"{INTAKE}/{body['id']}")).json() == body


async def test_a_plan_waits_until_somebody_accepts_it(desk: Served):
    waiting = await asked(desk)
    assert (waiting["status"], waiting["turns"][0]["findings"]) == ("waiting", [])
    where = f"{INTAKE}/{waiting['id']}/feedback"
    body = (await desk.http.post(where, json=ACCEPTED)).json()
    assert (body["status"], len(body["turns"]), len(body["turns"][0]["findings"])) == ("answered", 1, 1)
    again = await desk.http.post(where, json=ACCEPTED)
    assert (again.status_code, again.json()["code"]) == (409, "NOT_ITS_TURN")


@ON_SQLITE
async def test_a_plan_can_be_rejected_and_another_question_asked(desk: Served):
    thread = (await asked(desk))["id"]
    busy = await desk.http.post(INTAKE, json={"question": VALUATION, "thread_id": thread})
    assert (busy.status_code, busy.json()["details"]["status"]) == (409, "waiting")
    body = (await desk.http.post(f"{INTAKE}/{thread}/feedback", json={"decision": "rejected"})).json()
    assert (body["status"], body["turns"][0]["reply"]) == (
        "rejected",
        "The plan was rejected. Nothing was researched.",
    )
    further = await asked(desk, "hello", thread_id=thread)
    assert [turn["status"] for turn in further["turns"]] == ["rejected", "replied"]


@ON_SQLITE
async def test_a_change_that_nobody_can_make_is_said_before_the_plan_is_accepted(desk: Served):
    thread = (await asked(desk))["id"]
    edit = {"decision": "edit_plan", "text": "look at the debt as well"}
    body = (await desk.http.post(f"{INTAKE}/{thread}/feedback", json=edit)).json()
    assert body["status"] == "waiting"
    assert any("takes a language model" in warning for warning in body["turns"][0]["warnings"])


async def test_what_happens_is_told_in_order_and_ends_with_done(desk: Served):
    body = {"question": VALUATION, "auto_accepted_plan": True}
    answer = await desk.http.post(INTAKE, json=body, headers=EVENTS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    story = told(answer.text)
    names = [event.event for event in story]
    chunks = [event.data["text"] for event in story if event.event == "message_chunk"]
    assert names == ["plan", "step", "citation", "step", *["message_chunk"] * len(chunks), "report", "done"]
    assert [event.data["status"] for event in story if event.event == "step"] == ["started", "completed"]
    assert story[0].data["plan"]["steps"][0]["symbol"] == "900001.DEMO"
    report, done = story[-2].data, story[-1].data
    assert "".join(chunks) == report["markdown"]
    kept = (await desk.http.get(f"{INTAKE}/{done['thread_id']}")).json()
    assert (done["status"], kept["turns"][0]["answer"]) == ("answered", report)


async def test_a_stream_that_stops_for_a_person_goes_on_in_another(desk: Served):
    first = told((await desk.http.post(INTAKE, json={"question": VALUATION}, headers=EVENTS)).text)
    assert [event.event for event in first] == ["plan", "interrupt", "done"]
    thread, options = first[1].data["thread_id"], first[1].data["options"]
    assert (options, first[2].data["status"]) == (["accepted", "edit_plan", "rejected"], "waiting")
    assert first[1].data["plan"] == first[0].data["plan"]
    second = await desk.http.post(f"{INTAKE}/{thread}/feedback", json=ACCEPTED, headers=EVENTS)
    names = [event.event for event in told(second.text)]
    assert (names[0], names[-2:]) == ("step", ["report", "done"])


@ON_SQLITE
async def test_what_can_be_asked_without_a_model_is_told_at_once(desk: Served):
    story = told((await desk.http.post(INTAKE, json={"question": "你好"}, headers=EVENTS)).text)
    assert [event.event for event in story] == ["message_chunk", "done"]
    assert (story[0].data["text"][:2], story[1].data["status"]) == ("问题", "replied")


BAD: dict[str, tuple[dict[str, Any], str, Any]] = {
    "no question": ({}, "question", None),
    "an empty question": ({"question": " \n"}, "question", None),
    "a question without an end": ({"question": "x" * 4001}, "question", ["length <= 4000"]),
    "an unknown style": (
        {"question": "hi", "style": "poem"},
        "style",
        ["brief", "research", "academic", "news"],
    ),
    "no steps": ({"question": "hi", "max_step_num": 0}, "max_step_num", [">= 1"]),
    "too many steps": ({"question": "hi", "max_step_num": 11}, "max_step_num", ["<= 10"]),
    "no plans": ({"question": "hi", "max_plan_iterations": 0}, "max_plan_iterations", [">= 1"]),
    "a malformed thread": ({"question": "hi", "thread_id": "first"}, "thread_id", None),
}


@pytest.mark.accepts("A4-27")
@ON_SQLITE
@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "events"])
@pytest.mark.parametrize(("body", "field", "allowed"), BAD.values(), ids=BAD)
async def test_bad_input_is_a_400_that_names_the_field(desk: Served, body, field, allowed, headers):
    refused = await desk.http.post(INTAKE, json=body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_REQUEST")
    (problem,) = refused.json()["details"]["errors"]
    assert (problem["field"], problem.get("allowed")) == (field, allowed)
    assert field in refused.json()["message"]
    assert (await desk.http.get(INTAKE)).json() == []


@ON_SQLITE
async def test_an_unknown_field_is_refused_with_those_that_exist(desk: Served):
    refused = await desk.http.post(INTAKE, json={"question": "hi", "max_steps": 3})
    (problem,) = refused.json()["details"]["errors"]
    assert (refused.status_code, problem["got"]) == (400, ["max_steps"])
    assert "max_step_num" in problem["allowed"]


@ON_SQLITE
async def test_a_decision_nobody_knows_is_a_400(desk: Served):
    thread = (await asked(desk))["id"]
    refused = await desk.http.post(f"{INTAKE}/{thread}/feedback", json={"decision": "perhaps"})
    (problem,) = refused.json()["details"]["errors"]
    assert (refused.status_code, problem["field"]) == (400, "decision")
    assert problem["allowed"] == ["accepted", "edit_plan", "rejected"]


@ON_SQLITE
@pytest.mark.parametrize(
    ("language", "said"), [("en", "text: must not be blank."), ("zh-CN", "text：不能为空。")]
)
async def test_a_change_without_a_word_is_a_400_that_names_the_field(desk: Served, language, said):
    thread = (await asked(desk))["id"]
    for edit in ({"decision": "edit_plan"}, {"decision": "edit_plan", "text": " "}):
        refused = await desk.http.post(
            f"{INTAKE}/{thread}/feedback", json=edit, headers={"Accept-Language": language}
        )
        (problem,) = refused.json()["details"]["errors"]
        assert (refused.status_code, problem["field"]) == (400, "text")
        assert refused.json()["message"] == said


@pytest.fixture
async def modelled(home, database, llm_server):
    settings = Settings(
        home=home,
        database_url=database.safe_url,
        log_level="error",
        llm_base_url=llm_server.url,
        llm_model="fake-1",
    )
    async with serving(settings) as served:
        yield served


@ON_SQLITE
async def test_the_calls_of_a_conversation_are_on_the_record_of_its_turns(modelled: Served, llm_server):
    llm_server.default = Say("Good day.")
    first = await asked(modelled, "hello")
    both = await asked(modelled, "hello again", thread_id=first["id"])
    assert first["turns"][0]["id"] == both["turns"][0]["id"] != both["turns"][1]["id"]
    where = f"{INTAKE}/{first['id']}"
    calls = (await modelled.http.get(f"{where}/llm-calls")).json()
    assert [call["caller_agent"] for call in calls] == ["coordinator"] * 2
    assert [call["completion_text"] for call in calls] == ["Good day."] * 2
    assert ["hello again" in call["prompt_text"] for call in calls] == [False, True]
    short = (await modelled.http.get(f"{where}/llm-calls", params={"include_text": False})).json()
    assert [call["id"] for call in short] == [call["id"] for call in calls]
    assert not any(call["prompt_text"] or call["completion_text"] for call in short)
    assert (await modelled.http.get(f"{where}/api-calls")).json() == []
    issued = await modelled.desk.access.create("theirs", ["read"], "theirs")
    async with calling(modelled.http.base_url.port or 0, issued.secret) as http:
        theirs = [await http.get(f"{where}/{kind}") for kind in ("llm-calls", "api-calls")]
    assert [answer.status_code for answer in theirs] == [404] * 2


async def test_a_desk_that_keeps_nothing_says_so_when_asked_for_calls(home):
    async with serving(Settings(home=home, log_level="error", persistence=False)) as served:
        thread = (await asked(served, "hello"))["id"]
        for kind in ("llm-calls", "api-calls"):
            answer = await served.http.get(f"{INTAKE}/{thread}/{kind}")
            assert (answer.status_code, answer.json()["code"]) == (503, "PERSISTENCE_OFF")


@ON_SQLITE
@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "events"])
async def test_a_refusal_has_its_status_even_where_events_were_asked_for(desk: Served, headers):
    waiting = (await asked(desk))["id"]
    ways = [
        (404, desk.http.post(f"{INTAKE}/{NOBODY}/feedback", json=ACCEPTED, headers=headers)),
        (404, desk.http.post(f"{INTAKE}/{NOBODY}/resume", headers=headers)),
        (404, desk.http.post(INTAKE, json={"question": "hi", "thread_id": NOBODY}, headers=headers)),
        (409, desk.http.post(INTAKE, json={"question": "hi", "thread_id": waiting}, headers=headers)),
        (409, desk.http.post(f"{INTAKE}/{waiting}/resume", headers=headers)),
    ]
    codes = {404: "CONVERSATION_NOT_FOUND", 409: "NOT_ITS_TURN"}
    for status, way in ways:
        answer = await way
        assert (answer.status_code, answer.json()["code"]) == (status, codes[status])


@ON_SQLITE
async def test_an_error_is_in_the_language_of_its_reader(desk: Served):
    chinese = await desk.http.get(f"{INTAKE}/{NOBODY}", headers={"Accept-Language": "zh-CN"})
    english = await desk.http.get(f"{INTAKE}/{NOBODY}", headers={"Accept-Language": "en"})
    assert (chinese.status_code, english.status_code) == (404, 404)
    assert chinese.json()["message"].startswith("没有编号为")
    assert english.json()["message"].startswith("There is no conversation")


async def test_another_workspace_knows_nothing_of_a_conversation(desk: Served):
    thread = (await asked(desk))["id"]
    issued = await desk.desk.access.create("theirs", ["research", "read"], "theirs")
    async with calling(desk.http.base_url.port or 0, issued.secret) as http:
        answers = [
            await http.get(f"{INTAKE}/{thread}"),
            await http.post(f"{INTAKE}/{thread}/feedback", json=ACCEPTED),
            await http.post(f"{INTAKE}/{thread}/resume"),
            await http.post(INTAKE, json={"question": "hi", "thread_id": thread}),
        ]
        listed = await http.get(INTAKE)
        theirs = await http.post(INTAKE, json={"question": "hi"})
    assert [answer.status_code for answer in answers] == [404] * 4
    assert (listed.json(), theirs.json()["requested_by"]) == ([], "theirs")
    assert (await desk.desk.conversation(UUID(thread))).status == "waiting"


async def test_the_newest_conversations_come_first(desk: Served):
    first, second = (await asked(desk, "hello")), (await asked(desk, "hello again"))
    await asked(desk, "hello once more", thread_id=first["id"])
    listed = (await desk.http.get(INTAKE)).json()
    assert [found["id"] for found in listed] == [first["id"], second["id"]]
    assert [len(found["turns"]) for found in listed] == [2, 1]
    assert [found["id"] for found in (await desk.http.get(INTAKE, params={"limit": 1})).json()] == [
        first["id"]
    ]
    assert (await desk.http.get(INTAKE, params={"limit": 0})).status_code == 400


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "events"])
async def test_whoever_hangs_up_stops_the_question_and_can_go_on_with_it(desk: Served, gate, headers):
    body = {"question": VALUATION, "auto_accepted_plan": True}
    asking = asyncio.create_task(desk.http.post(INTAKE, json=body, headers=headers))
    await gate.reached(1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await _stopped(desk)
    (left,) = (await desk.http.get(INTAKE)).json()
    assert left["status"] == "running"
    await gate.open()
    async with asyncio.timeout(IN_TIME):
        while (await desk.http.post(f"{INTAKE}/{left['id']}/resume", headers=headers)).status_code == 409:
            await asyncio.sleep(0.02)  # its last steps are still being undone
    ended = (await desk.http.get(f"{INTAKE}/{left['id']}")).json()
    assert (ended["status"], len(ended["turns"])) == ("answered", 1)


async def _stopped(desk: Served) -> None:
    """Until the research that a question had begun is cancelled."""
    async with asyncio.timeout(IN_TIME):
        while [s["status"] for s in (await desk.http.get(SESSIONS)).json()["items"]] != ["cancelled"]:
            await asyncio.sleep(0.02)


@ON_SQLITE
async def test_a_quiet_stream_shows_that_it_lives(desk: Served, gate, monkeypatch):
    monkeypatch.setattr(intake_routes, "QUIET_SECONDS", 0.05)
    body = {"question": VALUATION, "auto_accepted_plan": True}
    async with (
        asyncio.timeout(IN_TIME),
        desk.http.stream("POST", INTAKE, json=body, headers=EVENTS) as stream,
    ):
        lines = stream.aiter_lines()
        while await anext(lines) != "event: step":
            pass
        while await anext(lines) != ": ping":
            pass
        await gate.open()
        rest = [line async for line in lines]
    assert (rest.count("event: done"), rest.count("event: report")) == (1, 1)


@ON_SQLITE
@pytest.mark.parametrize(
    ("trouble", "code", "said"),
    [
        (Unavailable("the disk is full"), "UNAVAILABLE", "the disk is full"),
        (RuntimeError("secret of the inside"), "INTERNAL_ERROR", "the log has the details"),
    ],
)
async def test_a_stream_that_has_begun_ends_with_its_error(desk: Served, monkeypatch, trouble, code, said):
    async def failing(*_, **__):
        raise trouble

    monkeypatch.setattr(SqlConversations, "save", failing)
    story = told((await desk.http.post(INTAKE, json={"question": VALUATION}, headers=EVENTS)).text)
    assert [event.event for event in story] == ["plan", "error", "done"]
    assert story[1].data["code"] == code
    assert said in story[1].data["message"]
    assert story[2].data == {"status": "failed"}


@ON_SQLITE
async def test_the_schema_documents_both_ways_to_be_answered(desk: Served):
    paths = (await desk.http.get("/openapi.json")).json()["paths"]
    ours = {path.removeprefix(INTAKE): methods for path, methods in paths.items() if path.startswith(INTAKE)}
    assert {path: sorted(methods) for path, methods in ours.items()} == {
        "": ["get", "post"],
        "/metrics": ["get"],
        "/metrics/locale-sample": ["get"],
        "/{thread}": ["get"],
        "/{thread}/api-calls": ["get"],
        "/{thread}/llm-calls": ["get"],
        "/{thread}/feedback": ["post"],
        "/{thread}/resume": ["post"],
    }
    for answers in (methods["post"]["responses"] for methods in ours.values() if "post" in methods):
        assert set(answers["200"]["content"]) == {"application/json", "text/event-stream"}
        assert {"400", "404", "409"} <= set(answers)
        assert all(name in answers["200"]["description"] for name in ("interrupt", "report", "done"))
