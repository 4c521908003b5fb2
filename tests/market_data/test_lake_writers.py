"""Writers that are killed, and writers that meet."""

import os
import random
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from moot.modules.market_data.domain.facts import BARS
from moot.modules.market_data.infrastructure.lake import Lake
from tests.fakes.clock import PATIENCE
from tests.fakes.market_data import SYMBOL
from tests.market_data.lake_writer import BEGAN, FIRST, ROWS

EVER = (FIRST, FIRST + timedelta(days=2 * ROWS))
KILLS = int(os.environ.get("MOOT_TEST_KILLS", "4"))


def writer(folder: Path, *what: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.market_data.lake_writer", str(folder), *map(str, what)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    lake, moments = Lake(tmp_path), random.Random(7)
    stored = 0
    for _ in range(KILLS):
        with writer(tmp_path, "versions", stored + 1) as process:
            assert process.stdout
            stored = int(process.stdout.readline())
            time.sleep(moments.uniform(0, 0.15))
            process.kill()
            stored = max([stored, *(int(line) for line in process.stdout if line.endswith("\n"))])
        bars = await lake.read(BARS, SYMBOL, *EVER)
        found = {bar.close for bar in bars}
        assert len(bars) == ROWS
        assert found <= {float(stored), float(stored + 1)}
        assert len(found) == 1
        coverage = lake.coverage(BARS, SYMBOL)
        assert coverage is not None
        assert coverage.stored_at == BEGAN + timedelta(seconds=found.pop())
        stored += 1


async def test_two_processes_that_store_different_days_lose_none(tmp_path: Path) -> None:
    count = 40
    writers = [writer(tmp_path, "days", first, count) for first in (0, count)]
    for process in writers:
        process.communicate(timeout=PATIENCE)
    assert [process.returncode for process in writers] == [0, 0]
    bars = await Lake(tmp_path).read(BARS, SYMBOL, *EVER)
    assert [bar.trade_date for bar in bars] == [FIRST + timedelta(days=n) for n in range(2 * count)]
    coverage = Lake(tmp_path).coverage(BARS, SYMBOL)
    assert coverage is not None
    assert coverage.ranges == ((FIRST, FIRST + timedelta(days=2 * count - 1)),)
