"""No purchase with a grave fact, wherever it is known from; and no belief in a model that departs from the rules."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from moot.modules.coordinator.domain.exceptions import SessionWaiting
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.execution_monitor import current_workflow_id
from moot.modules.governance.container import GovernanceContainer
from moot.modules.governance.domain.decisions import ValidationStatus
from moot.modules.market_data.application.market_data import MarketData, TradingStates
from moot.modules.market_data.container import trading_calendar
from moot.shared.domain.claims import Claim
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import NewsItem
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from tests.coordinator.test_resume import closed_in_the_end, hours  # noqa: F401
from tests.fakes.clock import FixedClock
from tests.fakes.judge import VERDICT
from tests.fakes.market_data import FakeMarketDataProvider, a_bar, a_company, a_news_item
from tests.governance.test_coordinator_integration import VERDICT as RULED
from tests.governance.test_coordinator_integration import WORKSPACE, Desk
from tests.governance.test_shipped_rules import broken, verdict

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
TODAY = NOW.date()
BUY = VERDICT | {"symbol": "900001.DEMO", "headline": "Buy."}
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
        self._policy = GovernanceAdapter(self._agent, clock, TradingStates(data, trading_calendar))
        self._claims = [claim.model_dump(mode="json") for claim in claims]

    async def of(self, ruled: dict[str, Any] = BUY, locale: Any = "en-US") -> dict[str, Any]:
        with ExecutionContext(as_of=NOW, locale=locale).active():
            await self._agent.monitor.on_workflow_start(current_workflow_id(), ["debate", "judge"])
            argued = {"argument": {"claims": self._claims}}
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


async def test_a_claim_of_the_debate_is_enough() -> None:
    ruled = await Review(claims=(CLAIM,)).of()
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


class TestDepartures:
    """What a model ruled, and what the rules would have made of the same case."""

    @pytest.mark.parametrize(("ruled", "by_rule"), [("BUY", "HOLD"), ("BUY", "SELL"), ("HOLD", "SELL")])
    @pytest.mark.parametrize(
        ("locale", "said"),
        [
            ("zh-CN", "模型的结论是 {}，按规则应为 {}"),
            ("en-US", "the model ruled {}, by rule it would have been {}"),
        ],
    )
    def test_a_person_is_asked_and_told_both(self, ruled: str, by_rule: str, locale: str, said: str) -> None:
        departs = {"action": by_rule, "confidence": 0.5}
        position = 0.15 if ruled == "BUY" else 0.0
        found = verdict({"locale": locale}, action=ruled, position_percent=position, departs=departs)
        assert found.status is ValidationStatus.ESCALATED
        assert broken(found) == ["risk.departs_from_rules"]
        assert said.format(ruled, by_rule) in found.violations[0].message

    def test_where_both_rule_alike_nobody_is(self) -> None:
        for departs in (None, {"action": "BUY", "confidence": 0.9}):
            assert verdict(departs=departs).status is ValidationStatus.APPROVED

    def test_a_grave_fact_needs_nobody_to_bring_a_model_back_to_the_rules(self) -> None:
        departs = {"action": "HOLD", "confidence": 0.5}
        found = verdict({"grave_facts": ["default"]}, departs=departs)
        assert (found.status, found.payload["action"]) == (ValidationStatus.MODIFIED, "HOLD")
        assert found.payload["position_percent"] == 0

    def test_a_grave_fact_keeps_a_person_from_approving_a_purchase(self) -> None:
        found = verdict({"grave_facts": ["default"]}, departs={"action": "SELL", "confidence": 0.5})
        assert found.status is ValidationStatus.ESCALATED
        assert found.approved_instead is not None and found.approved_instead["action"] == "HOLD"
        assert broken(found) == ["risk.grave_facts", "risk.departs_from_rules"]

    async def test_the_session_waits_for_the_person(self, database: Database, hours: Any) -> None:  # noqa: F811
        desk = self.desk(database, hours)
        with pytest.raises(SessionWaiting) as stopped:
            await desk.ask()
        assert "BUY" in stopped.value.details["reason"] and "HOLD" in stopped.value.details["reason"]
        escalation_id = UUID(stopped.value.details["escalation_id"])
        await desk.governance.escalations.reject(escalation_id, WORKSPACE, by="Li", reason="a planted text")
        result = await desk.sessions.outcome(UUID(stopped.value.details["session_id"]), WORKSPACE)
        assert (result.verdict, result.verdict_status) == (None, "failed")

    async def test_an_operator_may_say_otherwise(self, database: Database, hours: Any) -> None:  # noqa: F811
        desk = self.desk(database, hours)
        shipped = desk.governance.book.read_shipped()
        told = [each for each in shipped if each.id != "risk.departs_from_rules"]
        desk.governance.rulesets._shipped = tuple(told)
        assert (await desk.ask()).verdict["action"] == "BUY"

    def desk(self, database: Database, hours: Any) -> Desk:  # noqa: F811
        desk = Desk(database, hours)
        departs = {"action": "HOLD", "confidence": 0.5}
        desk.judge._answer = RULED | {"position_percent": 0.1, "engine": "llm", "departs": departs}
        return desk
