"""The one door to models: routed, budgeted, recorded, retried, failed over, and answered from the record."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from structlog.testing import capture_logs

from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.domain.budget import Limits
from moot.modules.llm_platform.domain.chat import ChatMessage, ResponseSchema, Tool
from moot.modules.llm_platform.domain.exceptions import (
    BudgetExceeded,
    LLMConnectionError,
    NoAvailableModel,
    ReplayMismatch,
)
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.call_journal import SqlCallJournal
from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel
from moot.modules.llm_platform.infrastructure.spending_store import SqlBudget
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.call_audit import CallAudit
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from tests.fakes.clock import FixedClock, leap, settle, until
from tests.fakes.llm_server import Hang, LLMServer, Raw, Say, Status, Trickle, running_llm_server

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
CANARY = "sk-canary-5f1e7a9b"
USER = [ChatMessage(role="user", content="贵州茅台怎么样？")]


class Bench:
    """A service over real HTTP and a real database, with everything it leaves behind in reach."""

    def __init__(self, database: Database, clock: Any = None) -> None:
        self.database, self.trail = database, AuditTrail(database)
        self.clock = clock or SystemClock()
        self.model = OpenAIChatModel()
        self.slept: list[float] = []

    def service(
        self, *configs: LLMConfig, limits: Limits | None = None, strict: bool = False, **settings: Any
    ) -> LLMService:
        return LLMService(
            ModelRegistry(None, configs),
            self.model.complete,
            SqlCallJournal(CallAudit(self.trail, self.clock, strict=strict)),
            SqlBudget(self.database, FixedClock(NOW), limits or Limits(), "CNY"),
            sleep=self._sleep,
            **settings,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def rows(self, columns: str = "*") -> Sequence[Any]:
        async with self.database.session() as db:
            found = await db.execute(
                text(f"SELECT {columns} FROM llm_call_logs ORDER BY created_at, attempt")
            )
            return found.mappings().all()


@pytest.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    bench = Bench(database)
    yield bench
    await bench.model.aclose()


@pytest.fixture
async def other_server() -> AsyncIterator[LLMServer]:
    async with running_llm_server() as server:
        yield server


@pytest.fixture
def session():
    with ExecutionContext(session_id=str(uuid4())).active() as context:
        yield context


def a_model(server: LLMServer, alias: str = "main", **also: Any) -> LLMConfig:
    given = {"model_name": f"{alias}-1", "vendor": "stub", "api_key": SecretStr(CANARY), **also}
    return LLMConfig(alias=alias, base_url=server.url, **given)


class TestRecord:
    @pytest.mark.accepts("A2-03", "A2-05", "A2-37", "A2-41", "W7")
    async def test_a_call_is_on_record_with_who_asked_whom_what_and_what_it_took(
        self, bench, llm_server, session
    ):
        llm_server.default = Say("很好", usage=(100, 50), reasoning="想了想")
        service = bench.service(a_model(llm_server, price_in=1.0, price_out=2.0))
        answer = await service.generate(
            "怎么样？", "你是分析师", 0.3, caller_module="research", caller_agent="technical_analyst"
        )
        (row,) = await bench.rows()
        assert answer == "很好"
        assert {name: row[name] for name in ROW} == ROW
        assert row["latency_ms"] >= 0
        assert row["cost"] == pytest.approx(200 / 1e6)
        assert str(row["session_id"]).replace("-", "") == session.session_id.replace("-", "")
        assert (await verify(bench.trail, UUID(session.session_id))).intact

    @pytest.mark.accepts("A2-06")
    async def test_without_a_session_the_row_says_so(self, bench, llm_server):
        await bench.service(a_model(llm_server)).generate("hello")
        (row,) = await bench.rows()
        assert (row["session_id"], row["status"]) == (None, "success")

    @pytest.mark.accepts("A2-44", "A2-03")
    async def test_as_many_rows_as_requests_whatever_went_wrong(self, bench, llm_server, session):
        rotten = [
            Status(429),
            Status(500),
            Say(),
            Hang(0.05),
            Status(529),
            Say(),
            Raw(b"<html>"),
            Status(401),
        ]
        llm_server.script(*rotten * 3)
        service = bench.service(a_model(llm_server), deadline=600.0)
        await asyncio.gather(
            *(service.generate(f"q{n}", caller_agent=f"a{n}") for n in range(16)), return_exceptions=True
        )
        rows = await bench.rows()
        assert len(rows) == len(llm_server.requests) > 16
        assert {row["status"] for row in rows} == {"success", "failed"}
        assert (await verify(bench.trail, UUID(session.session_id))).intact

    @pytest.mark.accepts("A2-33")
    async def test_an_audit_that_fails_is_a_warning_and_a_gap_and_the_answer_is_there(
        self, bench, llm_server, session
    ):
        def drop(db):
            db.execute(text("DROP TABLE llm_call_logs"))

        await bench.database.write(drop)
        with capture_logs() as logs:
            assert await bench.service(a_model(llm_server)).generate("hello") == "ok"
        assert [log["log_level"] for log in logs if log["event"] == "call not recorded"] == ["warning"]
        assert session.tally.audit_gaps == 1

    async def test_a_key_reaches_no_row_no_log_and_no_error(self, bench, llm_server, session):
        leak = json.dumps({"error": {"message": f"Incorrect API key provided: {CANARY}."}})
        llm_server.default = Status(401, leak, {"x-key": CANARY})
        with capture_logs() as logs, pytest.raises(LLMConnectionError) as caught:
            await bench.service(a_model(llm_server, proxy=None)).generate("hello")
        rows = [dict(row) for row in await bench.rows()]
        assert len(rows) == 1
        assert CANARY not in f"{rows} {logs} {caught.value!r} {caught.value.details}"
        assert llm_server.requests[0].headers["authorization"] == f"Bearer {CANARY}", "it was really used"

    async def test_a_call_that_is_cancelled_is_recorded_as_unknown(self, bench, llm_server, session):
        llm_server.default = Hang()
        call = asyncio.create_task(bench.service(a_model(llm_server)).generate("hello"))
        while not llm_server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [row["status"] for row in await bench.rows()] == ["unknown"]


ROW = {
    "caller_module": "research",
    "caller_agent": "technical_analyst",
    "model_name": "main-1",
    "vendor": "stub",
    "alias": "main",
    "prompt_text": "怎么样？",
    "system_message": "你是分析师",
    "completion_text": "很好",
    "reasoning_text": "想了想",
    "finish_reason": "stop",
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "total_tokens": 150,
    "temperature": 0.3,
    "ordinal": 0,
    "attempt": 1,
    "origin": "live",
    "status": "success",
    "error_message": None,
}


class TestRouting:
    @pytest.mark.accepts("W11")
    async def test_the_larger_priority_is_asked_first(self, bench, llm_server, other_server):
        service = bench.service(
            a_model(other_server, "low", priority=1), a_model(llm_server, "high", priority=9)
        )
        assert (await service.chat(USER)).alias == "high"
        assert other_server.requests == []

    async def test_all_tags_must_match_and_an_alias_is_asked_alone(self, bench, llm_server, other_server):
        service = bench.service(
            a_model(llm_server, "fast", priority=9, tags=["quick"]),
            a_model(other_server, "deep", tags=["quick", "zh"]),
        )
        assert (await service.chat(USER, tags=["quick", "zh"])).alias == "deep"
        other_server.default = Status(400, "no")
        with pytest.raises(LLMConnectionError, match="deep"):
            await service.chat(USER, alias="deep")
        assert llm_server.requests == []

    async def test_the_next_model_answers_when_the_first_does_not_and_both_are_on_record(
        self, bench, llm_server, other_server, session
    ):
        llm_server.default = Status(500, "out of order")
        service = bench.service(a_model(llm_server, "first", priority=2), a_model(other_server, "second"))
        assert (await service.chat(USER)).alias == "second"
        rows = await bench.rows()
        assert [(row["alias"], row["status"], row["attempt"]) for row in rows] == [
            ("first", "failed", 1),
            ("first", "failed", 2),
            ("first", "failed", 3),
            ("second", "success", 4),
        ]

    async def test_when_all_fail_the_error_names_each_and_why(self, bench, llm_server, other_server):
        llm_server.default, other_server.default = Status(401, "bad key"), Raw(b"<html>login</html>")
        service = bench.service(a_model(llm_server, "one"), a_model(other_server, "two"))
        with pytest.raises(NoAvailableModel) as caught:
            await service.chat(USER)
        assert all(part in str(caught.value) for part in ("one", "two", "401"))
        assert caught.value.in_locale("zh-CN").startswith("没有模型给出回答")

    async def test_without_any_model_the_error_says_how_to_get_one(self, bench):
        service = bench.service()
        assert not service.configured
        with pytest.raises(NoAvailableModel, match="moot llm add"):
            await service.chat(USER)


class TestPatience:
    async def test_what_the_vendor_asks_for_is_waited(self, bench, llm_server):
        llm_server.script(Status(429, "slow down", {"retry-after": "3"}), Say("now"))
        assert await bench.service(a_model(llm_server)).generate("hello") == "now"
        assert bench.slept == [3.0]

    async def test_an_absurd_wait_ends_the_attempts_instead(self, bench, llm_server):
        llm_server.default = Status(429, "slow down", {"retry-after": "99999"})
        with pytest.raises(LLMConnectionError):
            await bench.service(a_model(llm_server)).generate("hello")
        assert (bench.slept, len(llm_server.requests)) == ([], 1)

    async def test_a_model_that_wants_long_pauses_is_left_for_another(self, bench, llm_server, other_server):
        llm_server.default = Status(429, "slow down", {"retry-after": "20"})
        service = bench.service(a_model(llm_server, "busy", priority=2), a_model(other_server, "free"))
        assert (await service.chat(USER)).alias == "free"
        assert bench.slept == []

    async def test_a_refusal_is_not_asked_again(self, bench, llm_server):
        llm_server.default = Status(403, "no")
        with pytest.raises(LLMConnectionError):
            await bench.service(a_model(llm_server)).generate("hello")
        assert len(llm_server.requests) == 1

    @pytest.mark.parametrize(
        "slow", [Hang(), Trickle(pause=0.05, pieces=20_000)], ids=["silent", "trickling"]
    )
    async def test_the_deadline_is_for_the_whole_call(self, bench, llm_server, slow):
        llm_server.default = slow
        asking = asyncio.create_task(bench.service(a_model(llm_server), deadline=60).generate("hello"))
        await until(lambda: llm_server.requests)
        leap(60)
        with pytest.raises(LLMConnectionError, match=r"60 seconds"):
            await asking
        assert [row["status"] for row in await bench.rows()] == ["failed"]


class TestTurns:
    """A model that answers one request at a time is not asked more at once."""

    async def test_waiting_for_a_turn_takes_none_of_the_time_for_the_answer(self, bench, llm_server):
        doors = [asyncio.Event() for _ in range(3)]
        llm_server.script(*(Say(f"answer {n}", held_until=door) for n, door in enumerate(doors)))
        service = bench.service(a_model(llm_server, timeout=100))
        asking = [asyncio.create_task(service.generate("hello")) for _ in doors]
        for received, door in enumerate(doors, 1):
            await until(lambda received=received: len(llm_server.requests) == received)
            leap(90)
            await settle()
            door.set()
        assert sorted(await asyncio.gather(*asking)) == ["answer 0", "answer 1", "answer 2"]
        assert llm_server.most_in_flight == 1

    async def test_as_many_as_the_model_may_be_asked_are_under_way(self, bench, llm_server):
        door = asyncio.Event()
        llm_server.default = Say(held_until=door)
        service = bench.service(a_model(llm_server, concurrency=2))
        asking = [asyncio.create_task(service.generate("hello")) for _ in range(4)]
        await until(lambda: len(llm_server.requests) == 2)
        door.set()
        await asyncio.gather(*asking)
        assert (len(llm_server.requests), llm_server.most_in_flight) == (4, 2)

    async def test_a_deadline_that_was_set_holds_for_waiting_too(self, bench, llm_server):
        llm_server.default = Hang()
        service = bench.service(a_model(llm_server), deadline=60)
        asking = [asyncio.create_task(service.generate("hello")) for _ in range(2)]
        await until(lambda: llm_server.requests)
        leap(60)
        slow, waited = await asyncio.gather(*asking, return_exceptions=True)
        assert "timed out: no answer within 60 seconds" in str(slow)
        assert "To give it more time: MOOT_LLM_DEADLINE" in str(slow)
        assert "no turn came in time" in str(waited)

    @pytest.mark.parametrize(
        ("model", "setting"),
        [
            ({}, r"--timeout of `moot llm add` \(`moot llm remove main` first\)"),
            ({"alias": "default", "vendor": "environment"}, "MOOT_LLM_TIMEOUT"),
        ],
    )
    async def test_one_that_is_too_slow_says_which_setting_gives_it_time(
        self, bench, llm_server, model, setting
    ):
        llm_server.default = Hang()
        asking = asyncio.create_task(
            bench.service(a_model(llm_server, **model, timeout=45)).generate("hello")
        )
        await until(lambda: llm_server.requests)
        leap(45)
        with pytest.raises(LLMConnectionError, match=f"within 45 seconds. To give it more time: {setting}"):
            await asking


class TestStructure:
    async def test_a_model_that_knows_no_schema_is_asked_without_and_remembered(self, bench, llm_server):
        llm_server.script(
            Status(400, '{"error": {"message": "response_format json_schema is not supported"}}')
        )
        llm_server.default = Say('{"a": 1}')
        service = bench.service(a_model(llm_server))
        schema = ResponseSchema(name="answer", json_schema={"type": "object"})
        for _ in range(2):
            assert (await service.chat(USER, response_schema=schema)).content == '{"a": 1}'
        assert ["response_format" in seen.body for seen in llm_server.requests] == [True, False, False]

    async def test_the_use_of_a_tool_comes_back_and_is_on_the_record(self, bench, llm_server):
        llm_server.default = Say(None, tool_calls=[("c1", "look", '{"x": 1}')], finish_reason="tool_calls")
        tool = Tool(name="look", description="look", parameters={"type": "object", "properties": {}})
        result = await bench.service(a_model(llm_server)).chat(USER, [tool])
        assert [(call.name, call.arguments) for call in result.tool_calls] == [("look", '{"x": 1}')]
        assert "look" in str((await bench.rows("tool_calls"))[-1]["tool_calls"])

    @pytest.mark.parametrize(
        ("complaint", "sent"),
        [
            ("Unsupported value: 'temperature' does not support 0.7 with this model", "temperature"),
            ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ],
    )
    async def test_a_parameter_that_is_refused_is_left_out(self, bench, llm_server, complaint, sent):
        llm_server.script(Status(400, json.dumps({"error": {"message": complaint}})))
        assert await bench.service(a_model(llm_server)).generate("hello") == "ok"
        assert [sent in seen.body for seen in llm_server.requests] == [True, False]


class TestBudget:
    async def test_a_call_that_could_cost_too_much_is_not_made(self, bench, llm_server, session):
        service = bench.service(a_model(llm_server), limits=Limits(session_tokens=100))
        with pytest.raises(BudgetExceeded, match="100"):
            await service.chat(USER)
        assert (llm_server.requests, await bench.rows()) == ([], [])

    async def test_fifty_callers_at_once_never_spend_more_than_is_allowed(self, bench, llm_server, session):
        llm_server.default = Say("ok", usage=(10, 10), delay=0.01)
        service = bench.service(a_model(llm_server), limits=Limits(session_tokens=1000))
        outcomes = await asyncio.gather(
            *(service.chat(USER, max_tokens=100) for _ in range(50)), return_exceptions=True
        )
        refused = [o for o in outcomes if isinstance(o, BudgetExceeded)]
        spent = sum(row["total_tokens"] for row in await bench.rows())
        assert refused
        assert spent <= 1000
        assert len(llm_server.requests) == 50 - len(refused)

    async def test_a_call_that_may_not_be_made_unrecorded_costs_nothing(self, bench, llm_server, session):
        def drop(db):
            db.execute(text("DROP TABLE llm_call_logs"))

        service = bench.service(a_model(llm_server), limits=Limits(session_tokens=5000), strict=True)
        await bench.database.write(drop)
        with pytest.raises(Unavailable, match="MOOT_AUDIT"):
            await service.chat(USER)
        assert llm_server.requests == []
        async with bench.database.session() as db:
            spent = (await db.execute(text("SELECT tokens_spent, tokens_reserved FROM llm_spending"))).one()
        assert tuple(spent) == (0, 0)

    async def test_what_a_failed_call_did_not_use_is_free_again(self, bench, llm_server, session):
        llm_server.script(Status(401, "bad key"))
        service = bench.service(a_model(llm_server), limits=Limits(session_tokens=600))
        with pytest.raises(LLMConnectionError):
            await service.chat(USER, max_tokens=300)
        assert (await service.chat(USER, max_tokens=300)).content == "ok"


class TestAnsweredFromTheRecord:
    async def test_a_session_that_goes_on_does_not_pay_twice(self, bench, llm_server, session):
        llm_server.default = Say("the first answer", tool_calls=[("c", "t", "{}")])
        service = bench.service(a_model(llm_server))
        first = await service.chat(USER, caller_agent="judge")
        with going_on(session, "resume"):
            again = await service.chat(USER, caller_agent="judge")
            new = await service.chat(USER, caller_agent="judge")
        assert (again.content, again.tool_calls, again.usage) == (
            first.content,
            first.tool_calls,
            first.usage,
        )
        assert (again.origin, new.origin, len(llm_server.requests)) == ("record", "live", 2)
        assert [(row["origin"], row["ordinal"]) for row in await bench.rows()] == [
            ("live", 0),
            ("record", 0),
            ("live", 1),
        ]

    async def test_an_answer_still_says_what_its_model_may_know(self, bench, llm_server, session):
        """It decides whether the answer may be hindsight, and so must be the same again."""
        service = bench.service(a_model(llm_server, knowledge_cutoff=date(2026, 1, 31)))
        first = await service.chat(USER, caller_agent="judge")
        with going_on(session, "resume"):
            again = await service.chat(USER, caller_agent="judge")
        assert (again.origin, again.knowledge_cutoff) == ("record", date(2026, 1, 31))
        assert first.knowledge_cutoff == again.knowledge_cutoff

    async def test_another_question_at_the_same_place_is_asked(self, bench, llm_server, session):
        service = bench.service(a_model(llm_server))
        await service.generate("before", caller_agent="judge")
        with going_on(session, "resume"):
            await service.generate("after", caller_agent="judge")
        assert len(llm_server.requests) == 2

    async def test_a_replay_needs_neither_model_nor_network(self, bench, llm_server, session):
        await bench.service(a_model(llm_server)).generate("hello", caller_agent="judge")
        with going_on(session, "replay"):
            assert await bench.service().generate("hello", caller_agent="judge") == "ok"
        assert len(llm_server.requests) == len(await bench.rows()) == 1

    async def test_a_replay_says_whose_prompt_changed_and_where(self, bench, llm_server, session):
        await bench.service(a_model(llm_server)).generate("one\ntwo\nthree", caller_agent="judge")
        with going_on(session, "replay"), pytest.raises(ReplayMismatch, match="judge") as caught:
            await bench.service().generate("one\nTWO\nthree", caller_agent="judge")
        assert caught.value.details["difference"] == ["-two", "+TWO"]

    async def test_a_replay_says_that_a_call_was_never_made(self, bench, session):
        with going_on(session, "replay"), pytest.raises(ReplayMismatch, match="holds no answer"):
            await bench.service().generate("hello", caller_agent="bull_advocate")


def going_on(session: ExecutionContext, answers: str) -> AbstractContextManager[ExecutionContext]:
    """The same session in a new process: nothing is counted yet."""
    return ExecutionContext(session_id=session.session_id, answers=answers).active()
