"""No purchase with a grave fact, wherever it is known from, and it is told first."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.execution_monitor import current_workflow_id
from moot.modules.governance.container import GovernanceContainer
from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.claims import Claim
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import NewsItem
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.execution_context import ExecutionContext
from tests.fakes.clock import FixedClock
from tests.fakes.judge import VERDICT
from tests.fakes.market_data import FakeMarketDataProvider, a_bar, a_company, a_news_item

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
TODAY = NOW.date()
BUY = VERDICT | {"symbol": "900001.DEMO", "headline": "Buy.", "engine": "rubric"}
PROBE = "公司被证监会立案调查"
CLAIM = Claim(
    id="catalyst.event.1",
    kind="catalyst.default",
    expert=ExpertType.CATALYST_DETECTIVE,
    dimension="company",
    side="against",
    strength=0.1,
    says={"zh-CN": "债券违约", "en-US": "It missed a payment"},
    evidence=["catalyst.event.1"],
    as_of=NOW,
    reported=True,
)


def published(title: str, days_ago: int = 5, kind: str = "announcement") -> NewsItem:
    at, url = NOW - timedelta(days=days_ago), f"fake://{title}/{days_ago}"
    return a_news_item(at.date(), at, title=title, title_en=title, url=url, kind=kind)


class Review:
    """The rules, asked about a verdict by a desk that has this market data."""

    def __init__(self, *items: NewsItem, claims: tuple[Claim, ...] = (), **bar: Any) -> None:
        source = FakeMarketDataProvider([a_company()], [a_bar(TODAY, **bar)], items=list(items))
        data, clock = MarketData({Market.DEMO: source}), FixedClock(NOW)
        self._agent: CoordinatorAgent = GovernanceContainer(trail=None, clock=clock).agent
        self._policy = GovernanceAdapter(self._agent, clock, data)
        self._claims = [claim.model_dump(mode="json") for claim in claims]

    async def of(self, ruled: dict[str, Any] = BUY, locale: Any = "en-US") -> dict[str, Any]:
        with ExecutionContext(as_of=NOW, locale=locale).active():
            await self._agent.monitor.on_workflow_start(current_workflow_id(), ["debate", "judge"])
            argued = {"argument": {"claims": self._claims, "relations": [], "heard": []}}
            await self._agent.monitor.on_node_complete(current_workflow_id(), "debate", argued)
            return await self._policy.review("judge", ruled)


@pytest.mark.parametrize(
    ("locale", "headline", "ground"),
    [
        ("zh-CN", "重大事实：立案调查或造假嫌疑，不得买入。", f"2026-02-25《{PROBE}》"),
        (
            "en-US",
            "Grave facts: an investigation or suspected fraud. No purchase.",
            f"2026-02-25, “{PROBE}”",
        ),
    ],
)
async def test_published_news_that_no_expert_read_makes_a_purchase_a_hold_and_is_told_first(
    locale: str, headline: str, ground: str
) -> None:
    ruled = await Review(published(PROBE)).of(locale=locale)
    assert (ruled["action"], ruled["position_percent"]) == ("HOLD", 0)
    assert ruled["headline"].startswith(headline)
    assert ruled["grave"] == [ground]
    assert "risk.grave_facts" in ruled["warnings"][-1]


@pytest.mark.parametrize("engine", ["rubric", "llm"])
async def test_a_claim_of_the_debate_is_enough_whoever_ruled(engine: str) -> None:
    ruled = await Review(claims=(CLAIM,)).of(BUY | {"engine": engine})
    assert (ruled["action"], ruled["grave"]) == ("HOLD", ["It missed a payment"])
    assert ruled["headline"].startswith("Grave facts: a default.")


async def test_a_grave_fact_counts_as_long_as_the_news_window_however_old() -> None:
    assert (await Review(published(PROBE, 89)).of())["action"] == "HOLD"
    assert (await Review(published(PROBE, 120)).of())["action"] == "BUY"


async def test_without_a_grave_fact_a_purchase_stays_one() -> None:
    harmless = published("收到交易所问询函"), published("中标项目")
    assert await Review(*harmless).of() == BUY


async def test_what_was_lifted_is_no_grave_fact_and_a_rumour_lifts_nothing() -> None:
    probe, closed = published(PROBE, 30), "收到证监会结案通知书"
    assert (await Review(probe, published(closed)).of())["action"] == "BUY"
    assert (await Review(probe, published(closed, kind="news")).of())["action"] == "HOLD"


async def test_a_verdict_that_buys_nothing_stands_and_says_it_too() -> None:
    sell = BUY | {"action": "SELL", "position_percent": 0.0, "levels": {"entry": 10.0}, "headline": "Sell."}
    ruled = await Review(published(PROBE)).of(sell)
    assert (ruled["action"], ruled["warnings"]) == ("SELL", sell["warnings"])
    assert ruled["headline"].startswith("Grave facts: ")
    assert ruled["headline"].endswith("Sell.")


async def test_a_share_that_is_halted_is_told_to_be() -> None:
    hold = BUY | {"action": "HOLD", "position_percent": 0.0, "headline": "Hold."}
    ruled = await Review(suspended=True, volume=0, amount=0.0).of(hold)
    assert ruled["headline"].startswith("Grave facts: a trading halt.")
    assert ruled["grave"] == ["State of trading: a trading halt"]


async def test_what_the_judge_has_told_is_not_told_twice() -> None:
    told = BUY | {
        "action": "HOLD",
        "position_percent": 0.0,
        "grave": ["a probe"],
        "headline": "A probe. Hold.",
    }
    assert (await Review(published(PROBE)).of(told))["headline"] == "A probe. Hold."
