"""What the technical analyst says of forty real companies at ten moments: never against its own numbers."""

import asyncio
import json
from collections import Counter
from datetime import date
from typing import Any

import pytest

from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES
from tests.measured.real_market import RealMarket, at
from tests.measured.test_experts import ask
from tests.research.test_claims import HOLDS, as_read

QUARTERS = [
    *(date(2020, 6, 30), date(2020, 9, 30), date(2020, 12, 31), date(2021, 3, 31), date(2021, 6, 30)),
    *(date(2021, 9, 30), date(2021, 12, 31), date(2022, 3, 31), date(2022, 6, 30), date(2022, 9, 30)),
]
Report = dict[str, Any]


async def ask_all(market: RealMarket) -> tuple[list[Report], list[str]]:
    reports, refused = [], []
    for n, (symbol, day) in enumerate((symbol, day) for symbol in market.sources for day in QUARTERS):
        try:
            source, moment = market.sources[symbol], at(day, 20)
            reports.append(await ask("technical", source, symbol, moment, LOCALES[n % 2]))
        except InvalidInput as e:
            refused.append(e.in_locale("en-US"))
    return reports, refused


@pytest.fixture(scope="module")
def told(market: RealMarket) -> tuple[list[Report], list[str]]:
    return asyncio.run(ask_all(market))


def test_every_run_ends_in_a_view_or_in_a_reason_and_no_view_is_the_rule(
    told: tuple[list[Report], list[str]],
) -> None:
    reports, refused = told
    assert len(reports) + len(refused) == 400
    assert all("was not listed before" in why for why in refused)
    signals = Counter(report["signal"] for report in reports)
    assert signals.keys() == {"BULLISH", "NEUTRAL", "BEARISH"}
    assert max(signals.values()) < 0.9 * len(reports)


def test_every_sentence_holds_of_the_numbers_it_cites(told: tuple[list[Report], list[str]]) -> None:
    met: set[str] = set()
    for report in told[0]:
        evidence = {item["id"]: Evidence(**item) for item in report["evidence"]}
        for claim in (Claim(**claim) for claim in report["claims"]):
            met.add(claim.kind)
            assert HOLDS[claim.kind](as_read(claim, evidence)), claim
            cited = [evidence[id_] for id_ in claim.evidence]
            assert [ground([text], cited).offenders for text in claim.says.values()] == [[], []], claim.says
    unmet = {kind for kind in HOLDS if kind.startswith("technical.")} - met
    assert all("liquidity" in kind or "relative_strength" in kind for kind in unmet), unmet


def test_what_rests_on_a_day_is_dated_by_it(told: tuple[list[Report], list[str]]) -> None:
    """Levels and patterns: never later than the prices they are held against."""
    for report in told[0]:
        seen = report["technical_indicators"]
        days = {item["id"].removeprefix("technical."): item["as_of"][:10] for item in report["evidence"]}
        for side in ("support", "resistance"):
            levels = [days[f"calculated_{side}_levels.{n}"] for n, _ in enumerate(seen[f"{side}_days"], 1)]
            assert levels == seen[f"{side}_days"]
        assert {name: days[f"pattern.{name}"] for name in seen["pattern_days"]} == {
            name: bars[-1] for name, bars in seen["pattern_days"].items()
        }
        assert max(days.values()) == seen["last_trade_date"]


async def test_the_same_again_is_equal_to_the_byte(market: RealMarket) -> None:
    for symbol in list(market.sources)[::8]:
        first, second = [
            json.dumps(await ask("technical", market.sources[symbol], symbol), sort_keys=True)
            for _ in range(2)
        ]
        assert first == second
