"""A breaker per dependency: when it opens, whom it lets through to find out, and when it closes."""

import asyncio
from contextlib import suppress

import pytest

from moot.modules.governance.application.circuit_breaker import (
    BreakerReport,
    Breakers,
    BreakerState,
    CircuitBreaker,
    CircuitBreakerOpenError,
)
from moot.shared.domain.errors import InvalidInput, NotFound, Unavailable
from tests.fakes.clock import HandClock
from tests.governance.factories import NOON

CLOSED, HALF_OPEN, OPEN = BreakerState


def of_the_dependency(error: Exception) -> bool:
    return not isinstance(error, InvalidInput | NotFound | ValueError)


class Calls:
    """Calls that last until they are answered."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self._breaker = breaker
        self.admitted: list[asyncio.Future[None]] = []

    async def one(self) -> None:
        async with self._breaker.call(of_the_dependency):
            answer = asyncio.get_running_loop().create_future()
            self.admitted.append(answer)
            await answer


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOON)


@pytest.fixture
def breaker(clock: HandClock) -> CircuitBreaker:
    return CircuitBreaker("tushare", clock)


async def fail(breaker: CircuitBreaker, times: int = 1, error: Exception | None = None) -> None:
    for _ in range(times):
        with suppress(type(error) if error else ConnectionError):
            async with breaker.call(of_the_dependency):
                raise error or ConnectionError("down")


async def succeed(breaker: CircuitBreaker) -> None:
    async with breaker.call(of_the_dependency):
        pass


async def half_open(breaker: CircuitBreaker, clock: HandClock) -> None:
    await fail(breaker, 5)
    clock.move(60)
    assert breaker.state is HALF_OPEN


class TestOpening:
    @pytest.mark.accepts("W37")
    async def test_five_failures_in_a_row_open_it_and_four_do_not(self, breaker: CircuitBreaker) -> None:
        await fail(breaker, 4)
        assert breaker.state is CLOSED
        await fail(breaker)
        assert breaker.state is OPEN

    async def test_a_success_in_between_starts_the_count_again(self, breaker: CircuitBreaker) -> None:
        await fail(breaker, 4)
        await succeed(breaker)
        await fail(breaker, 4)
        assert breaker.state is CLOSED

    async def test_a_call_while_it_is_open_is_not_made_and_told_when_it_may_be(
        self, breaker: CircuitBreaker, clock: HandClock
    ) -> None:
        await fail(breaker, 5)
        clock.move(17.5)
        made = False
        with pytest.raises(CircuitBreakerOpenError) as refused:
            async with breaker.call(of_the_dependency):
                made = True
        assert not made
        assert isinstance(refused.value, Unavailable)
        assert refused.value.details == {"dependency": "tushare", "retry_after": 43}
        assert refused.value.in_locale("zh-CN") == "tushare 连续失败多次，暂停调用。请在 43 秒后再试。"

    async def test_what_the_caller_did_wrong_does_not_open_it(self, breaker: CircuitBreaker) -> None:
        await fail(breaker, 10, InvalidInput("bad symbol"))
        await fail(breaker, 10, NotFound("no such stock"))
        await fail(breaker, 10, ValueError("nonsense"))
        assert breaker.report().consecutive_failures == 0
        assert breaker.state is CLOSED

    async def test_which_errors_count_can_be_told(self, clock: HandClock) -> None:
        breaker = CircuitBreaker("db", clock)
        for error, state in ((OSError(), CLOSED), (TimeoutError(), OPEN)):
            for _ in range(5):
                with pytest.raises(type(error)):
                    async with breaker.call(lambda e: isinstance(e, TimeoutError)):
                        raise error
            assert breaker.state is state

    async def test_being_cancelled_is_nobodys_failure(self, breaker: CircuitBreaker) -> None:
        calls = Calls(breaker)
        for _ in range(10):
            task = asyncio.create_task(calls.one())
            await settled()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert (breaker.state, breaker.report().failed) == (CLOSED, 0)


class TestProbing:
    async def test_it_stays_open_for_a_minute(self, breaker: CircuitBreaker, clock: HandClock) -> None:
        await fail(breaker, 5)
        clock.move(59.9)
        assert breaker.state is OPEN
        clock.move(0.1)
        assert breaker.state is HALF_OPEN

    @pytest.mark.accepts("W37")
    async def test_of_fifty_calls_at_once_exactly_one_is_let_through(
        self, breaker: CircuitBreaker, clock: HandClock
    ) -> None:
        await half_open(breaker, clock)
        calls = Calls(breaker)
        tasks = [asyncio.create_task(calls.one()) for _ in range(50)]
        await settled()
        assert len(calls.admitted) == 1
        calls.admitted[0].set_result(None)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [error for error in ended if isinstance(error, CircuitBreakerOpenError)]
        assert len(refused) == 49
        assert {error.details["retry_after"] for error in refused} == {1}
        assert breaker.state is CLOSED

    async def test_a_probe_that_succeeds_closes_it_for_all(
        self, breaker: CircuitBreaker, clock: HandClock
    ) -> None:
        await half_open(breaker, clock)
        await succeed(breaker)
        assert breaker.state is CLOSED
        await fail(breaker, 4)
        assert breaker.state is CLOSED

    async def test_a_probe_that_fails_opens_it_for_another_minute(
        self, breaker: CircuitBreaker, clock: HandClock
    ) -> None:
        await half_open(breaker, clock)
        await fail(breaker)
        assert breaker.state is OPEN
        clock.move(59)
        assert breaker.state is OPEN
        clock.move(1)
        await succeed(breaker)
        assert breaker.state is CLOSED

    @pytest.mark.accepts("W37")
    async def test_a_probe_that_is_cancelled_gives_its_place_to_the_next(
        self, breaker: CircuitBreaker, clock: HandClock
    ) -> None:
        await half_open(breaker, clock)
        calls = Calls(breaker)
        probe = asyncio.create_task(calls.one())
        await settled()
        probe.cancel()
        with suppress(asyncio.CancelledError):
            await probe
        assert breaker.state is HALF_OPEN
        await succeed(breaker)
        assert breaker.state is CLOSED

    async def test_a_probe_with_bad_input_says_nothing_and_gives_its_place_to_the_next(
        self, breaker: CircuitBreaker, clock: HandClock
    ) -> None:
        await half_open(breaker, clock)
        await fail(breaker, error=InvalidInput("bad symbol"))
        assert breaker.state is HALF_OPEN
        await fail(breaker)
        assert breaker.state is OPEN

    @pytest.mark.parametrize("answer", [None, ConnectionError("late")])
    async def test_a_call_from_before_it_opened_decides_nothing_afterwards(
        self, breaker: CircuitBreaker, clock: HandClock, answer: Exception | None
    ) -> None:
        calls = Calls(breaker)
        early = asyncio.create_task(calls.one())
        await settled()
        await half_open(breaker, clock)
        probe = asyncio.create_task(calls.one())
        await settled()
        if answer is None:
            calls.admitted[0].set_result(None)
        else:
            calls.admitted[0].set_exception(answer)
        await asyncio.gather(early, return_exceptions=True)
        assert breaker.state is HALF_OPEN
        with pytest.raises(CircuitBreakerOpenError):
            await succeed(breaker)
        calls.admitted[1].set_result(None)
        await probe
        assert breaker.state is CLOSED


class TestReports:
    async def test_calls_are_counted_by_how_they_ended(self, breaker: CircuitBreaker) -> None:
        await succeed(breaker)
        await fail(breaker, error=InvalidInput("bad"))
        await fail(breaker, 5)
        with suppress(CircuitBreakerOpenError):
            await succeed(breaker)
        assert breaker.report() == BreakerReport(
            name="tushare",
            state=OPEN,
            consecutive_failures=5,
            total=8,
            successful=1,
            failed=5,
            rejected=1,
        )

    @pytest.mark.accepts("W37")
    async def test_each_dependency_has_its_own_and_the_worst_is_shown(self, clock: HandClock) -> None:
        breakers = Breakers(clock)
        assert breakers.worst() is CLOSED
        await succeed(breakers.of("model"))
        await fail(breakers.of("tushare"), 5)
        assert breakers.of("tushare") is breakers.of("tushare")
        assert [(report.name, report.state) for report in breakers.reports()] == [
            ("model", CLOSED),
            ("tushare", OPEN),
        ]
        assert (breakers.worst(), breakers.open_names()) == (OPEN, ["tushare"])
        clock.move(60)
        assert (breakers.worst(), breakers.open_names()) == (HALF_OPEN, [])
        await succeed(breakers.of("tushare"))
        assert breakers.worst() is CLOSED

    async def test_a_workspace_sees_its_own_and_those_of_the_desk(self, clock: HandClock) -> None:
        breakers = Breakers(clock)
        await fail(breakers.of("model:main", "theirs"), 5)
        await succeed(breakers.of("model:main", "ours"))
        await succeed(breakers.of("data:tushare"))
        assert [(each.name, each.state) for each in breakers.reports("ours")] == [
            ("data:tushare", CLOSED),
            ("model:main", CLOSED),
        ]
        assert (breakers.worst("ours"), breakers.open_names("ours")) == (CLOSED, [])
        assert (breakers.worst("theirs"), breakers.open_names("theirs")) == (OPEN, ["model:main"])
        assert [each.name for each in breakers.reports("nobody")] == ["data:tushare"]
