"""The catalyst detective on forty real companies at ten moments: an answer or a documented reason, not always the
same one, and the same again without what came later.
"""

import asyncio
from collections import Counter
from datetime import date
from typing import Any

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import FakeMarketDataProvider
from tests.measured.real_market import RealMarket, at
from tests.measured.test_experts import with_what_was_known

DAYS = [
    *(date(2020, 9, 30), date(2020, 12, 31), date(2021, 3, 31), date(2021, 6, 30), date(2021, 9, 30)),
    *(date(2021, 12, 31), date(2022, 3, 31), date(2022, 6, 30), date(2022, 9, 30), date(2022, 12, 30)),
]
"""Ends of quarters."""


async def ask(source: FakeMarketDataProvider, symbol: str, day: date) -> Any:
    service = ResearchContainer(MarketData({Market.CN: source})).service("catalyst_detective")
    try:
        return await service.run(symbol, as_of=at(day, 20), locale="zh-CN")
    except InvalidInput as e:
        return e.in_locale("en-US")


Answers = dict[tuple[str, date], Any]


@pytest.fixture(scope="module")
def answers(market: RealMarket) -> Answers:
    async def ask_all() -> Answers:
        asked = [(symbol, day) for symbol in market.sources for day in DAYS]
        return {(symbol, day): await ask(market.sources[symbol], symbol, day) for symbol, day in asked}

    return asyncio.run(ask_all())


def test_no_answer_is_given_nine_times_of_ten_and_no_refusal_is_without_its_reason(answers: Answers) -> None:
    given = [found for found in answers.values() if not isinstance(found, str)]
    refused = [found for found in answers.values() if isinstance(found, str)]
    assert len(given) > 370
    assert all("all four dimensions are empty" in why or "was not listed before" in why for why in refused)
    said = Counter(found.result.catalyst_assessment for found in given)
    assert len(said) == 3
    assert max(said.values()) <= 0.9 * len(given)


def test_a_reaction_is_called_what_its_numbers_say(answers: Answers) -> None:
    kinds = Counter[str]()
    for found in (found for found in answers.values() if not isinstance(found, str)):
        seen = found.catalyst_context
        for claim in (claim for claim in found.claims if claim.id == "catalyst.report_reaction"):
            kinds[claim.kind.rpartition(".")[2]] += 1
            if claim.side == "neither":
                assert abs(seen.reaction_3d) <= seen.usual_3d + 0.01
            else:
                assert abs(seen.reaction_3d) >= seen.usual_3d - 0.01
                assert (seen.reaction_3d > 0) == (claim.side == "for")
            assert "未作市场调整" in claim.says["zh-CN"]
    assert kinds.keys() == {"fell_far", "fell", "calm", "rose", "rose_far"}


@pytest.mark.parametrize("symbol", ["600519.SH", "601398.SH", "600029.SH", "000425.SZ"])
async def test_it_says_the_same_when_the_future_has_not_been_recorded_yet(
    market: RealMarket, answers: Answers, symbol: str
) -> None:
    for day in DAYS:
        then = with_what_was_known(market.sources[symbol], at(day, 20))
        again = await ask(then, symbol, day)
        assert again.model_dump_json() == answers[symbol, day].model_dump_json()
