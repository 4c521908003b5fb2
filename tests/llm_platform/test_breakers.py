"""Models and search services that fail: when they are left alone, who answers instead, and when they are tried."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.modules.governance.application.circuit_breaker import BreakerReport, Breakers, BreakerState
from moot.modules.governance.application.coordinator_agent import DecisionRequest
from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService
from moot.modules.llm_platform.application.web_search import (
    Searches,
    WebSearchRequest,
    WebSearchService,
)
from moot.modules.llm_platform.domain.budget import Budget, Limits
from moot.modules.llm_platform.domain.call_record import CallJournal
from moot.modules.llm_platform.domain.exceptions import (
    BudgetExceeded,
    LLMConnectionError,
    NoAvailableModel,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel
from moot.modules.llm_platform.infrastructure.web_searches import SearxngSearch
from moot.shared.infrastructure.execution_context import (
    DEFAULT_WORKSPACE,
    ExecutionContext,
)
from moot.shared.infrastructure.settings import Settings
from tests.fakes.careful_model import careful
from tests.fakes.clock import HandClock, leap, until
from tests.fakes.llm_server import Hang, LLMServer, Raw, Say, Status, running_llm_server
from tests.fakes.search_server import FakeCache, FakeSearchAudit, LocalWeb, Reply, local_web

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
USER = [ChatMessage(role="user", content="how is it?")]
DOWN = Status(503, "down")
NONSENSE = Raw(b"[]")
"""A failure that no second attempt follows."""
CLOSED, HALF_OPEN, OPEN = BreakerState


class Bench:
    """Services behind breakers whose time passes by hand."""

    def __init__(self) -> None:
        self.clock = HandClock(NOW)
        self.breakers = Breakers(self.clock)
        self.slept: list[float] = []
        self._model = OpenAIChatModel()

    def service(self, *configs: LLMConfig, limits: Limits | None = None, **settings: Any) -> LLMService:
        return LLMService(
            ModelRegistry(None, configs),
            self._model.complete,
            CallJournal(),
            Budget(limits or Limits()),
            sleep=self._sleep,
            guard=self.breakers.guard,
            **settings,
        )

    def report(self, name: str, workspace: str = DEFAULT_WORKSPACE) -> BreakerReport:
        """Models belong to a workspace, search services to the desk."""
        return self.breakers.of(name, workspace if name.startswith("model:") else None).report()

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.aclose()


@pytest.fixture
async def other_server() -> AsyncIterator[LLMServer]:
    async with running_llm_server() as server:
        yield server


def a_model(server: LLMServer, alias: str = "main", **also: Any) -> LLMConfig:
    return LLMConfig(alias=alias, base_url=server.url, model_name=f"{alias}-1", **also)


async def fail(service: LLMService, times: int = 1) -> LLMConnectionError:
    for _ in range(times):
        with pytest.raises(LLMConnectionError) as raised:
            await service.chat(USER)
    return raised.value


class TestModels:
    async def test_five_failed_attempts_are_all_that_reach_a_broken_service(self, bench, llm_server):
        llm_server.default = DOWN
        service = bench.service(a_model(llm_server))
        await fail(service)
        assert (len(llm_server.requests), len(bench.slept)) == (3, 2)
        cut_short = await fail(service)
        assert (len(llm_server.requests), bench.report("model:main").state) == (5, OPEN)
        refused = await fail(service)
        assert (len(llm_server.requests), bench.report("model:main").failed) == (5, 5)
        assert cut_short.details == refused.details == {"alias": "main", "retry_after": 60}
        assert "Try again in 60 s" in refused.in_locale("en-US")

    async def test_after_a_minute_one_call_finds_out_and_the_others_wait_for_it(self, bench, llm_server):
        llm_server.default = NONSENSE
        service = bench.service(a_model(llm_server, concurrency=3))
        await fail(service, 5)
        bench.clock.move(60)
        llm_server.default = Say("back", delay=0.1)
        answers = await asyncio.gather(*(service.chat(USER) for _ in range(3)), return_exceptions=True)
        assert [type(answer).__name__ for answer in answers] == [
            "ChatResult",
            "LLMConnectionError",
            "LLMConnectionError",
        ]
        assert (len(llm_server.requests), bench.report("model:main").state) == (6, CLOSED)
        assert (await service.chat(USER)).content == "back"

    async def test_a_service_that_is_still_broken_is_left_alone_for_another_minute(self, bench, llm_server):
        llm_server.default = NONSENSE
        service = bench.service(a_model(llm_server))
        await fail(service, 5)
        bench.clock.move(60)
        await fail(service, 2)
        assert (len(llm_server.requests), bench.report("model:main").state) == (6, OPEN)

    async def test_the_next_model_answers_while_the_first_is_left_alone(
        self, bench, llm_server, other_server
    ):
        llm_server.default, other_server.default = DOWN, Say("second")
        service = bench.service(a_model(llm_server, priority=9), a_model(other_server, "spare"))
        answers = [await service.chat(USER) for _ in range(4)]
        assert [answer.alias for answer in answers] == ["spare"] * 4
        assert (len(llm_server.requests), len(other_server.requests)) == (5, 4)
        assert bench.report("model:spare").successful == 4

    async def test_when_all_are_left_alone_the_first_to_be_tried_says_when(
        self, bench, llm_server, other_server
    ):
        llm_server.default = other_server.default = NONSENSE
        service = bench.service(a_model(llm_server, priority=9), a_model(other_server, "spare"))
        await fail(bench.service(a_model(llm_server)), 5)
        bench.clock.move(20)
        await fail(bench.service(a_model(other_server, "spare")), 5)
        with pytest.raises(NoAvailableModel) as raised:
            await service.chat(USER)
        assert raised.value.details == {"aliases": ["main", "spare"], "retry_after": 40}

    async def test_a_model_of_another_workspace_has_a_breaker_of_its_own(self, bench, llm_server):
        llm_server.default = NONSENSE
        service = bench.service(a_model(llm_server), a_model(llm_server, workspace_id="theirs"))
        await fail(service, 5)
        with ExecutionContext(session_id="", workspace="theirs").active():
            await fail(service)
        assert (len(llm_server.requests), bench.breakers.open_names()) == (6, ["model:main"])
        assert bench.breakers.open_names("theirs") == []
        assert bench.report("model:main", "theirs").failed == 1


class TestWhatCounts:
    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 429])
    async def test_a_refusal_is_not_the_services_failure(self, bench, llm_server, status):
        llm_server.default = Status(status, "no")
        await fail(bench.service(a_model(llm_server)), 6)
        report = bench.report("model:main")
        assert (report.failed, report.rejected, report.state) == (0, 0, CLOSED)
        assert len(llm_server.requests) >= 6

    async def test_a_web_page_is_a_wrong_address_and_not_its_failure(self, bench, llm_server):
        llm_server.default = Raw(b"<html>welcome</html>", "text/html")
        await fail(bench.service(a_model(llm_server)), 6)
        assert (len(llm_server.requests), bench.report("model:main").failed) == (6, 0)

    async def test_an_exhausted_budget_is_not_its_failure(self, bench, llm_server):
        service = bench.service(a_model(llm_server), limits=Limits(day_tokens=1))
        for _ in range(6):
            with pytest.raises(BudgetExceeded):
                await service.chat(USER)
        assert (bench.report("model:main").state, bench.report("model:main").failed) == (CLOSED, 0)

    async def test_a_call_broken_off_by_its_caller_counts_neither_way(self, bench, llm_server):
        llm_server.default = Hang()
        llm_server.script(Say())
        service = bench.service(a_model(llm_server))
        await service.chat(USER)
        for place in range(2, 7):
            call = asyncio.create_task(service.chat(USER))
            await until(lambda: len(llm_server.requests) == place)  # noqa: B023
            call.cancel()
            await asyncio.wait({call})
            assert call.cancelled()
        report = bench.report("model:main")
        assert (len(llm_server.requests), report.successful, report.failed, report.state) == (6, 1, 0, CLOSED)

    async def test_silence_until_the_deadline_counts(self, bench, llm_server):
        llm_server.default = Hang()
        llm_server.script(Say())
        await bench.service(a_model(llm_server)).chat(USER)
        service = bench.service(a_model(llm_server), deadline=60)
        for place in range(2, 7):
            failing = asyncio.create_task(fail(service))
            await until(lambda: len(llm_server.requests) == place)  # noqa: B023
            leap(60)
            await failing
        assert (len(llm_server.requests), bench.report("model:main").state) == (6, OPEN)

    async def test_a_model_with_little_time_left_for_it_has_not_failed(self, bench, llm_server, other_server):
        def late(_: dict[str, Any]) -> Status:
            leap(35)
            return Status(503, headers={"retry-after": "20"})

        llm_server.script(Say(), late)
        other_server.default = Hang()
        main, spare = a_model(llm_server, priority=9), a_model(other_server, "spare")
        await bench.service(main).chat(USER)
        asking = asyncio.create_task(bench.service(main, spare, deadline=60).chat(USER))
        await until(lambda: other_server.requests)
        leap(25)
        with pytest.raises(NoAvailableModel):
            await asking
        assert (len(llm_server.requests), len(other_server.requests)) == (2, 1)
        assert (bench.report("model:main").failed, bench.report("model:spare").failed) == (1, 0)

    async def test_a_service_nobody_reaches_counts(self, bench):
        async with running_llm_server() as gone:
            config = a_model(gone)
        await fail(bench.service(config), 2)
        assert bench.report("model:main").state is OPEN


def a_search(server: LocalWeb, bench: Bench, **also: Any) -> WebSearchService:
    given = {"audit": FakeSearchAudit(), "kept": Searches(), "clock": bench.clock, **also}
    return WebSearchService(SearxngSearch(server.url, timeout=60), guard=bench.breakers.guard, **given)


@asynccontextmanager
async def searching(
    bench: Bench, reply: Reply, **also: Any
) -> AsyncIterator[tuple[LocalWeb, WebSearchService]]:
    async with local_web() as server:
        server.replies["/search"] = reply
        search = a_search(server, bench, **also)
        yield server, search
        await search._provider.aclose()


def asked(query: str) -> WebSearchRequest:
    return WebSearchRequest(query=query)


class TestWebSearch:
    async def test_five_failures_are_all_that_reach_a_broken_service(self, bench):
        audit = FakeSearchAudit()
        async with searching(bench, Reply("down", status=503), audit=audit) as (server, search):
            for _ in range(5):
                with pytest.raises(WebSearchError):
                    await search.search(asked("baijiu"))
            with pytest.raises(WebSearchConnectionError) as raised:
                await search.search(asked("baijiu"))
            assert (len(server.asked), raised.value.details) == (5, {"retry_after": 60})
            assert bench.report("web-search:searxng").state is OPEN
            bench.clock.move(60)
            server.replies["/search"] = Reply(json.dumps({"results": []}))
            assert (await search.search(asked("baijiu"))).results == []
        assert (len(server.asked), bench.report("web-search:searxng").state) == (6, CLOSED)

    async def test_a_search_that_was_not_made_is_on_record_as_failed_so_that_a_replay_is_told_the_same(
        self, bench
    ):
        audit = FakeSearchAudit()
        async with searching(bench, Reply(reset=True), audit=audit) as (_, search):
            for _ in range(6):
                with pytest.raises(WebSearchConnectionError):
                    await search.search(asked("baijiu"))
        *_, last = audit.calls.values()
        assert (len(audit.calls), last["status"], last["status_code"]) == (6, "failed", None)
        assert "web-search:searxng" in last["error_message"]

    async def test_what_the_cache_holds_is_found_all_the_same(self, bench):
        async with searching(bench, Reply(json.dumps({"results": []})), kept=FakeCache()) as (
            server,
            search,
        ):
            await search.search(asked("kept"))
            server.replies["/search"] = Reply("down", status=503)
            for _ in range(6):
                with pytest.raises((WebSearchError, WebSearchConnectionError)):
                    await search.search(asked("new"))
            assert (await search.search(asked("kept"))).results == []
        assert bench.report("web-search:searxng").state is OPEN

    @pytest.mark.parametrize("status", [400, 401, 403, 429])
    async def test_a_refusal_is_not_the_services_failure(self, bench, status):
        async with searching(bench, Reply("no", status=status)) as (server, search):
            for _ in range(6):
                with pytest.raises(WebSearchError):
                    await search.search(asked("baijiu"))
        assert (len(server.asked), bench.report("web-search:searxng").failed) == (6, 0)


@pytest.fixture
async def desk(llm_server: LLMServer, home: Path, clock) -> AsyncIterator[Moot]:
    llm_server.default = careful
    settings = Settings(home=home, llm_base_url=llm_server.url, llm_model="careful-1", log_level="error")
    async with Moot(settings, clock=clock) as desk:
        yield desk


def a_decision(kind: str, **payload: Any) -> DecisionRequest:
    return DecisionRequest("d-1", kind, payload, {}, requester="agent", timestamp=NOW)


class TestTheDesk:
    async def test_a_model_left_alone_is_in_the_status_and_puts_tool_calls_before_a_person(
        self, desk, llm_server
    ):
        llm_server.default = NONSENSE
        await fail(desk.llm_platform.llm_service(), 5)
        agent = desk.governance.agent
        status = await agent.status()
        assert status.circuit_breaker_state == "open"
        assert [(b.name, b.state, b.failed) for b in status.circuit_breakers] == [("model:default", OPEN, 5)]
        tool = a_decision("tool_call", tool="database", args={"sql": "SELECT 1"})
        decided = await agent.validate(tool)
        assert decided.status.value == "escalated"
        assert [v.rule_id for v in decided.violations] == ["system.open_breaker"]
        node = a_decision("node", node="judge", symbol="900001.DEMO", options={})
        assert (await agent.validate(node)).status.value == "approved"

    async def test_a_replay_is_answered_from_the_record_while_the_model_is_left_alone(self, desk, llm_server):
        experts = ["technical_analyst", "valuation_modeler"]
        result = await desk.research("900001.DEMO", experts, skip_debate=True)
        llm_server.default = NONSENSE
        await fail(desk.llm_platform.llm_service(), 5)
        before = len(llm_server.requests)
        replay = await desk.replay(UUID(result.session_id))
        assert (replay.equal, len(llm_server.requests)) == (True, before)
        (breaker,) = desk.governance.agent.breakers.reports()
        assert (breaker.state, breaker.rejected) == (OPEN, 0)
