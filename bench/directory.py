"""What a long list of companies costs a run about one of them: real files, the rubric, no model.

Every run has a desk of its own, as a command does, so that reading the list once is part of it; the first, which
loads libraries, is not counted. Rounds alternate, medians are compared.
"""

import statistics
import tempfile
import time
from datetime import UTC, date, datetime
from pathlib import Path

from bench.line import Line
from moot.desk import Moot
from moot.modules.market_data.domain.facts import COMPANIES, DATASETS
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.market_data.infrastructure.lake import Lake
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.facts import Company, SpecialTreatment
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.settings import Settings

MANY, FEW = 5_800, 12
MODEL, SYMBOL = "900001.DEMO", "600000.SH"
FIRST, LAST = date(2020, 1, 1), date(2026, 6, 30)
ROUNDS = 7
BUDGET = 3.0


async def lines() -> list[Line]:
    with tempfile.TemporaryDirectory() as many, tempfile.TemporaryDirectory() as few:
        for home, count in ((many, MANY), (few, FEW)):
            await fill(Lake(Path(home) / "lake"), count)
            await cpu_of_a_run(home)
        rounds = [(await cpu_of_a_run(many), await cpu_of_a_run(few)) for _ in range(ROUNDS)]
    ours, least = (statistics.median(times) for times in zip(*rounds, strict=True))
    detail = f"{ours * 1e3:.0f} ms against {least * 1e3:.0f} ms of CPU, a new desk each time"
    return [Line("rubric run with 5,800 companies / with 12", ours / least, BUDGET, detail)]


async def cpu_of_a_run(home: str) -> float:
    started = time.process_time()
    async with Moot(Settings(home=Path(home), log_level="error")) as desk:
        result = await desk.research(SYMBOL, as_of=LAST.isoformat())
    assert result.symbol == SYMBOL
    return time.process_time() - started


async def fill(lake: Lake, count: int) -> None:
    """A company of the demo market under a code of the exchange, and `count` companies in all."""
    at, demo = datetime.now(UTC), DemoMarket(1, SystemClock())
    lake.store(COMPANIES, Market.CN.value, [company(n) for n in range(count)], covered=None, at=at)
    for dataset in DATASETS.values():
        if dataset is not COMPANIES:
            here, there = (SYMBOL, MODEL) if dataset.by_symbol else (Market.CN.value, Market.DEMO.value)
            facts = await demo.read(dataset, there, FIRST, LAST)
            moved = [
                fact.model_copy(update={"symbol": SYMBOL}) if dataset.by_symbol else fact for fact in facts
            ]
            lake.store(dataset, here, moved, covered=(FIRST, LAST), at=at)


def company(number: int) -> Company:
    """One in twenty has been in trouble, one in ten was called something else before."""
    troubled = (SpecialTreatment(start=date(2012, 5, 2), end=date(2013, 5, 2)),) if number % 20 == 1 else ()
    return Company(
        symbol=f"{600000 + number:06}.SH",
        name=f"测试{chr(0x4E00 + number % 3000)}{chr(0x5E00 + number // 7)}",
        name_en=f"Test Company {number} Co., Ltd.",
        industry=f"行业{number % 110}",
        industry_en=f"Industry {number % 110}",
        list_date=date(2010, 1, 4),
        aliases=(f"旧名{number}",) if number % 10 == 1 else (),
        st_history=troubled,
        source="bench",
    )
