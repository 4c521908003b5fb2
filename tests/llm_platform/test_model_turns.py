"""What a model may be asked a minute: who waits, who asks another model, and who is told that it takes too long."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.domain.budget import Amount, Budget, Limits, Reservation
from moot.modules.llm_platform.domain.call_record import CallJournal
from moot.modules.llm_platform.domain.chat import ChatRequest, ModelReply, Usage
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded, LLMConnectionError, ModelTrouble
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.spending_store import SqlBudget
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.rate_limits import NotYet, Rate
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.shared.infrastructure.tables import RateLimitRow
from moot.shared.infrastructure.working_time import WorkingTime
from tests.fakes.clock import leap, settle
from tests.llm_platform.test_budget import a_budget, rows

Answer = Callable[[LLMConfig], ModelReply]


def a_model(alias: str = "main", **also: Any) -> LLMConfig:
    return LLMConfig(alias=alias, base_url="https://m.example/v1", model_name=f"{alias}-1", **also)


def reply(_config: LLMConfig) -> ModelReply:
    used = Usage(prompt_tokens=10, completion_tokens=10, total_tokens=20)
    return ModelReply(content="ok", model="m", usage=used)


def refuse(_config: LLMConfig) -> ModelReply:
    raise ModelTrouble("no")


class Bench:
    """Models that answer at once, on a desk that stores nothing. Time passes while somebody waits for a turn."""

    def __init__(self, *configs: LLMConfig, answer: Answer = reply, **settings: Any) -> None:
        self.asked: list[str] = []
        self.waited: list[float] = []
        self._answer, self.door = answer, asyncio.Event()
        self.door.set()
        self.service = LLMService(
            ModelRegistry(None, configs),
            self._complete,
            CallJournal(),
            Budget(Limits()),
            sleep=self._sleep,
            **settings,
        )

    async def ask(self, times: int = 1, **context: Any) -> None:
        with ExecutionContext(**context).active():
            for _ in range(times):
                await self.service.generate("hello")

    async def _complete(self, config: LLMConfig, _request: ChatRequest) -> ModelReply:
        self.asked.append(config.alias)
        await self.door.wait()
        return self._answer(config)

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        leap(seconds)
        await asyncio.sleep(0)


class TestAModelWithALimit:
    async def test_is_asked_again_when_its_minute_is_over(self):
        bench = Bench(a_model(requests_per_minute=3))
        await bench.ask(times=4)
        assert len(bench.asked) == 4
        assert sum(bench.waited) == pytest.approx(60, abs=1)

    async def test_counts_what_a_call_used_and_not_what_it_might_have(self):
        bench = Bench(a_model(tokens_per_minute=10_000))
        await bench.ask(times=20)
        assert bench.waited == []

    async def test_keeps_others_waiting_by_what_a_call_may_use(self):
        bench = Bench(a_model(tokens_per_minute=5_000), deadline=10)
        bench.door.clear()
        first = asyncio.create_task(bench.ask())
        await settle()
        with pytest.raises(LLMConnectionError, match="5,000 tokens a minute"):
            await bench.ask()
        bench.door.set()
        await first
        await bench.ask()
        assert len(bench.asked) == 2

    async def test_lets_the_next_in_as_soon_as_a_call_has_used_less(self):
        bench = Bench(a_model(tokens_per_minute=5_000))
        bench.door.clear()
        calls = [asyncio.create_task(bench.ask()) for _ in range(2)]
        while len(bench.waited) < 3:
            await asyncio.sleep(0)
        bench.door.set()
        await asyncio.gather(*calls)
        assert sum(bench.waited) < 20, "and not a minute"

    async def test_counts_requests_that_the_vendor_refused(self):
        bench = Bench(a_model(requests_per_minute=2), answer=refuse, deadline=10)
        for said in ("no", "no", "2 request"):
            with pytest.raises(LLMConnectionError, match=said):
                await bench.ask()
        assert len(bench.asked) == 2

    async def test_keeps_places_for_those_who_wait_while_a_batch_runs(self):
        bench = Bench(a_model(requests_per_minute=5), deadline=10)
        await bench.ask(times=4, priority="batch")
        with pytest.raises(LLMConnectionError, match="5 request"):
            await bench.ask(priority="batch")
        await bench.ask()
        assert len(bench.asked) == 5

    async def test_is_left_for_another_rather_than_waited_for(self):
        models = a_model("first", priority=2, requests_per_minute=1), a_model("second")
        bench = Bench(*models)
        await bench.ask(times=3)
        assert (bench.asked, bench.waited) == (["first", "second", "second"], [])

    async def test_takes_none_of_the_time_that_the_answer_has(self):
        bench = Bench(a_model(requests_per_minute=1, timeout=5))
        await bench.ask(times=2)
        assert len(bench.asked) == 2

    @pytest.mark.parametrize("limit", ["deadline", "node"])
    async def test_that_cannot_be_asked_in_time_is_told_at_once_with_what_to_do(self, limit):
        given = {"requests_per_minute": 1, "tokens_per_minute": 90_000, "concurrency": 4}
        bench = Bench(a_model(**given), deadline=30 if limit == "deadline" else None)
        await bench.ask()
        async with WorkingTime(30, strict=limit == "node"):
            with pytest.raises(LLMConnectionError) as refused:
                await bench.ask()
        assert (len(bench.asked), bench.waited) == (1, [])
        assert refused.value.details["retry_after"] == 61
        assert refused.value.in_locale("en-US") == (
            "The model main gave no answer: main-1 takes 4 request(s) at once, 1 request(s) a minute, 90,000 tokens "
            "a minute, and no turn came in time. To wait longer: MOOT_LLM_DEADLINE, MOOT_NODE_TIMEOUT; to ask more, "
            "if the vendor allows it: --concurrency, --requests-per-minute, --tokens-per-minute of `moot llm add`, "
            "or MOOT_LLM_CONCURRENCY, MOOT_LLM_REQUESTS_PER_MINUTE, MOOT_LLM_TOKENS_PER_MINUTE."
        )
        assert refused.value.in_locale("zh-CN") == (
            "模型 main 没有给出回答：main-1 的限额为同时 4 个请求、每分钟 1 个请求、每分钟 90,000 个 token，"
            "未能及时轮到。要等更久：MOOT_LLM_DEADLINE、MOOT_NODE_TIMEOUT；要发出更多（须供应商允许）："
            "`moot llm add` 的 --concurrency、--requests-per-minute、--tokens-per-minute，"
            "或 MOOT_LLM_CONCURRENCY、MOOT_LLM_REQUESTS_PER_MINUTE、MOOT_LLM_TOKENS_PER_MINUTE。"
        )


RATE = Rate("model:default:main", requests=2, tokens=1_000, seconds=1800)


class TestTheReservation:
    async def test_of_a_call_that_must_wait_takes_nothing_from_the_budget(self, database: Database):
        budget = a_budget(database, day_tokens=5_000)
        await budget.reserve(Amount(tokens=900), RATE)
        with pytest.raises(NotYet):
            await budget.reserve(Amount(tokens=200), RATE)
        assert [row[:2] for row in (await rows(database)).values()] == [(0, 900)]

    async def test_of_a_call_without_a_budget_takes_nothing_of_the_minute(self, database: Database):
        with pytest.raises(BudgetExceeded):
            await a_budget(database, day_tokens=50).reserve(Amount(tokens=100), RATE)
        budget = a_budget(database)
        for _ in range(2):
            await budget.reserve(Amount(tokens=500), RATE)

    async def test_is_settled_in_both_at_once(self, database: Database):
        budget = a_budget(database, day_tokens=5_000)
        reserved = Amount(tokens=900)
        first = await budget.reserve(reserved, RATE)
        await budget.settle(first, reserved, Amount(tokens=100))
        second = await budget.reserve(reserved, RATE)
        with pytest.raises(NotYet):
            await budget.reserve(Amount(tokens=0), RATE)
        await budget.settle(second, reserved, Amount(), made=False)
        await budget.reserve(reserved, RATE)
        assert [row[:2] for row in (await rows(database)).values()] == [(100, 900)]

    async def test_of_a_batch_leaves_a_fifth(self, database: Database):
        budget = a_budget(database)
        with ExecutionContext(priority="batch").active():
            await budget.reserve(Amount(tokens=800), RATE)
            with pytest.raises(NotYet):
                await budget.reserve(Amount(tokens=1), RATE)
        await budget.reserve(Amount(tokens=200), RATE)

    async def test_without_a_limit_writes_none_down(self, database: Database):
        budget = SqlBudget(database, SystemClock(), Limits(day_tokens=5_000), "CNY")
        reservation = await budget.reserve(Amount(tokens=1), a_model().rate)
        await budget.settle(reservation, Amount(tokens=1), Amount(tokens=1))
        async with database.session() as db:
            assert (await db.scalars(select(RateLimitRow))).all() == []
        assert reservation.turn is None

    async def test_is_of_the_same_limit_in_every_process(self, database: Database):
        """Also of a model of the environment, which each process makes anew."""
        one, other = (a_model("default", vendor="environment", requests_per_minute=2) for _ in range(2))
        assert (one.id != other.id, one.rate) == (True, other.rate)
        assert (
            a_model(workspace_id="theirs", requests_per_minute=2).rate != a_model(requests_per_minute=2).rate
        )


async def test_a_limit_that_is_raised_lets_those_in_who_fit_by_now(database: Database):
    budget = a_budget(database)
    assert isinstance(await budget.reserve(Amount(), RATE._replace(requests=1)), Reservation)
    with pytest.raises(NotYet):
        await budget.reserve(Amount(), RATE._replace(requests=1))
    await budget.reserve(Amount(), RATE)
    async with database.session() as db, db.begin():
        await db.execute(update(RateLimitRow).values(uses=[]))
    await budget.reserve(Amount(), RATE._replace(requests=1))
