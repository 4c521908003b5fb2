"""However many calls are made at once, no budget is ever exceeded; and a refusal says what to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from moot.modules.llm_platform.domain.budget import Amount, Limits, Reservation, most
from moot.modules.llm_platform.domain.chat import ChatMessage, ChatRequest, ResponseSchema, Tool, ToolCall
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.spending_store import SqlBudget
from moot.modules.llm_platform.infrastructure.tables import SpendingRow
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import PATIENCE, FixedClock

LATE = datetime(2026, 6, 30, 23, 59, tzinfo=UTC)
UNPRICED = Amount(tokens=1, cost=None)
DAY = "day:default:2026-06-30"


def tokens(count: int) -> Amount:
    return Amount(tokens=count)


def session(session_id: str = "s1", **facts: Any) -> AbstractContextManager[ExecutionContext]:
    return ExecutionContext(session_id=session_id, **facts).active()


def a_budget(database: Database, now: datetime = LATE, **limits: Any) -> SqlBudget:
    return SqlBudget(database, FixedClock(now), Limits(**limits), "CNY")


async def rows(database: Database) -> dict[str, tuple[int, int, int, int]]:
    """Tokens spent and reserved, then cost in billionths, by key."""
    async with database.session() as db:
        found = await db.scalars(select(SpendingRow))
        return {
            row.key: (row.tokens_spent, row.tokens_reserved, row.cost_spent, row.cost_reserved)
            for row in found
        }


async def fits(budget: SqlBudget, amount: Amount) -> bool:
    try:
        await budget.reserve(amount)
    except BudgetExceeded:
        return False
    return True


@asynccontextmanager
async def watched(database: Database) -> AsyncIterator[list[int]]:
    """What a reader beside the callers sees: the tokens spent and reserved, at one moment after another."""
    seen: list[int] = []

    async def look() -> None:
        while True:
            seen.extend(spent + reserved for spent, reserved, *_ in (await rows(database)).values())
            await asyncio.sleep(0)

    watcher = asyncio.create_task(look())
    try:
        yield seen
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)


class TestManyAtOnce:
    async def test_take_exactly_what_there_is(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=20)
        async with watched(database) as seen:
            got = await asyncio.gather(*(fits(budget, tokens(1)) for _ in range(50)))

        assert sum(got) == 20
        assert await rows(database) == {DAY: (0, 20, 0, 0)}
        assert max(seen, default=0) <= 20

    async def test_make_room_for_each_other_by_using_less_than_they_reserved(
        self, database: Database
    ) -> None:
        budget = a_budget(database, day_tokens=20)
        calls = 0

        async def caller() -> None:
            """Reserves 4, uses 1, and waits for others while any of them has something set aside."""
            nonlocal calls
            while True:
                try:
                    reservation = await budget.reserve(tokens(4))
                except BudgetExceeded as refused:
                    if refused.details["reserved"] == 0:
                        return
                    await asyncio.sleep(0.001)
                    continue
                await asyncio.sleep(0)
                await budget.settle(reservation, tokens(4), tokens(1))
                calls += 1
                return

        async with asyncio.timeout(PATIENCE), watched(database) as seen:
            await asyncio.gather(*(caller() for _ in range(50)))

        assert calls == 17  # 17 x 1 spent leaves 3, and nobody may start with less than 4
        assert await rows(database) == {DAY: (17, 0, 0, 0)}
        assert seen
        assert max(seen) <= 20

    async def test_share_a_limit_with_those_of_another_process(
        self, sqlite_database: Database, home: Path
    ) -> None:
        other = Database(f"sqlite:///{home / 'moot.db'}")
        budgets = [a_budget(sqlite_database, day_tokens=20), a_budget(other, day_tokens=20)]
        got = await asyncio.gather(*(fits(budgets[n % 2], tokens(1)) for n in range(50)))
        await other.close()

        assert sum(got) == 20
        assert await rows(sqlite_database) == {DAY: (0, 20, 0, 0)}

    async def test_are_not_disturbed_by_one_that_is_refused(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=20)
        asked = [tokens(1), tokens(1), tokens(1_000), tokens(1), tokens(1)]

        assert await asyncio.gather(*(fits(budget, amount) for amount in asked)) == [
            True,
            True,
            False,
            True,
            True,
        ]
        assert await rows(database) == {DAY: (0, 4, 0, 0)}

    async def test_add_up_to_the_last_cent(self, database: Database) -> None:
        budget = a_budget(database, day_cost=1.0)
        got = await asyncio.gather(*(fits(budget, Amount(cost=0.1)) for _ in range(12)))

        assert sum(got) == 10
        assert await rows(database) == {DAY: (0, 0, 0, 1_000_000_000)}


class TestAReservation:
    async def test_is_replaced_by_what_was_used(self, database: Database) -> None:
        budget = a_budget(database, session_tokens=100, day_cost=10)
        with session("s1"):
            reservation = await budget.reserve(Amount(tokens=60, cost=2.5))
        assert await rows(database) == {
            "session:s1": (0, 60, 0, 2_500_000_000),
            DAY: (0, 60, 0, 2_500_000_000),
        }

        await budget.settle(reservation, Amount(tokens=60, cost=2.5), Amount(tokens=10, cost=0.000000001))
        assert await rows(database) == {"session:s1": (10, 0, 1, 0), DAY: (10, 0, 1, 0)}

    async def test_that_nobody_settles_still_counts(self, database: Database) -> None:
        await a_budget(database, day_tokens=10).reserve(tokens(8))
        after_a_restart = a_budget(database, day_tokens=10)

        assert not await fits(after_a_restart, tokens(3))
        assert await fits(after_a_restart, tokens(2))

    async def test_may_turn_out_too_small_when_the_vendor_counts_more(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=10)
        await budget.settle(await budget.reserve(tokens(4)), tokens(4), tokens(25))

        assert await rows(database) == {DAY: (25, 0, 0, 0)}
        with pytest.raises(BudgetExceeded, match="has 0 tokens left of 10 tokens"):
            await budget.reserve(tokens(1))

    async def test_settled_twice_frees_nothing_that_belongs_to_others(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=10)
        reservation = await budget.reserve(tokens(4))
        await budget.settle(reservation, tokens(4), tokens(1))
        await budget.settle(reservation, tokens(4), tokens(1))

        assert await rows(database) == {DAY: (2, 0, 0, 0)}

    async def test_is_spent_whole_when_nobody_knows_what_the_call_cost(self, database: Database) -> None:
        budget = a_budget(database, day_cost=10)
        reserved = Amount(tokens=4, cost=1.5)
        await budget.settle(await budget.reserve(reserved), reserved, Amount(tokens=2, cost=None))

        assert await rows(database) == {DAY: (2, 0, 1_500_000_000, 0)}

    async def test_made_before_midnight_is_settled_on_its_own_day(self, database: Database) -> None:
        reservation = await a_budget(database, day_tokens=10).reserve(tokens(4))
        tomorrow = a_budget(database, LATE + timedelta(hours=1), day_tokens=10)
        await tomorrow.settle(reservation, tokens(4), tokens(3))

        assert await rows(database) == {DAY: (3, 0, 0, 0)}

    async def test_without_any_limit_does_not_touch_the_database(self, home: Path) -> None:
        database = Database(f"sqlite:///{home / 'never.db'}")
        budget = a_budget(database, session_tokens=1)
        reservation = await budget.reserve(tokens(1_000))
        await budget.settle(reservation, tokens(1_000), tokens(1_000))
        await database.close()

        assert reservation == Reservation()
        assert not (home / "never.db").exists()


class TestBudgetsAreApart:
    async def test_of_two_sessions(self, database: Database) -> None:
        budget = a_budget(database, session_tokens=10)
        with session("s1"):
            assert await fits(budget, tokens(10))
            assert not await fits(budget, tokens(1))
        with session("s2"):
            assert await fits(budget, tokens(10))

    async def test_of_two_workspaces(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=10)
        with session("s1", workspace="north"):
            assert await fits(budget, tokens(10))
        with session("s2", workspace="north"):
            assert not await fits(budget, tokens(1))
        with session("s3", workspace="south"):
            assert await fits(budget, tokens(10))

    async def test_of_two_days(self, database: Database) -> None:
        today, tomorrow = LATE, LATE + timedelta(minutes=1)
        assert await fits(a_budget(database, today, day_tokens=10), tokens(10))
        assert not await fits(a_budget(database, today, day_tokens=10), tokens(1))
        assert await fits(a_budget(database, tomorrow, day_tokens=10), tokens(10))

    async def test_of_a_call_outside_any_session_only_the_day_counts(self, database: Database) -> None:
        budget = a_budget(database, session_tokens=1, day_tokens=10)
        with session(""):
            assert await fits(budget, tokens(5))
        assert await fits(budget, tokens(5))
        assert await rows(database) == {DAY: (0, 10, 0, 0)}


class TestARefusal:
    async def test_by_one_budget_takes_nothing_from_the_other(self, database: Database) -> None:
        budget = a_budget(database, session_tokens=100, day_tokens=10)
        with session("s1"):
            await budget.reserve(tokens(4))
            assert not await fits(budget, tokens(50))

        assert await rows(database) == {"session:s1": (0, 4, 0, 0), DAY: (0, 4, 0, 0)}

    async def test_says_what_is_left_and_how_to_raise_it(self, database: Database) -> None:
        budget = a_budget(database, session_tokens=12_000)
        with session("s1"):
            await budget.settle(await budget.reserve(tokens(3_000)), tokens(3_000), tokens(2_000))
            await budget.reserve(tokens(4_000))
            with pytest.raises(BudgetExceeded) as refused:
                await budget.reserve(tokens(7_000))

        assert refused.value.in_locale("en-US") == (
            "The call was not made: it could use up to 7,000 tokens, and the token budget of this session has "
            "6,000 tokens left of 12,000 tokens (2,000 tokens spent, 4,000 tokens set aside for calls under way). "
            "To raise it: MOOT_BUDGET_SESSION_TOKENS."
        )
        assert refused.value.in_locale("zh-CN") == (
            "调用未发出：它最多可能用去 7,000 个 token，而本次会话的 token 预算上限为 12,000 个 token，"
            "只剩 6,000 个 token（已用 2,000 个 token，进行中的调用预留 4,000 个 token）。"
            "提高上限：MOOT_BUDGET_SESSION_TOKENS。"
        )
        assert refused.value.details == {
            "scope": "session",
            "unit": "tokens",
            "limit": 12_000,
            "spent": 2_000,
            "reserved": 4_000,
            "needed": 7_000,
            "left": 6_000,
        }

    async def test_of_money_names_the_currency(self, database: Database) -> None:
        budget = a_budget(database, session_tokens=1_000_000, day_cost=1_500.5)
        with session("s1"), pytest.raises(BudgetExceeded) as refused:
            await budget.reserve(Amount(tokens=1, cost=1_500.500001))

        assert "up to 1,500.500001 CNY, and the cost budget of this day (UTC)" in str(refused.value)
        assert "To raise it: MOOT_BUDGET_DAY_COST." in str(refused.value)
        assert refused.value.details["limit"] == 1_500.5

    async def test_names_the_unit_that_is_short(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=1_000, day_cost=1.0)
        with pytest.raises(BudgetExceeded) as refused:
            await budget.reserve(Amount(tokens=10, cost=1.25))

        assert (refused.value.details["unit"], refused.value.details["needed"]) == ("cost", 1.25)

    @pytest.mark.parametrize(("max_cost", "room"), [(2.0, True), (0.5, False), (0.0, False), (None, False)])
    async def test_follows_the_limit_of_the_session_itself(
        self, database: Database, max_cost: float | None, room: bool
    ) -> None:
        budget = a_budget(database, session_cost=1.0)
        with session("s1", max_cost=max_cost):
            assert await fits(budget, Amount(cost=1.5)) is room

    async def test_of_a_session_with_its_own_limit_points_to_the_flag(self, database: Database) -> None:
        with session("s1", max_cost=0.02), pytest.raises(BudgetExceeded) as refused:
            await a_budget(database).reserve(Amount(cost=0.03))

        assert "--max-cost for one session, MOOT_BUDGET_SESSION_COST for all" in str(refused.value)

    async def test_of_a_model_without_a_price_says_how_to_set_one(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=10, day_cost=2.5)
        with pytest.raises(BudgetExceeded) as refused:
            await budget.reserve(UNPRICED)

        assert "is limited to 2.5 CNY, and the model has no price" in str(refused.value)
        assert "--price-in" in refused.value.in_locale("zh-CN")
        assert await rows(database) == {}

    async def test_a_model_without_a_price_fits_under_a_limit_on_tokens(self, database: Database) -> None:
        budget = a_budget(database, day_tokens=10)
        await budget.settle(await budget.reserve(UNPRICED), UNPRICED, UNPRICED)

        assert await rows(database) == {DAY: (1, 0, 0, 0)}


def asked(*contents: str, **more: Any) -> ChatRequest:
    messages = [ChatMessage(role="user", content=content) for content in contents]
    return ChatRequest(messages=messages, **({"max_tokens": 100} | more))


class TestTheMostACallCanUse:
    FREE = LLMConfig(alias="m", base_url="http://127.0.0.1/v1", model_name="m")
    PRICED = FREE.model_copy(update={"price_in": 2.0, "price_out": 8.0})

    def test_is_a_token_for_each_byte_and_the_whole_answer(self) -> None:
        nothing, some = (most(asked(*said), self.FREE) for said in (("", ""), ("abc", "股票")))
        assert nothing.tokens >= 100 + 2 * 16
        assert some == Amount(tokens=nothing.tokens + 3 + 6, cost=None)

    def test_costs_what_the_prices_say(self) -> None:
        bound = most(asked("x" * 1_000), self.PRICED)
        assert bound.cost == pytest.approx(((bound.tokens - 100) * 2.0 + 100 * 8.0) / 1_000_000)

    def test_includes_tool_calls_and_their_answers(self) -> None:
        call = ToolCall(id="c1", name="search", arguments='{"q": "x"}')
        said = ChatMessage(role="assistant", tool_calls=[call])
        found = ChatMessage(role="tool", content="found", tool_call_id="c1")
        bound = most(ChatRequest(messages=[said, found], max_tokens=1), self.FREE)
        assert bound.tokens >= 1 + (16 + 2 + 6 + 10) + (16 + 5 + 2)

    def test_includes_tools_and_the_schema_of_the_answer(self) -> None:
        schema = ResponseSchema(name="answer", json_schema={"description": "x" * 500})
        tool = Tool(name="search", description="y" * 700, parameters={})
        plain = most(asked("q"), self.FREE).tokens
        assert most(asked("q", response_schema=schema), self.FREE).tokens > plain + 512 + 500
        assert most(asked("q", response_schema=schema, tools=[tool]), self.FREE).tokens > plain + 512 + 1_200

    def test_can_be_told_of_text_that_is_not_quite_text(self) -> None:
        assert most(asked("\ud83d"), self.FREE).tokens == most(asked(""), self.FREE).tokens + 3


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), 1e10])
def test_a_limit_that_limits_nothing_is_refused(limit: float) -> None:
    with pytest.raises(ValidationError):
        Settings(budget_day_cost=limit)


async def test_absurd_counts_of_a_vendor_are_kept_as_very_much(database: Database) -> None:
    budget = a_budget(database, day_tokens=10)
    await budget.settle(await budget.reserve(tokens(1)), tokens(1), Amount(tokens=10**30, cost=1e300))

    assert await rows(database) == {DAY: (10**15, 0, 10**18, 0)}
