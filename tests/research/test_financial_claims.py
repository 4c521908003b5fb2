"""The auditor's sentences against their own numbers, over the demo market with the peers of its companies.

Each number is one of the evidence the claim cites, each word holds of the numbers as they are read, and both
languages say the same.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from math import inf
from typing import Any

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.application.financial_auditor import (
    SAY,
    FinancialSnapshot,
    signal_for,
)
from moot.modules.research.application.financial_auditor import SERVICE as AUDITOR
from moot.modules.research.container import ResearchContainer
from moot.modules.research.domain.rubric import Rule
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import ground
from moot.shared.domain.symbol import Market
from tests.fakes.clock import FixedClock

DATES = [
    datetime(*day, 10, tzinfo=UTC) for day in ((2026, 6, 30), (2026, 2, 20), (2025, 3, 10), (2024, 2, 5))
]
SYMBOLS = [f"9000{n:02}.DEMO" for n in range(1, 13)] + [f"9201{n:02}.DEMO" for n in range(1, 13)]
RULES = {rule.name: rule for rule in AUDITOR.rules()}
UNITS = {name: unit.digits for name, unit in FinancialSnapshot.units().items()}
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{4}Q\d")
Read = Callable[[str], float]


def is_level(name: str) -> Callable[[Read], bool]:
    """Within a tenth of itself, and of the digit it is read to."""

    def holds(n: Read) -> bool:
        before = n(f"{name}_ttm_before")
        return abs(n(f"{name}_ttm") - before) <= 0.1 * max(abs(before), 1) + 0.11

    return holds


def told_ahead(name: str, low: str, high: str) -> dict[str, Callable[[Read], bool]]:
    return {
        f"{name}.loss": lambda n: n("notice_profit_low") < 0,
        f"{name}.narrower": lambda n: n("notice_profit_before") < n("notice_profit_low") < 0,
        f"{name}.slump": lambda n: n(low) < -50,
        f"{name}.down": lambda n: n(low) < -10,
        f"{name}.flat": lambda n: n(low) <= 10 and n(high) >= -10,
        f"{name}.up": lambda n: n(high) >= 10,
        f"{name}.surge": lambda n: n(high) >= 50,
        f"{name}.turnaround": lambda n: n("notice_profit_low") > 0 >= n("notice_profit_before"),
    }


WORDS: Mapping[str, Callable[[Read], bool]] = {
    "altman.distress": lambda n: n("altman_score") <= n("altman_distress"),
    "altman.grey": lambda n: n("altman_distress") <= n("altman_score") <= n("altman_safe"),
    "altman.safe": lambda n: n("altman_score") >= n("altman_safe"),
    "roe_trend.up": lambda n: n("roe_ttm") > n("roe_ttm_before"),
    "roe_trend.steady": is_level("roe"),
    "roe_trend.down": lambda n: n("roe_ttm") < n("roe_ttm_before"),
    "margin_trend.up": lambda n: n("net_margin_ttm") > n("net_margin_ttm_before"),
    "margin_trend.steady": is_level("net_margin"),
    "margin_trend.down": lambda n: n("net_margin_ttm") < n("net_margin_ttm_before"),
    **told_ahead("forecast", "notice_change_low", "notice_change_high"),
    **told_ahead("express", "notice_change_low", "notice_change_low"),
}


def in_its_band(rule: Rule, says: str, n: Read) -> bool:
    """The number as it is read lies in the band, or within half a step of its limits."""
    value = n(rule.measure)
    value = 100 * value / n(rule.of) if rule.of else value - n(rule.less) if rule.less else value
    step = 0.51 * 10.0 ** -UNITS[rule.measure] * (1 + bool(rule.less))
    limits = [-inf, *(band.below for band in rule.bands)]
    index = [band.says for band in rule.bands].index(says)
    return limits[index] - step <= value <= limits[index + 1] + step


def reading(claim: Mapping[str, Any], evidence: Mapping[str, Evidence]) -> Read:
    def number(name: str) -> float:
        item = evidence[f"financial.{name}"]
        assert item.id in claim["evidence"], (claim["id"], name)
        return round(float(item.value), UNITS[name])

    return number


def check_claim(claim: Mapping[str, Any], evidence: Mapping[str, Evidence]) -> None:
    _, name, says = claim["kind"].split(".")
    n, rule = reading(claim, evidence), RULES[name]
    kind = f"{name}.{says}"
    assert WORDS[kind](n) if kind in WORDS else in_its_band(rule, says, n), claim["says"]
    cited = [evidence[id_] for id_ in claim["evidence"]]
    texts = [DAY.sub(" ", text) for text in claim["says"].values()]
    assert "N/A" not in texts[0]
    assert ground(texts, cited).offenders == [], texts
    if name.endswith("_trend") and rule.of:
        series = [item.value for item in cited if f".{name.removesuffix('_trend')}_by_quarter." in item.id]
        assert (len(series), sum(rate > 0 for rate in series)) == (n(rule.of), n(rule.measure))
    if not re.search("[亿万]元", claim["says"]["zh-CN"]):
        chinese, english = (sorted(NUMBER.findall(text)) for text in texts)
        assert chinese == english, claim["says"]


def check_report(report: Mapping[str, Any]) -> None:
    evidence = {item["id"]: Evidence(**item) for item in report["evidence"]}
    assert len(evidence) < 160
    for claim in report["claims"]:
        check_claim(claim, evidence)
    scores = [d["score"] for d in report["dimension_analyses"] if d["key_findings"]]
    assert min(scores) <= report["financial_score"] <= max(scores)
    assert report["signal"] == signal_for(report["financial_score"])


async def ask(desk: ResearchContainer, symbols: Iterable[str], dates: Iterable[datetime]) -> list[Any]:
    found = []
    for n, (symbol, as_of) in enumerate((s, d) for s in symbols for d in dates):
        try:
            service = desk.service("financial_auditor")
            found.append(await service.run(symbol, as_of=as_of, locale=("zh-CN", "en-US")[n % 2]))
        except AppError:
            continue
    return found


@pytest.fixture(scope="module")
def told() -> list[Any]:
    data = MarketData({Market.DEMO: DemoMarket(seed=7, clock=FixedClock(DATES[0]))})
    return asyncio.run(ask(ResearchContainer(data), SYMBOLS, DATES))


def test_no_sentence_is_refuted_by_its_own_numbers(told: list[Any]) -> None:
    assert len(told) > 80
    for report in told:
        check_report(report)


def test_the_demo_market_makes_most_rules_speak(told: list[Any]) -> None:
    met = Counter(claim["kind"].split(".")[1] for report in told for claim in report["claims"])
    elsewhere = {"insurer_equity", "broker_equity", "revenue_swing"}
    assert met.keys() == RULES.keys() - elsewhere
    signals = Counter(report["signal"] for report in told)
    assert max(signals.values()) < 0.9 * len(told)


def test_the_check_sees_a_word_that_the_numbers_refute(told: list[Any]) -> None:
    report = told[0]
    evidence = {item["id"]: Evidence(**item) for item in report["evidence"]}
    claim = next(claim for claim in report["claims"] if claim["id"] == "financial.roe")
    wrong = "poor" if evidence["financial.roe_ttm"].value > 6 else "excellent"
    with pytest.raises(AssertionError):
        check_claim(claim | {"kind": f"financial.roe.{wrong}"}, evidence)


def test_every_line_that_a_score_may_lack_has_a_name(told: list[Any]) -> None:
    lines = {
        line
        for report in told
        for lines in report["financial_indicators"]["lacking"].values()
        for line in lines
    }
    assert {f"line.{line}" for line in lines} <= SAY.texts("en-US").keys()
