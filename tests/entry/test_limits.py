"""What a client may send, and how long it may keep the desk waiting: over real sockets."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import pytest
import pytest_asyncio

from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.governance.application.rule_files import LARGEST
from moot.shared.infrastructure.settings import Settings
from moot.shared.presentation import limits
from moot.shared.presentation.limits import BOUNDS, BoundedHttp
from tests.entry.serving import IN_TIME, MACRO, SESSIONS, Gate, Served, question, serving
from tests.fakes.clock import until

DECISIONS = "/api/v1/coordinator/decisions"
RULESETS = "/api/v1/coordinator/rulesets/check"
JSON = {"Content-Type": "application/json"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One desk for all: none of them can stall it for the others."""
    async with serving(
        Settings(home=tmp_path_factory.mktemp("home"), log_level="error"), worker=True
    ) as served:
        yield served


def a_call(**changes):
    asked = {"decision_type": "tool_call", "payload": {"tool": "send_email", "args": {"to": "a@b.example"}}}
    return {**asked, **changes}


async def pieces(total: int) -> AsyncIterator[bytes]:
    for _ in range(total // 10_000):
        yield b" " * 10_000


async def test_more_than_a_megabyte_is_not_read_however_it_is_sent(served):
    announced = await served.http.post(DECISIONS, content=b" " * 1_000_001, headers=JSON)
    streamed = await served.http.post(DECISIONS, content=pieces(1_200_000), headers=JSON)
    for answer in (announced, streamed):
        assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")
        assert answer.json()["message"] == "The body is too large: at most 1000000 bytes are read here."
        assert answer.json()["details"] == {"allowed": 1_000_000}
    assert (await served.http.get("/healthz")).status_code == 200


async def test_a_file_of_rules_is_read_up_to_its_own_limit(served):
    largest = await served.http.post(RULESETS, json={"yaml": "规" * LARGEST})
    assert largest.status_code == 200, "read, and found wanting as YAML"
    larger = await served.http.post(RULESETS, json={"yaml": "x" * (6 * LARGEST)})
    assert larger.status_code == 413


@pytest.mark.parametrize(
    ("body", "problem", "said"),
    [
        (b'{"payload": 1,\n "x": }', "json_invalid", "is not valid JSON (expected value at line 2 column 7)"),
        (b"[" * 5_000, "too_deep", "is nested too deep (line 1 column 202). Allowed: depth <= 200."),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "too_deep", "is nested too deep"),
        (b'{"a": "\xff"}', "json_invalid", "at line 1 column 8"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "json_invalid", "number out of range"),
        (b'{"a": 1', "json_invalid", "EOF while parsing an object at line 1 column 7"),
    ],
)
async def test_json_that_cannot_be_read_is_refused_with_its_place(served, body, problem, said):
    for path in (DECISIONS, "/api/v1/coordinator/research", "/api/v1/coordinator/intake"):
        answer = await served.http.post(path, content=body, headers=JSON)
        (found,) = answer.json()["details"]["errors"]
        assert (answer.status_code, found["field"], found["problem"]) == (400, "body", problem)
        assert said in answer.json()["message"]


@pytest.mark.parametrize(("kind", "got"), [("text/plain", "text/plain"), ("", "-")])
async def test_what_is_not_sent_as_json_is_told_how_to_be(served, kind, got):
    request = served.http.build_request("POST", DECISIONS, content=b"hello", headers={"Content-Type": kind})
    answer = await served.http.send(request)
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        f"body: must be JSON, and be sent as such: Content-Type is {got}. Allowed: application/json."
    )


DEEP = json.loads('{"a":' * 60 + "1" + "}" * 60)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"context": {"goal": "send " * 5_000}}, "context.goal: is too long. Allowed: length <= 20000."),
        (
            {"payload": {"tool": "x", "args": {f"a{n}": n for n in range(50_000)}}},
            "payload: holds too many values (> 2000). Allowed: values <= 2000.",
        ),
        ({"context": {"facts": [1] * 20_001}}, "context: holds too many values (> 20000)."),
        ({"context": {"tools": ["x"]}}, "context.tools.0: "),
        ({"context": {"tools": {"name": "x"}}}, "context.tools: "),
        ({"context": {"history": [1]}}, "context.history.0: "),
        ({"context": {"history": [{"tool": "x", "at": "noon"}]}}, "context.history.0.at: "),
        ({"context": {"history": [{"tool": "x", "at": "2026-01-05T11:59:00"}]}}, "context.history.0.at: "),
        ({"payload": DEEP}, "payload: is nested too deep (> 50). Allowed: depth <= 50."),
    ],
)
async def test_a_decision_that_cannot_be_judged_is_refused_by_the_field_that_is_why(served, changes, said):
    answer = await served.http.post(DECISIONS, json=a_call(**changes))
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(said)


async def test_as_many_arguments_as_are_allowed_are_judged_one_by_one(served):
    args = {f"to{n}": f"a{n}@b.example" for n in range(900)}
    answer = await served.http.post(
        DECISIONS, json=a_call(payload={"tool": "send_email", "args": args}, context={"goal": "mail Bob"})
    )
    assert answer.status_code in (202, 403), answer.text[:300]
    assert "a899@b.example" in answer.text


async def test_the_desk_answers_others_while_a_decision_is_judged(served, monkeypatch):
    judging, go_on = threading.Event(), threading.Event()
    validator = served.desk.governance.agent.validator
    plain = validator.validate_by

    def take_long(*given, **more):
        judging.set()
        go_on.wait(IN_TIME)
        return plain(*given, **more)

    monkeypatch.setattr(validator, "validate_by", take_long)
    before = (await served.http.get(DECISIONS)).json()["total"]
    asked = asyncio.create_task(served.http.post(DECISIONS, json=a_call()))
    tried = asyncio.create_task(served.http.post(DECISIONS, params={"dry_run": True}, json=a_call()))
    try:
        await until(judging.is_set)
        async with asyncio.timeout(IN_TIME / 2):
            assert (await served.http.get("/healthz")).status_code == 200
        assert not asked.done() and not tried.done()
    finally:
        go_on.set()
    answers = [await asked, await tried]
    assert {answer.status_code for answer in answers} <= {200, 202, 403}
    assert (await served.http.get(DECISIONS)).json()["total"] == before + 1, (
        "on the record, the dry run is not"
    )


class Caller:
    """A connection that sends what it wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, text: bytes) -> None:
        self.writer.write(text)
        await self.writer.drain()

    async def is_hung_up_on(self) -> bool:
        try:
            async with asyncio.timeout(IN_TIME):
                return not await self.reader.read(1)
        except ConnectionError:
            return True


@pytest_asyncio.fixture(loop_scope="module")
async def call(served: Served) -> AsyncIterator[Callable[[], Awaitable[Caller]]]:
    callers: list[Caller] = []

    async def connect() -> Caller:
        url = served.http.base_url
        callers.append(Caller(*await asyncio.open_connection(url.host, url.port)))
        return callers[-1]

    yield connect
    for caller in callers:
        caller.writer.close()
        with suppress(OSError):
            await caller.writer.wait_closed()


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def test_a_body_that_trickles_is_not_waited_for(call, monkeypatch):
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    caller = await call()
    await caller.send(
        f"POST {DECISIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{".encode()
    )
    answer = await caller.reader.readuntil(b"}}")
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"TOO_SLOW" in answer


async def test_the_rest_of_a_body_that_nobody_wants_is_not_waited_for(call, monkeypatch):
    monkeypatch.setattr(BoundedHttp, "patience", 0.3)
    caller = await call()
    await caller.send(
        f"POST {DECISIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n".encode()
    )
    assert (await caller.reader.readuntil(b"}}")).startswith(b"HTTP/1.1 413")
    await caller.send(b"{")
    assert await caller.is_hung_up_on()


async def test_who_says_nothing_or_trickles_a_header_is_hung_up_on(call, monkeypatch):
    monkeypatch.setattr(BoundedHttp, "patience", 0.3)
    silent, slow = await call(), await call()
    await slow.send(b"GET /healthz HTTP/1.1\r\n")

    async def go_on() -> None:
        while True:
            await slow.send(b"X-A: b\r\n")
            await asyncio.sleep(0.05)

    trickling = asyncio.create_task(go_on())
    assert await silent.is_hung_up_on()
    assert await slow.is_hung_up_on()
    trickling.cancel()


async def test_what_follows_an_answer_winds_no_clock_up_again(call, monkeypatch):
    monkeypatch.setattr(BoundedHttp, "patience", 0.3)
    caller = await call()
    await caller.send(HEALTH)
    assert (await caller.reader.readuntil(b'{"status":"ok"}')).startswith(b"HTTP/1.1 200")
    await caller.send(b"GET /heal")
    assert await caller.is_hung_up_on()


async def test_of_too_many_who_say_nothing_the_first_make_room(served, call, monkeypatch):
    monkeypatch.setattr(BoundedHttp, "most_waiting", 5)
    silent = [await call() for _ in range(12)]
    for caller in silent[:6]:
        assert await caller.is_hung_up_on()
    assert (await served.http.get("/healthz")).status_code == 200
    await silent[-1].send(HEALTH)
    assert (await silent[-1].reader.readline()).startswith(b"HTTP/1.1 200")


async def test_connections_are_bounded_in_all():
    assert BOUNDS["limit_concurrency"] == 1000
    assert BoundedHttp.most_waiting < BOUNDS["limit_concurrency"]


async def test_a_session_has_so_many_listeners_and_no_more(served, monkeypatch):
    gate = Gate()
    monkeypatch.setattr(GovernanceAdapter, "authorise", gate.authorise)
    session = await served.start(question(experts=[MACRO]))
    await gate.reached(1)
    async with AsyncExitStack() as listening:
        path = f"{SESSIONS}/{session}/events"
        streams = [
            await listening.enter_async_context(served.http.stream("GET", path))
            for _ in range(limits.STREAMS_OF_A_SESSION)
        ]
        assert {stream.status_code for stream in streams} == {200}
        refused = await served.http.get(path)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert refused.json()["message"].startswith("16 clients listen to this session already.")
    await gate.open()
    assert (await served.ended(session))["status"] == "completed"


async def test_a_key_has_so_many_streams_in_all(monkeypatch):
    monkeypatch.setattr(limits, "STREAMS_OF_A_KEY", 2)
    streams = limits.Streams()
    with streams.listen("a", "mine"), streams.listen("b", "mine"):
        with pytest.raises(limits.TooManyRequests, match="2 streams are open with this key already"):
            streams.listen("c", "mine").__enter__()
        with streams.listen("c", "yours"):
            pass
    with streams.listen("c", "mine"):
        pass
