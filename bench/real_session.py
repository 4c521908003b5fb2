"""A session by rule on real tables, in a directory of thousands of companies: within 0.1 s of CPU once warm."""

import os
import tempfile
import time
from pathlib import Path

from bench.line import Line
from bench.walk import fill
from moot.desk import Moot
from moot.shared.infrastructure.settings import Settings

TABLES = Path(os.environ.get("MOOT_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
THERE = TABLES.is_dir()
SYMBOLS = ("600519.SH", "601398.SH", "601012.SH", "000651.SZ", "600030.SH", "601899.SH")
DAY = "2022-06-30"
ROUNDS = 3
BUDGET = 0.1


async def lines() -> list[Line]:
    """None where the tables are not there."""
    if not THERE:
        return []
    with tempfile.TemporaryDirectory() as home:
        await fill(Path(home), TABLES)
        async with Moot(Settings(home=Path(home), log_level="error")) as desk:
            rounds = [await cpu_of(desk) for _ in range(ROUNDS + 1)][1:]
    took = min(rounds)
    detail = f"{took * 1e3:.0f} ms, five experts, debate and verdict, SQLite, {len(SYMBOLS)} companies"
    return [Line("rubric session on real tables / 0.1 s of CPU", took / BUDGET, 1.0, detail)]


async def cpu_of(desk: Moot) -> float:
    started = time.process_time()
    for symbol in SYMBOLS:
        await desk.research(symbol, as_of=DAY, locale="zh-CN")
    return (time.process_time() - started) / len(SYMBOLS)
