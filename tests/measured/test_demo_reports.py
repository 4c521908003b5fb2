"""Reports on the demo market: nothing twice, no number from nowhere, the same in both languages.

Two companies on two days; `MOOT_TEST_REPORTS=all` takes all on ten, but for the one that was delisted before.
"""

import asyncio
import os
import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import chain
from typing import Any

import pytest

from moot import Moot
from moot.modules.coordinator.application.report import render_report
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.debate.domain.weighing import AS_GOOD_AS_SURE, NEUTRAL_BAND, round_down
from moot.modules.judge.domain.levels import Levels
from moot.modules.judge.domain.ruling import ENOUGH_TO_ACT
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_report import sentences

ALL = os.environ.get("MOOT_TEST_REPORTS") == "all"
SYMBOLS = [f"9000{n:02}.DEMO" for n in range(1, 13 if ALL else 3) if n != 7]
DAYS = [date(2026, 6, 26) - timedelta(days=61 * n) for n in range(10 if ALL else 2)]
SCALES = {"亿": 1e8, "万": 1e4, "billion": 1e9, "million": 1e6}
NUMBER = re.compile(rf"([-+]?\d[\d,]*)(\.\d+)? ?({'|'.join(SCALES)})?")
QUOTED = re.compile(r"《.*》|“.*”")
"""What others wrote is in their language and their units."""
APART = re.compile(r"`[^`]*`|\[\d+\]|\d{4}-\d\d-\d\d|\d{4}Q\d|^\| \d+ |\w+://\S+", re.MULTILINE)
"""Names of claims, places in a table, days, quarters and addresses."""


TABLED = re.compile(r"^\| \d+ \|.*|^(?:Data used|所用数据).*|^## (?:On the record|记录)(?s:.*)", re.MULTILINE)
"""The table of numbers, and what is no finding: how old the data are, and the record."""
Pairs = list[list[ResearchResult]]
SCALE = (AS_GOOD_AS_SURE, NEUTRAL_BAND * AS_GOOD_AS_SURE, 0.5 + ENOUGH_TO_ACT / 2)
"""What a lean and a weight are measured by."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """The same question in each language, Chinese first."""
    settings = Settings(home=tmp_path_factory.mktemp("home"), persistence=False, log_level="error")

    async def ask() -> Pairs:
        async with Moot(settings) as desk:
            return [
                [await desk.research(symbol, as_of=day.isoformat(), locale=locale) for locale in LOCALES]
                for symbol in SYMBOLS
                for day in DAYS
            ]

    return asyncio.run(ask())


def floats(value: Any) -> Iterator[float]:
    """Every number in it, and as a percentage."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from floats(member)
    elif isinstance(value, int | float):
        yield from (value, 100 * value)


def amounts(report: str) -> set[tuple[float, float]]:
    """The numbers of a report, each with half a step of its last digit."""
    found = set()
    for whole, decimals, unit in NUMBER.findall(APART.sub(" ", QUOTED.sub(" ", report))):
        scale = SCALES.get(unit, 1.0)
        step = 10.0 ** -max(0, len(decimals) - 1) * scale
        found.add((float(whole.replace(",", "") + decimals) * scale, 0.51 * step))
    return found


def test_no_long_sentence_stands_twice(pairs: Pairs) -> None:
    told = [sentences(render_report(result)) for result in chain(*pairs)]
    assert [said for report in told for said, times in report.items() if times > 1] == []


def derive(levels: Levels) -> list[float]:
    """What there is to win and to lose, and the price at which both are the same."""
    won, lost = levels.stakes or (0.0, 0.0)
    return [won, lost, round((levels.entry or 0.0) - (lost - won) / 2, 2)]


def test_every_number_is_in_the_evidence_or_the_verdicts_own(pairs: Pairs) -> None:
    offenders = []
    for result in chain(*pairs):
        data = [item.data for item in result.expert_results.values() if item.data]
        evidence = [Evidence.model_validate(fact) for part in data for fact in part["evidence"]]
        judged = {**(result.debate_outcome or {}), **(result.verdict or {})}
        own = {name: value for name, value in judged.items() if name != "evidence"}
        closes = [close for part in data for _, close in part.get("price_series", [])]
        scores = [
            [part.get(name) for name in ("confidence", "confidence_score", "financial_score")]
            for part in data
        ]
        inside = [part["result"]["confidence_score"] for part in data if "result" in part]
        prose = APART.sub(" ", TABLED.sub("", render_report(result)))
        argument = (result.debate_outcome or {})["argument"]
        derived = [float(len(argument["decisive"])), round_down(2 * argument["motion"] - 1), *SCALE]
        derived += derive(Levels.model_validate((result.verdict or {})["levels"]))
        found = ground([prose], evidence, own=[*floats([own, closes, scores, inside]), *derived])
        assert found.checked > 50
        offenders += [(result.symbol, f"{result.as_of:%Y-%m-%d}", said) for said in found.offenders]
    assert offenders == []


def test_both_languages_say_the_same_numbers(pairs: Pairs) -> None:
    """Billions are rounded otherwise than 亿, and what two claims say alike in one language stands there once."""
    for pair in pairs:
        chinese, english = (amounts(render_report(result)) for result in pair)
        for said, elsewhere in ((chinese, english), (english, chinese)):
            lone = [a for a, s in said if not any(abs(a - b) <= max(s, t) for b, t in elsewhere)]
            assert lone == [], (pair[0].symbol, pair[0].as_of)


def test_an_english_report_has_no_chinese_in_it(pairs: Pairs) -> None:
    english = "".join(render_report(result) for _, result in pairs)
    assert re.findall(r"[\u3000-\u9fff\uff00-\uffef]+", english) == []


def test_a_chinese_report_has_no_english_prose_in_it(pairs: Pairs) -> None:
    chinese = "".join(render_report(result) for result, _ in pairs)
    ours = re.sub(r"`[^`]*`", "", chinese)
    assert (
        re.findall(r"\b(?:BULLISH|BEARISH|NEUTRAL|BUY|SELL|HOLD|Rising|Falling|[a-z]{4,} [a-z]{3,})\b", ours)
        == []
    )
