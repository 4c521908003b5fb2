"""Limits on work: what they count, and what they leave out."""

import asyncio

import pytest

from moot.shared.infrastructure.working_time import Stopwatch, WorkingTime, off_the_clock
from tests.fakes.clock import leap, settle


async def test_work_that_takes_too_long_is_stopped():
    limit = WorkingTime(60)
    with pytest.raises(TimeoutError):
        async with limit:
            leap(61)
            await asyncio.sleep(3600)
    assert (limit.expired, limit.left) == (True, 0)


async def test_time_off_the_clock_is_not_counted():
    limit, stopwatch = WorkingTime(60), Stopwatch()
    async with limit:
        leap(20)
        with off_the_clock(stopwatch):
            leap(1000)
            await settle()
        leap(20)
    assert 19 < limit.left <= 20
    assert 1000 <= stopwatch.seconds < 1001


async def test_what_is_left_is_for_all_goes_together():
    limit = WorkingTime(60)
    for _ in range(2):
        async with limit:
            leap(25)
    with pytest.raises(TimeoutError):
        async with limit:
            leap(11)
            await asyncio.sleep(3600)


async def test_it_stands_still_while_any_of_several_is_away_and_runs_on_after_the_last():
    limit, stopwatch = WorkingTime(60), Stopwatch()
    first, second = asyncio.Event(), asyncio.Event()

    async def away(until: asyncio.Event) -> None:
        with off_the_clock(stopwatch):
            await until.wait()

    async with limit:
        others = [asyncio.create_task(away(event)) for event in (first, second)]
        await settle()
        leap(100)
        first.set()
        await settle()
        leap(100)
        second.set()
        await asyncio.wait(others)
        leap(50)
    assert 9 < limit.left <= 10
    assert 200 <= stopwatch.seconds < 201


async def test_all_limits_around_stand_still_but_strict_ones():
    outer, inner, stopwatch = WorkingTime(60), WorkingTime(60), Stopwatch()
    async with outer, inner:
        with off_the_clock(stopwatch):
            leap(1000)
            await settle()
    assert min(outer.left, inner.left) > 59
    strict = WorkingTime(60, strict=True)
    with pytest.raises(TimeoutError):
        async with outer, strict:
            with off_the_clock(stopwatch):
                leap(61)
                await asyncio.sleep(3600)
    assert (strict.expired, outer.expired) == (True, False)


async def test_who_comes_back_after_the_end_does_no_harm():
    limit, stopwatch, over = WorkingTime(60), Stopwatch(), asyncio.Event()

    async def outlive() -> None:
        with off_the_clock(stopwatch):
            await over.wait()

    async with limit:
        outliving = asyncio.create_task(outlive())
        await settle()
    over.set()
    await outliving
    assert not limit.expired
