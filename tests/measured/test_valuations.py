"""Forty real companies at ten moments: no view that its own price refutes, and none that is given nearly always."""

import asyncio
from collections import Counter
from datetime import date
from typing import Any

import pytest

from moot.modules.research.container import ResearchContainer
from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES
from tests.measured.real_market import RealMarket, at

DAYS = [
    *(date(2020, 6, 30), date(2020, 9, 30), date(2020, 12, 31), date(2021, 3, 31), date(2021, 6, 30)),
    *(date(2021, 9, 30), date(2021, 12, 31), date(2022, 4, 29), date(2022, 8, 31), date(2022, 12, 30)),
]
UNKNOWN = {"zh-CN": "未知", "en-US": "unknown"}
Told = list[tuple[str, dict[str, Any]]]


async def ask_all(market: RealMarket) -> Told:
    """Each report with its language, by turns."""
    told: Told = []
    for symbol in market.sources:
        service = ResearchContainer(market.reading(symbol)).service
        for n, day in enumerate(DAYS):
            locale = LOCALES[n % 2]
            try:
                said = await service("valuation_modeler").run(symbol, as_of=at(day, 20), locale=locale)
            except InvalidInput:
                continue
            told.append((locale, said))
    return told


@pytest.fixture(scope="module")
def told(market: RealMarket) -> Told:
    return asyncio.run(ask_all(market))


def test_no_verdict_is_refuted_by_its_own_price(told: Told) -> None:
    met = Counter[str]()
    for _, said in told:
        seen, verdict = said["valuation_indicators"], said["valuation_verdict"]
        price, low, high = seen["current_price"], seen["value_low"], seen["value_high"]
        met[verdict] += 1
        if low is not None:
            assert verdict != "Overvalued" or price >= low, said["reasoning_summary"]
            assert verdict != "Undervalued" or price <= high, said["reasoning_summary"]
    assert max(met.values()) <= 0.9 * len(told), met
    assert len(met) == 3
    assert len(told) >= 370


def test_a_range_wider_than_three_times_is_called_unknown_and_supports_no_verdict(told: Told) -> None:
    unknown = 0
    for locale, said in told:
        seen, bounds = said["valuation_indicators"], said["estimated_intrinsic_value_range"].values()
        low, high = seen["value_low"], seen["value_high"]
        if low is None:
            assert set(bounds) == {"N/A"}
            continue
        is_unknown = high > 3 * low
        assert all(bound.startswith(UNKNOWN[locale]) == is_unknown for bound in bounds)
        unknown += is_unknown
        if is_unknown and said["valuation_verdict"] != "Fair":
            sign = 1 if said["valuation_verdict"] == "Undervalued" else -1
            ranks = [claim for claim in claims_of(said) if claim.id.endswith((".pe", ".pb", ".ps"))]
            assert sign * sum(claim.pull for claim in ranks) > 0
    assert 0 < unknown < 0.5 * len(told)


def test_far_is_far_and_a_rank_agrees_with_its_words(told: Told) -> None:
    for _, said in told:
        seen, kinds = said["valuation_indicators"], {claim.kind for claim in claims_of(said)}
        for model, value in ("residual", "residual_value"), ("graham", "graham_intrinsic_val"):
            if f"valuation.{model}.far_below" in kinds:
                assert seen["current_price"] < 0.9 * seen[value]
            if f"valuation.{model}.far_above" in kinds:
                assert seen["current_price"] > 1.1 * seen[value]
        for name in ("pe", "pb", "ps"):
            if f"valuation.{name}.cheap" in kinds:
                assert seen[f"{name}_percentile"] < 20
            if f"valuation.{name}.dear" in kinds:
                assert seen[f"{name}_percentile"] > 80


def test_every_number_of_a_claim_is_in_the_evidence_it_cites_and_a_short_past_is_told(told: Told) -> None:
    short = 0
    for _, said in told[::7]:
        evidence = {item["id"]: Evidence(**item) for item in said["evidence"]}
        for claim in claims_of(said):
            cited = [evidence[id_] for id_ in claim.evidence]
            assert ground(claim.says.values(), cited).offenders == [], claim
            if claim.id in {"valuation.pe", "valuation.pb", "valuation.ps"}:
                sessions = said["valuation_indicators"][f"{claim.id.partition('.')[2]}_sessions"]
                told_so = "less than a year" in claim.says["en-US"] and "不足一年" in claim.says["zh-CN"]
                assert told_so == (sessions < 250)
                short += told_so
    assert short


def claims_of(said: dict[str, Any]) -> list[Claim]:
    return [Claim(**claim) for claim in said["claims"]]
