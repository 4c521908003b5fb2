"""Debates about companies of the demo market: fewer voices are never bolder, and what is told can be read.

`MOOT_TEST_DEBATES=120` in the environment holds as many as that; by default there are a few.
"""

import os
import re
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import combinations, product

import pytest

from moot.modules.coordinator.application.results import summarise
from moot.modules.debate.application.debate_service import DebateInput, ExpertSummary
from moot.modules.debate.container import DebateContainer
from moot.modules.debate.domain.schemes import relate
from moot.modules.debate.domain.weighing import Weighing
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.claims import Claim
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES, Locale
from moot.shared.domain.symbol import Market
from tests.fakes.clock import FixedClock
from tests.fakes.debate import BY_RULE

UNTIL = datetime(2026, 6, 30, 12, tzinfo=UTC)
GONE = 7
COMPANIES = [f"9000{number:02}.DEMO" for number in range(1, 13) if number != GONE]
DAYS = [UNTIL.date() - timedelta(days=37 * n) for n in range(10)]
QUESTIONS = list(product(DAYS, COMPANIES))
ASKED = QUESTIONS[:: max(1, len(QUESTIONS) // int(os.environ.get("MOOT_TEST_DEBATES", "6")))]
LENGTHS: dict[Locale, tuple[int, int]] = {"zh-CN": (300, 800), "en-US": (150, 400)}


@cache
def market() -> MarketData:
    return MarketData({Market.DEMO: DemoMarket(seed=1, clock=FixedClock(UNTIL))})


async def ask(symbol: str, day: date) -> DebateInput:
    as_of = datetime.combine(day, time(12), UTC)
    found = {}
    for expert in ExpertType:
        of_the_day = (day,) if expert is ExpertType.TECHNICAL_ANALYST else ()
        service = ResearchContainer(market()).service(expert)
        result = await service.run(symbol, *of_the_day, as_of=as_of, locale="zh-CN")
        found[expert] = result if isinstance(result, dict) else result.model_dump(mode="json")
    return DebateInput(
        symbol=symbol,
        expert_summaries={e: ExpertSummary(**summarise(e, result)._asdict()) for e, result in found.items()},
        claims=[Claim.model_validate(claim) for result in found.values() for claim in result["claims"]],
        evidence=[item for result in found.values() for item in result["evidence"]],
        as_of=as_of,
    )


def length(text: str, locale: Locale) -> int:
    return len(text) if locale == "zh-CN" else len(text.split())


def repeated(*texts: str) -> list[str]:
    """Sentences of twenty characters or more that stand there twice."""
    parts = (part.strip() for text in texts for part in re.split(r"(?<=[。；])|(?<=[.;])\s|\n", text))
    return [part for part, times in Counter(parts).items() if times > 1 and len(part) >= 20]


def check_voices(debate: DebateInput) -> None:
    whole = Weighing(debate.claims, relate(debate.claims), frozenset(ExpertType))
    for size in range(1, len(ExpertType)):
        for heard in combinations(ExpertType, size):
            claims = [claim for claim in debate.claims if claim.expert in heard]
            part = Weighing(claims, relate(claims), frozenset(heard))
            assert part.conviction <= whole.conviction, f"{heard} are bolder than all"


async def check_texts(debate: DebateInput, locale: Locale) -> None:
    debate = debate.model_copy(update={"locale": locale})
    outcome = await DebateContainer(*BY_RULE).debate_service().run(debate)
    shortest, longest = LENGTHS[locale]
    assert shortest <= length(outcome.narrative_report, locale) <= longest
    assert len(outcome.risk_matrix) >= 3 and outcome.key_disagreements
    cases = [*outcome.bull_case.supporting_arguments, *outcome.bear_case.supporting_arguments]
    risks = [f"{row.risk}\n{row.mitigation}" for row in outcome.risk_matrix]
    for texts in ([outcome.narrative_report], cases, risks, outcome.key_disagreements):
        assert repeated(*texts) == []
    told = " ".join(claim.text(locale) for claim in debate.claims)
    assert ground([outcome.narrative_report], debate.evidence, given=told).offenders == []
    argument = outcome.argument
    weighing = Weighing(argument.claims, argument.relations, frozenset(argument.heard))
    check_decisive(weighing, argument.decisive)


def check_decisive(weighing: Weighing, decisive: list[str]) -> None:
    """Without them the direction is another. There are none only where not even a whole side struck would do."""
    if decisive:
        assert weighing.without(decisive).direction != weighing.direction
        return
    for side in ("for", "against"):
        struck = [claim.id for claim in weighing.claims if claim.side == side]
        assert weighing.without(struck).direction == weighing.direction == "NEUTRAL"


@pytest.mark.parametrize(("day", "symbol"), ASKED, ids=str)
async def test_debates_of_the_demo_market(day, symbol):
    debate = await ask(symbol, day)
    check_voices(debate)
    for locale in LOCALES:
        await check_texts(debate, locale)
