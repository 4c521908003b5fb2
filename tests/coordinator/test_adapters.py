"""The adapters: who is called with what, and what is dropped on the way."""

import inspect
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from moot.modules.coordinator.domain.exceptions import Abstention
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.coordinator.infrastructure.adapters.research_gateway_adapter import (
    DebateGatewayAdapter,
    JudgeGatewayAdapter,
    ResearchGatewayAdapter,
)
from moot.modules.debate.application.debate_service import DebateInput
from moot.modules.governance.container import GovernanceContainer
from moot.modules.judge.application.judge_service import JudgeInput, VerdictAbstained
from moot.modules.market_data.application.market_data import TradingState
from moot.shared.domain.errors import DecisionRejected, InvalidInput
from moot.shared.domain.facts import NewsItem
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx
from tests.fakes.clock import FixedClock
from tests.fakes.coordinator import CATALYST, FINANCIAL, MACRO, TECHNICAL, VALUATION
from tests.fakes.judge import VERDICT

AS_OF = datetime(2026, 6, 30, 20, 0, tzinfo=UTC)  # already July in Shanghai
WHEN = {"as_of": AS_OF, "locale": "en-US"}


@pytest.fixture(autouse=True)
def in_session():
    context = ExecutionContext(
        session_id="", as_of=AS_OF, locale="en-US", experts=tuple(e.value for e in ExpertType)
    )
    token = current_execution_ctx.set(context)
    yield
    current_execution_ctx.reset(token)


def sessions():
    """A session factory nobody has a use for here: what needs the database opens its own."""
    raise AssertionError("a session was opened")


class Service:
    """Any application service: remembers its arguments, answers or raises as told."""

    def __init__(self, answer) -> None:
        self._answer = answer
        self.calls: list[tuple[tuple, dict]] = []

    async def run(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class AgentResult(BaseModel):
    result: dict[str, str]
    raw_llm_output: str


def research_adapter():
    services = {e: Service({"from": e.value}) for e in ExpertType}
    services[CATALYST] = Service(AgentResult(result={"catalyst_assessment": "x"}, raw_llm_output="y"))
    container = SimpleNamespace(service=services.__getitem__)
    return ResearchGatewayAdapter(sessions, lambda _: container), services


@pytest.mark.accepts("A0-07", "A0-08", "A0-09", "A0-28", "A1S-07", "A1S-71", "W3")
@pytest.mark.parametrize(
    ("expert", "options", "arguments"),
    [
        (TECHNICAL, {}, {"ticker": "900001.DEMO", "analysis_date": date(2026, 7, 1)}),
        (TECHNICAL, None, {"ticker": "900001.DEMO", "analysis_date": date(2026, 7, 1)}),
        (
            TECHNICAL,
            {"analysis_date": "2026-02-13"},
            {"ticker": "900001.DEMO", "analysis_date": date(2026, 2, 13)},
        ),
        (FINANCIAL, {}, {"symbol": "900001.DEMO", "limit": 5}),
        (FINANCIAL, {"limit": 8}, {"symbol": "900001.DEMO", "limit": 8}),
        (VALUATION, {}, {"symbol": "900001.DEMO"}),
        (MACRO, {}, {"symbol": "900001.DEMO"}),
        (CATALYST, {}, {"symbol": "900001.DEMO"}),
    ],
)
async def test_each_expert_is_called_with_its_own_arguments(expert, options, arguments):
    """What was asked for arrives; the moment and the language of the session come along."""
    adapter, services = research_adapter()
    await adapter.run_expert(expert, "900001.DEMO", options)
    assert services[expert].calls == [((), {**arguments, **WHEN})]
    assert all(not s.calls for e, s in services.items() if e is not expert)


@pytest.mark.accepts("A0-10", "A1S-25")
async def test_every_result_is_a_dict_even_the_catalyst_detectives():
    adapter, _ = research_adapter()
    assert await adapter.run_expert(MACRO, "900001.DEMO") == {"from": "macro_intelligence"}
    catalyst = await adapter.run_expert(CATALYST, "900001.DEMO")
    assert catalyst == {"result": {"catalyst_assessment": "x"}, "raw_llm_output": "y"}


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": "5"}, {"periods": 5}])
async def test_options_the_expert_does_not_understand_are_refused(options):
    adapter, services = research_adapter()
    with pytest.raises(InvalidInput):
        await adapter.run_expert(FINANCIAL, "900001.DEMO", options)
    assert services[FINANCIAL].calls == []


@pytest.mark.accepts("A0-31")
async def test_an_experts_error_comes_through_unchanged():
    refusal = InvalidInput("no bars for 900001.DEMO up to 2026-07-01")
    container = SimpleNamespace(service=lambda _: Service(refusal))
    adapter = ResearchGatewayAdapter(sessions, lambda _: container)
    with pytest.raises(InvalidInput) as caught:
        await adapter.run_expert(TECHNICAL, "900001.DEMO")
    assert caught.value is refusal


EVIDENCE = {
    "id": "technical.current_price",
    "value": 10.0,
    "unit": "CNY",
    "source": "demo",
    "as_of": "2026-06-30T08:00:00Z",
}
RESULTS = {
    "technical_analyst": {
        "signal": "BULLISH",
        "confidence": 0.78,
        "summary_reasoning": "above all averages",
        "risk_warning": "below 9.50",
        "input": "prompt",
        "output": "raw",
        "technical_indicators": {"ma5": 1},
        "key_technical_levels": {"support": 9.5},
        "evidence": [EVIDENCE],
    },
    "financial_auditor": {
        "signal": "STRONG_BULLISH",
        "confidence": 0.6,
        "summary_reasoning": "cash covers profit",
        "risk_warning": "receivables",
        "dimension_analyses": [],
        "financial_indicators": {},
    },
    "valuation_modeler": {
        "valuation_verdict": "Undervalued",
        "confidence_score": 0.7,
        "reasoning_summary": "an opportunity",
        "risk_factors": ["margin falls.", "growth stalls."],
        "estimated_intrinsic_value_range": {},
        "valuation_indicators": {},
    },
    "macro_intelligence": {
        "macro_environment": "Favorable (有利)",
        "confidence_score": 0.55,
        "macro_summary": "money is easy",
        "key_risks": ["prices rise", "rates follow"],
        "information_sources": ["demo://x"],
        "macro_indicators": {},
    },
    "catalyst_detective": {
        "result": {
            "catalyst_assessment": "Positive (正面催化)",
            "confidence_score": 0.5,
            "catalyst_summary": "an order won",
            "negative_catalysts": [
                {"event": "lawsuit", "expected_impact": "costs", "timeframe": "近期", "probability": "低"},
                {"event": "lock-up ends", "expected_impact": "", "timeframe": "中期", "probability": "高"},
            ],
        },
        "raw_llm_output": "raw",
        "user_prompt": "prompt",
        "catalyst_context": {},
    },
}


class Outcome(BaseModel):
    direction: str = "BULLISH"


async def debate_input(results) -> DebateInput:
    service = Service(Outcome())
    adapter = DebateGatewayAdapter(sessions, lambda _: SimpleNamespace(debate_service=lambda: service))
    await adapter.run_debate("900001.DEMO", results)
    ((debate_input,), _) = service.calls[0]
    return debate_input


@pytest.mark.accepts("A1S-35", "A1S-36", "A1S-37", "A1N-21", "A1N-22", "A1N-23")
async def test_the_debate_knows_four_fields_of_each_expert_and_no_raw_data():
    asked = await debate_input(RESULTS)
    assert {name: s.model_dump() for name, s in asked.expert_summaries.items()} == {
        "technical_analyst": {
            "signal": "BULLISH",
            "confidence": 0.78,
            "reasoning": "above all averages",
            "risk_warning": "below 9.50",
        },
        "financial_auditor": {
            "signal": "STRONG_BULLISH",
            "confidence": 0.6,
            "reasoning": "cash covers profit",
            "risk_warning": "receivables",
        },
        "valuation_modeler": {
            "signal": "Undervalued",
            "confidence": 0.7,
            "reasoning": "an opportunity",
            "risk_warning": "margin falls; growth stalls",
        },
        "macro_intelligence": {
            "signal": "Favorable (有利)",
            "confidence": 0.55,
            "reasoning": "money is easy",
            "risk_warning": "prices rise; rates follow",
        },
        "catalyst_detective": {
            "signal": "Positive (正面催化)",
            "confidence": 0.5,
            "reasoning": "an order won",
            "risk_warning": "lawsuit: costs; lock-up ends",
        },
    }
    assert [item.model_dump(mode="json") for item in asked.evidence] == [EVIDENCE]
    assert (asked.symbol, asked.locale) == ("900001.DEMO", "en-US")


@pytest.mark.accepts("A1S-38")
async def test_only_successful_experts_reach_the_debate():
    succeeded = {name: RESULTS[name] for name in list(RESULTS)[:3]}
    asked = await debate_input({**succeeded, "macro_intelligence": None})
    assert set(asked.expert_summaries) == set(succeeded)


@pytest.mark.accepts("A1S-34", "A1S-39", "A1N-20")
async def test_each_debate_has_a_container_of_its_own_that_can_open_sessions_and_answers_with_a_dict():
    given = []

    def container_factory(session_factory):
        given.append(session_factory)
        return SimpleNamespace(debate_service=lambda: Service(Outcome()))

    adapter = DebateGatewayAdapter(sessions, container_factory)
    assert await adapter.run_debate("900001.DEMO", RESULTS) == {"direction": "BULLISH"}
    await adapter.run_debate("900001.DEMO", RESULTS)
    assert given == [sessions, sessions]


DEBATE = {
    "direction": "BULLISH",
    "confidence": 0.7,
    "bull_case": {
        "core_thesis": "估值低于内在价值",
        "supporting_arguments": ["secret argument"],
        "acknowledged_risks": ["secret risk"],
    },
    "bear_case": {
        "core_thesis": "行业景气度下行",
        "supporting_arguments": ["secret argument"],
        "acknowledged_strengths": ["secret strength"],
    },
    "risk_matrix": [
        {"risk": f"risk {n}", "probability": "HIGH", "impact": "LOW", "mitigation": "secret"}
        for n in (1, 2, 3)
    ],
    "key_disagreements": ["price against growth"],
    "conflict_resolution": "price wins",
    "evidence": [EVIDENCE],
    "experts": ["technical_analyst", "macro_intelligence"],
}


async def judge_input(outcome) -> JudgeInput:
    service = Service(Outcome())
    adapter = JudgeGatewayAdapter(sessions, lambda _: SimpleNamespace(judge_service=lambda: service))
    await adapter.run_verdict("900001.DEMO", outcome)
    ((judge_input,), _) = service.calls[0]
    return judge_input


@pytest.mark.accepts("A1S-31", "A1S-32", "A1N-18", "A1N-19")
async def test_the_judge_gets_the_eight_fields_and_none_of_the_details():
    asked = (await judge_input(DEBATE)).model_dump(mode="json")
    assert asked.pop("as_of") == "2026-06-30T20:00:00Z"
    shown = ("evidence", "experts_asked", "experts_heard", "locale")
    additive = {name: asked.pop(name) for name in shown}
    unknown = ("argument", "previous", "holder", "lot_size", "limit_percent")
    assert [asked.pop(name) for name in unknown] == [None] * len(unknown)
    assert asked == {
        "symbol": "900001.DEMO",
        "direction": "BULLISH",
        "confidence": 0.7,
        "bull_thesis": "估值低于内在价值",
        "bear_thesis": "行业景气度下行",
        "risk_factors": ["risk 1", "risk 2", "risk 3"],
        "key_disagreements": ["price against growth"],
        "conflict_resolution": "price wins",
    }
    assert additive == {"evidence": [EVIDENCE], "experts_asked": 5, "experts_heard": 2, "locale": "en-US"}
    assert "secret" not in str(asked) + str(additive)


class Exchange:
    """A share under special treatment on the STAR board; it counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[NewsItem]:
        return []

    async def trading_state(self, symbol: Symbol, *, as_of: datetime) -> TradingState:
        self.asked += 1
        return TradingState(
            st=True,
            suspended=False,
            days_listed=900,
            limit_percent=20.0,
            change_percent=1.5,
            at_limit_up=False,
            at_limit_down=False,
            t_plus=1,
            lot_size=200,
        )


async def test_judge_and_rules_know_what_the_exchange_allows_from_one_reading():
    exchange, service, clock = Exchange(), Service(Outcome()), FixedClock(AS_OF)
    judge = JudgeGatewayAdapter(sessions, lambda _: SimpleNamespace(judge_service=lambda: service))
    rules = GovernanceAdapter(GovernanceContainer(trail=None, clock=clock).agent, clock, exchange)
    with ExecutionContext(as_of=AS_OF).active() as context:
        with context.model_copy(update={"node": "judge"}).active():
            await judge.on_exchange(exchange).run_verdict("688981.SH", DEBATE)
        ((told,), _) = service.calls[0]
        assert (told.lot_size, told.limit_percent) == (200, 20.0)
        with pytest.raises(DecisionRejected):  # of a share under special treatment
            await rules.review("judge", VERDICT | {"symbol": "688981.SH"})
    assert exchange.asked == 1


@pytest.mark.accepts("A1S-30", "A1S-33", "A1N-17")
async def test_the_judge_is_reached_through_its_container_and_answers_with_a_dict():
    adapter = JudgeGatewayAdapter(
        sessions, lambda _: SimpleNamespace(judge_service=lambda: Service(Outcome(direction="x")))
    )
    assert await adapter.run_verdict("900001.DEMO", DEBATE) == {"direction": "x"}


async def test_an_abstention_keeps_its_words_in_every_language():
    service = Service(VerdictAbstained(heard=1, asked=5, quorum=2))
    adapter = JudgeGatewayAdapter(sessions, lambda _: SimpleNamespace(judge_service=lambda: service))
    with pytest.raises(Abstention) as caught:
        await adapter.run_verdict("900001.DEMO", DEBATE)
    assert caught.value.in_locale("en-US") != caught.value.in_locale("zh-CN")


@pytest.mark.accepts("A1N-17", "A1N-20")
@pytest.mark.parametrize("adapter", [ResearchGatewayAdapter, DebateGatewayAdapter, JudgeGatewayAdapter])
def test_adapters_are_built_from_a_session_factory_and_a_container_factory(adapter):
    assert list(inspect.signature(adapter).parameters) == ["session_factory", "container_factory"]
