"""Statements that would take all the time or memory there is: each is stopped, and nobody else notices."""

import asyncio
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.infrastructure import lake_sql
from moot.modules.market_data.infrastructure.lake_sql import Child, Children, LakeDatabase
from moot.shared.domain.errors import InvalidInput, TooManyRequests, Unavailable
from tests.fakes.clock import leap, settle

NOW = datetime(2024, 7, 1, tzinfo=UTC)
ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
A_GIGABYTE = 1 << 30

WORST = [
    "SELECT replace(lpad('x', 100000, 'x'), 'x', lpad('y', 100000, 'y'))",
    "SELECT format('{:>2000000000}', 'x')",
]
GREEDY = [
    ENDLESS,
    "SELECT levenshtein(lpad('x', 400000, 'x'), lpad('y', 400000, 'y'))",
    "SELECT lpad('x', 2000000000, 'y')",
    "SELECT rpad(rpad('x', 100000000, 'y'), 2000000000, 'z')",
    "SELECT repeat('abc', 700000000)",
    "SELECT printf('%2000000000d', 1)",
    "SELECT format('{0:>400000000}{0:>400000000}{0:>400000000}{0:>400000000}', 'x')",
    "SELECT concat(lpad('x', 300000000, 'x'), lpad('x', 300000000, 'x'), lpad('x', 300000000, 'x'))",
    "SELECT string_agg(lpad('x', 1000000, 'x'), ',') FROM range(100000)",
    "SELECT group_concat(repeat('x', 10000)) FROM range(10000000)",
    "SELECT list(range) FROM range(10000000000)",
    "SELECT array_agg(repeat('x', 100000)) FROM range(1000000)",
    "SELECT histogram(range) FROM range(1000000000)",
    "SELECT range(1000000000)",
    "SELECT generate_series(1, 1000000000)",
    "SELECT list_transform(range(100000000), lambda x: repeat('x', 1000))",
    "SELECT list_sort(range(500000000))",
    "SELECT flatten(list_transform(range(10000), lambda x: range(100000)))",
    "SELECT list_reduce(range(1, 1000000), lambda a, b: a * b % 7 + len(range(1000000 + b)))",
    "SELECT array_to_string(list_resize(['x'], 500000000, 'x'), ',')",
    "SELECT string_split(repeat('a,', 200000000), ',')",
    "SELECT regexp_replace(repeat('a', 50000000), 'a', repeat('b', 1000), 'g')",
    "SELECT regexp_extract_all(repeat('a', 200000000), 'a')",
    "SELECT sum(regexp_matches(repeat('a', 1000000) || range, '(a|aa|aaa|aaaa){1,400}$')::INT) FROM range(100000)",
    "SELECT translate(repeat('a', 900000000), 'a', 'b')",
    "SELECT reverse(repeat('a', 900000000))",
    "SELECT damerau_levenshtein(repeat('a', 200000), repeat('b', 200000))",
    "SELECT jaccard(repeat('ab', 400000000), repeat('cd', 400000000))",
    "SELECT jaro_winkler_similarity(repeat('ab', 400000), repeat('cd', 400000))",
    "SELECT hamming(repeat('a', 900000000), repeat('b', 900000000))",
    "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c WHERE a.range % 7 = b.range % 5",
    "SELECT DISTINCT a.range * b.range FROM range(100000) a, range(100000) b",
    "SELECT max(sha256(repeat(range::VARCHAR, 10000))) FROM range(100000000)",
    "SELECT * FROM range(100000000) ORDER BY hash(range)",
    "SELECT row_number() OVER (ORDER BY md5(range::VARCHAR)) FROM range(100000000) ORDER BY 1 DESC",
    "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t",
    "WITH RECURSIVE t(a) AS (SELECT 'x' UNION ALL SELECT a || a FROM t) SELECT max(length(a)) FROM t",
    "SELECT list_aggregate(range(300000000), 'sum')",
    "SELECT median(a.range + b.range) FROM range(1000000) a, range(100000) b",
    "SELECT map_from_entries(list_transform(range(50000000), lambda x: {'k': x, 'v': x}))",
    "SELECT to_json(range(300000000))",
    "SELECT " + " || ".join(["lpad('x', 100000000, 'x')"] * 12),
]


async def nothing(_dataset: Dataset[Any]) -> Sequence[BaseModel]:
    return []


Ask = Callable[..., Awaitable[list[tuple[Any, ...]]]]
Door = Callable[[float], tuple[Children, Ask]]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    opened: list[Children] = []

    def door(seconds: float) -> tuple[Children, Ask]:
        opened.append(children := Children(seconds))
        lake = LakeDatabase(tmp_path / "lake", children)

        async def ask(sql: str, workspace: str = "default") -> list[tuple[Any, ...]]:
            return (await lake.answer(sql, nothing, as_of=NOW, most=1_000, workspace=workspace))[1]

        return children, ask

    yield door
    for children in opened:
        await children.close()


def descendants() -> set[int]:
    """The children of this process that run SQL and are alive."""
    command = ["ps", "-ww", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split(maxsplit=2) for line in listed if "sql_worker" in line]
    return {int(pid) for pid, state, _ in rows if not state.startswith("Z")}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.05)


async def ended(tasks: Sequence[asyncio.Task[Any]]) -> list[Any]:
    return await asyncio.gather(*tasks, return_exceptions=True)


async def stop(ask: Ask, sql: str, workspace: str) -> None:
    with pytest.raises(InvalidInput, match=r"interrupted after|MB of memory|answer is larger") as raised:
        await ask(sql, workspace)
    assert raised.value.code == "SQL_REFUSED", sql
    assert raised.value.in_locale("zh-CN") != raised.value.in_locale("en-US")


async def watch_memory(processes: list[int]) -> int:
    """The most bytes that any of the processes has had, looked at until it is cancelled."""
    most = 0
    try:
        while True:
            for process in processes:
                with suppress(OSError):
                    told = Path(f"/proc/{process}/status").read_text()
                    most = max(
                        [most, *(int(line.split()[1]) for line in told.splitlines() if "VmHWM" in line)]
                    )
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        return most * 1024


async def test_what_takes_all_memory_or_time_is_stopped(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes memory quickest has the ten seconds that everybody has, the others less than one: this must end."""
    processes, start = list[int](), Child.start

    async def start_watched(seconds: float) -> Child:
        child = await start(seconds)
        processes.append(child.process.pid)
        return child

    monkeypatch.setattr(Child, "start", start_watched)
    memory = asyncio.create_task(watch_memory(processes))
    _, ask_long = door(lake_sql.MOST_SECONDS)
    _, ask = door(0.4)
    worst = [asyncio.create_task(stop(ask_long, sql, f"w{n // 2}")) for n, sql in enumerate(WORST)]
    left = list(GREEDY if os.environ.get("MOOT_TEST_FULL") else GREEDY[::3])

    async def stop_next(workspace: str) -> None:
        while left:
            await stop(ask, left.pop(), workspace)

    await asyncio.gather(*map(stop_next, ("one", "one", "two", "two")))
    await asyncio.gather(*worst)
    assert len(WORST + GREEDY) >= 40
    memory.cancel()
    assert A_GIGABYTE / 10 < await memory < A_GIGABYTE


async def test_a_process_is_used_again_until_a_statement_goes_wrong(door: Door) -> None:
    _, ask = door(60.0)
    assert await ask("SELECT 1") == [(1,)]
    (first,) = descendants()
    with pytest.raises(InvalidInput, match="nobody does not exist"):
        await ask("SELECT * FROM nobody")
    assert await ask("SELECT 2") == [(2,)]
    assert descendants() == {first}
    with pytest.raises(InvalidInput, match="more than 640 MB of memory"):
        await ask("SELECT range(1000000000)")
    assert descendants() == set()
    assert await ask("SELECT 3") == [(3,)]
    (second,) = descendants()
    os.kill(second, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{second}").exists())
    await asyncio.sleep(0.2)
    assert await ask("SELECT 4") == [(4,)]


async def test_a_workspace_has_processes_of_its_own_and_few_are_kept(door: Door) -> None:
    _, ask = door(60.0)
    for number in range(lake_sql.MOST_IDLE + 2):
        assert await ask("SELECT 1", f"w{number}") == [(1,)]
    kept = descendants()
    assert len(kept) == lake_sql.MOST_IDLE
    assert await ask("SELECT 1", "w5") == [(1,)]
    assert descendants() == kept
    assert await ask("SELECT 1", "w0") == [(1,)]
    assert descendants() != kept


async def test_who_waits_is_told_when_there_are_too_many_and_others_go_on(door: Door) -> None:
    _, ask = door(60.0)
    most = lake_sql.AT_ONCE + lake_sql.MOST_WAITING
    asked = [asyncio.create_task(ask(ENDLESS)) for _ in range(most)]
    await until(lambda: len(descendants()) == lake_sql.AT_ONCE)
    with pytest.raises(TooManyRequests, match="too many queries of this workspace") as raised:
        await ask("SELECT 1")
    assert (raised.value.code, raised.value.details) == ("SQL_BUSY", {"retry_after": 60})
    assert await ask("SELECT 1", "another") == [(1,)]
    for task in asked:
        task.cancel()
    assert all(isinstance(each, asyncio.CancelledError) for each in await ended(asked))
    assert len(descendants()) == 1, "the one that has nothing to do"
    assert await ask("SELECT 1") == [(1,)]


async def test_the_wait_for_a_turn_counts(door: Door) -> None:
    children, ask = door(1.0)
    async with children.lend("default"), children.lend("default"):
        with pytest.raises(TooManyRequests):
            await ask("SELECT 1")


async def test_what_is_laid_out_for_a_statement_takes_none_of_its_time(tmp_path: Path) -> None:
    children = Children(60.0)

    async def read_slowly(_dataset: Dataset[Any]) -> Sequence[BaseModel]:
        leap(90.0)
        await settle()
        return []

    lake = LakeDatabase(tmp_path / "lake", children)
    counted = "SELECT count(*) FROM bars"
    found = await lake.answer(counted, read_slowly, as_of=NOW, most=1, workspace="default")
    await children.close()
    assert found[1] == [(0,)]


async def test_values_come_as_they_are_and_days_with_times_in_utc(door: Door) -> None:
    _, ask = door(60.0)
    sql = """SELECT 1, 1.5::DOUBLE, 1.50::DECIMAL(9, 2), 'é', true, NULL, DATE '2024-01-31', TIME '12:30',
        TIMESTAMP '2024-01-31 12:30', [TIMESTAMP '2024-01-31 12:30'], {'a': [1]}, INTERVAL 1 DAY, 'ab'::BLOB,
        TIMESTAMPTZ '2024-01-31 20:30:00+08',
        UUID '00000000-0000-0000-0000-000000000001', 170141183460469231731687303715884105727::HUGEINT"""
    moment = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
    assert await ask(sql) == [
        (
            *(1, 1.5, Decimal("1.50"), "é", True, None, date(2024, 1, 31), time_of_day(12, 30)),
            *(moment, [moment], {"a": [1]}, timedelta(days=1), b"ab"),
            *(moment, UUID(int=1), 2**127 - 1),
        )
    ]


async def test_an_answer_has_an_end_and_so_has_a_reason(door: Door) -> None:
    _, ask = door(60.0)
    with pytest.raises(InvalidInput, match="answer is larger than 8 MB"):
        await ask("SELECT repeat('x', 10000) FROM range(1000)")
    with pytest.raises(InvalidInput, match="could not answer") as raised:
        await ask("SELECT error(repeat('x', 1000000))")
    assert len(str(raised.value)) < 2_000
    assert len(descendants()) == 1


async def test_a_process_is_told_nothing_and_may_do_little(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOT_TUSHARE_TOKEN", "a-secret")
    _, ask = door(60.0)
    await ask("SELECT 1")
    (pid,) = descendants()
    assert "a-secret" not in Path(f"/proc/{pid}/environ").read_text()
    links = {str(link.readlink()).split(":")[0] for link in Path(f"/proc/{pid}/fd").iterdir()}
    assert links <= {"pipe", "/dev/null"}
    assert resource.prlimit(pid, resource.RLIMIT_DATA)[1] == lake_sql.MOST_MEMORY << 20
    assert resource.prlimit(pid, resource.RLIMIT_FSIZE)[1] == 0


def test_nothing_but_values_is_read_from_a_process() -> None:
    with pytest.raises(pickle.UnpicklingError, match="is no value"):
        lake_sql.Values(BytesIO(pickle.dumps({"rows": [Path("x")]}))).load()


async def test_where_no_process_can_be_started_it_says_so(
    door: Door, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, ask = door(60.0)
    monkeypatch.setattr(lake_sql, "WORKER", tmp_path / "gone.py")
    with pytest.raises(Unavailable, match="exit code 2"):
        await ask("SELECT 1")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(Unavailable, match="No such file"):
        await ask("SELECT 1")


async def test_closing_ends_every_process(door: Door) -> None:
    children, ask = door(60.0)
    await ask("SELECT 1")
    asked = [asyncio.create_task(ask(ENDLESS, workspace)) for workspace in ("default", "another")]
    await until(lambda: len(descendants()) == 2)
    await children.close()
    told = await ended(asked)
    assert [(type(each), each.code) for each in told] == [(Unavailable, "SQL_UNAVAILABLE")] * 2
    assert "the desk is closing" in told[0].in_locale("en-US")
    assert descendants() == set()


PARENT = """
import asyncio, sys
from pathlib import Path
from tests.market_data.test_sql_children import ENDLESS, NOW, Children, LakeDatabase, descendants, nothing

async def main():
    lake = LakeDatabase(Path(sys.argv[1]), Children(600.0))
    asked = asyncio.create_task(lake.answer(ENDLESS, nothing, as_of=NOW, most=1, workspace="default"))
    await lake.answer("SELECT 1", nothing, as_of=NOW, most=1, workspace="another")
    while len(pids := descendants()) < 2:
        await asyncio.sleep(0.1)
    print(*pids, flush=True)
    await asked

asyncio.run(main())
"""


def test_a_process_ends_with_the_one_that_started_it_however_that_ends(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout
        pids = parent.stdout.readline().split()
        assert len(pids) == 2
        parent.kill()
    give_up = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < give_up
        time.sleep(0.05)
