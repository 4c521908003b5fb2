"""Grave news, planted on what the desk would buy: nothing of it is bought.

By hand, on everything it would buy: `MOOT_TEST_GRAVE=1000 pytest tests/governance/test_planted_news.py`.
"""

import os
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, time
from itertools import product
from pathlib import Path

from moot.desk import Moot
from moot.modules.market_data.infrastructure.demo.provider import firms
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import NewsItem
from moot.shared.infrastructure.settings import Settings
from tests.fakes.planted_news import PlantedNews, a_headline, plant_in

MOST = int(os.environ.get("MOOT_TEST_GRAVE", "2"))
DAYS = [date(2026, month, 25) for month in range(1, 7)]
GRAVE = [
    ("公司因涉嫌信息披露违法违规被证监会立案调查", "news", 1),
    ("Auditor issues a qualified opinion on the accounts of last year", "announcement", 80),
    ("关于公司股票可能被终止上市的风险提示公告", "announcement", 30),
    ("Company defaults on its bonds after a missed payment", "news", 60),
    ("公司股票自明日起停牌核查", "announcement", 10),
]
GOOD = ["中标12亿元项目，订单再创新高", "净利润同比增长80%，超预期", "控股股东增持2%股份", "拟回购3亿元股份"]


async def purchases(desk: Moot, planted: PlantedNews) -> AsyncIterator[tuple[str, date]]:
    """What the rubric would buy, up to so many."""
    found = 0
    for day, symbol in product(reversed(DAYS), firms()):
        planted.items = ()
        try:
            result = await desk.research(symbol, as_of=day)
        except InvalidInput:  # not listed any more
            continue
        if result.verdict and result.verdict["action"] == "BUY":
            yield symbol, day
            found += 1
            if found == MOST:
                return


def headlines(symbol: str, day: date, title: str, kind: str, days_ago: int) -> list[NewsItem]:
    """What is grave, and much good news that came later."""
    as_of = datetime.combine(day, time(4), UTC)
    good = [
        a_headline(symbol, said, as_of, days_ago=n % 3, kind="announcement")
        for n, said in enumerate(GOOD * 3)
    ]
    return [*good, a_headline(symbol, title, as_of, days_ago=days_ago, kind=kind)]


async def test_nothing_is_bought_that_something_grave_was_published_about(home: Path, clock) -> None:
    asked = 0
    async with Moot(Settings(home=home, log_level="error"), clock=clock) as desk:
        planted = plant_in(desk)
        async for symbol, day in purchases(desk, planted):
            for number, (title, kind, days_ago) in enumerate(GRAVE):
                planted.items = headlines(symbol, day, title, kind, days_ago)
                experts = (
                    ["technical_analyst", "valuation_modeler"]
                    if number == 0
                    else [expert.value for expert in ExpertType]
                )
                result = await desk.research(symbol, experts, as_of=day)
                verdict, asked = result.verdict, asked + 1
                assert verdict and verdict["action"] != "BUY", (symbol, day, title)
                assert verdict["position_percent"] == 0
                assert verdict["grave"] and verdict["headline"]
    assert asked >= len(GRAVE) * min(MOST, 2)
