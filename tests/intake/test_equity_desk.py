"""Equity steps: a session of the research graph becomes a finding, and so does whatever keeps it from an answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import (
    ExpertResultItem,
    ExpertType,
    ResearchResult,
)
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed, SessionWaiting
from moot.modules.coordinator.infrastructure.adapters.research_gateway_adapter import ResearchGatewayAdapter
from moot.modules.intake.application.intake_state import Errand
from moot.modules.intake.application.report_text import side_by_side
from moot.modules.intake.domain.question import Finding, Step
from moot.modules.intake.infrastructure.adapters.equity_desk import ResearchGraphDesk
from moot.modules.judge.application.judge_service import JudgeService
from moot.shared.domain.errors import AppError, DecisionRejected
from moot.shared.infrastructure.settings import Settings
from tests.intake.steps_desk import a_task

SYMBOL, OTHER = "900001.DEMO", "900002.DEMO"
SESSION = "00000000-0000-4000-8000-0000000000ab"


@pytest.fixture
async def desk(home, clock) -> AsyncIterator[Moot]:
    async with Moot(Settings(home=home, log_level="error"), clock=clock) as desk:
        yield desk


def equity(symbol: str | None = SYMBOL, *experts: str) -> Step:
    return Step(id="e1", type="equity", title="Research it", symbol=symbol, experts=experts)


async def research(desk: Moot, step: Step, locale: str = "en-US", **errand: str) -> Finding:
    service = desk.coordinator.research_orchestration_service()
    return await ResearchGraphDesk(service).research(step, a_task(locale=locale, errand=Errand(**errand)))


async def test_a_session_becomes_a_finding_that_names_it(desk):
    finding = await research(desk, equity())
    assert (finding.step_id, finding.status, finding.error) == ("e1", "completed", None)
    session = await desk.session(UUID(finding.session_id))
    assert (session.symbol, session.trigger_source) == (SYMBOL, "intake")
    assert len(session.selected_experts) == 5
    (cited,) = finding.citations
    assert (cited.source, cited.published_at) == (
        f"session:{finding.session_id}",
        "2026-06-30T10:00:00+00:00",
    )
    result = await desk.result(UUID(finding.session_id))
    assert result.verdict is not None
    assert finding.text.startswith(f"**{SYMBOL}** · **{result.verdict['action']}** · new position")
    assert result.verdict["reasoning"].splitlines()[0] in finding.text
    assert all(f"- {risk[:200]}" in finding.text for risk in result.verdict["risk_warnings"])
    for name in ("Bull", "Bear", "Technical analyst", "Valuation modeler", "Catalyst detective"):
        assert f"- **{name}**" in finding.text
    assert len(finding.text) < 5_000


async def test_only_the_experts_that_the_step_names_are_asked(desk):
    finding = await research(desk, equity(SYMBOL, "valuation_modeler"))
    assert "Valuation modeler" in finding.text
    assert "Technical analyst" not in finding.text
    assert list(finding.figures) == ["Symbol", "Valuation modeler"]


@pytest.mark.parametrize(("locale", "figure"), [("en-US", "PE (TTM): "), ("zh-CN", "市盈率（TTM）：")])
async def test_a_question_about_one_field_gets_its_figures_and_no_trading_call(desk, locale, figure):
    finding = await research(desk, equity(SYMBOL, "valuation_modeler"), locale)
    assert finding.text.startswith(f"**{SYMBOL}** · {figure}")
    assert finding.verdict is None
    assert not any(
        word in finding.text for word in ("**BUY", "**HOLD", "**SELL", "**买入", "**观望", "**卖出")
    )


@pytest.mark.parametrize(
    ("locale", "word"), [("zh-CN", "技术分析"), ("en-US", "Technical analyst"), ("ja-JP", "Technical")]
)
async def test_the_session_speaks_a_language_of_the_desk(desk, locale, word):
    finding = await research(desk, equity(SYMBOL, "technical_analyst"), locale)
    assert word in finding.text


async def test_two_findings_can_be_set_side_by_side(desk):
    both = [await research(desk, equity(symbol)) for symbol in (SYMBOL, OTHER)]
    head, _, verdict, confidence, position, *experts = side_by_side(
        [each.figures for each in both]
    ).splitlines()
    assert head == f"| Symbol | {SYMBOL} | {OTHER} |"
    assert [line.split(" |")[0] for line in (verdict, confidence, position)] == [
        "| Verdict",
        "| Confidence",
        "| Position",
    ]
    assert len(experts) == 5


@pytest.mark.accepts("W45")
@pytest.mark.parametrize(
    ("step", "said"),
    [
        (equity("999999.DEMO"), "999999.DEMO"),
        (equity(None), "symbol"),
        (equity(SYMBOL, "fortune_teller"), "fortune_teller"),
    ],
)
async def test_what_cannot_be_asked_is_a_failed_finding(desk, step, said):
    finding = await research(desk, step)
    assert (finding.status, finding.text, finding.usable) == ("failed", "", False)
    assert said in str(finding.error)


class Raising(ResearchOrchestrationService):
    def __init__(self, error: AppError) -> None:
        self._error = error

    async def execute(self, *_: Any, **__: Any) -> ResearchResult:
        raise self._error


def nobody_answered() -> AllExpertsFailed:
    item = ExpertResultItem(expert_type=ExpertType.TECHNICAL_ANALYST, status="failed", error="no bars")
    return AllExpertsFailed(
        ResearchResult(symbol=SYMBOL, overall_status="failed", expert_results=[item], session_id=str(SESSION))
    )


@pytest.mark.parametrize(
    ("error", "said", "session"),
    [
        (nobody_answered(), "no bars", str(SESSION)),
        (SessionWaiting(SESSION), str(SESSION), str(SESSION)),
        (DecisionRejected("the rules say no"), "the rules say no", None),
    ],
)
async def test_whatever_keeps_a_session_from_an_answer_is_a_failed_finding(error, said, session):
    finding = await ResearchGraphDesk(Raising(error)).research(equity(), a_task())
    assert (finding.status, finding.text, finding.session_id) == ("failed", "", session)
    assert said in str(finding.error)


@pytest.fixture
def hanging(monkeypatch) -> asyncio.Event:
    """The judge takes for ever, the first time; set when it is asked."""
    at_once, asked = JudgeService.run, asyncio.Event()

    async def ruling(self, judge_input):
        if not asked.is_set():
            asked.set()
            await asyncio.Event().wait()
        return await at_once(self, judge_input)

    monkeypatch.setattr(JudgeService, "run", ruling)
    return asked


async def test_a_session_that_was_broken_off_is_retried_with_what_its_experts_had_found(desk, hanging):
    under_way = asyncio.create_task(research(desk, equity(), record=SESSION))
    await hanging.wait()
    under_way.cancel()
    await asyncio.wait({under_way})
    finding = await research(desk, equity(), record=SESSION)
    again = await research(desk, equity(), record=SESSION)
    sessions = {session.status: session for session in (await desk.sessions()).items}
    assert (len(sessions), again.session_id, again.figures) == (2, finding.session_id, finding.figures)
    retried = sessions["completed"]
    assert (finding.status, finding.session_id) == ("completed", str(retried.id))
    assert retried.parent_session_id == sessions["cancelled"].id
    nodes = (await desk.session(retried.id)).nodes
    assert sum(node.reused for node in nodes) == 6, "five experts, and the debate that was held"


async def test_the_same_step_of_another_plan_is_another_session(desk):
    both = [
        await research(desk, equity(symbol, "technical_analyst"), record=SESSION)
        for symbol in (SYMBOL, OTHER)
    ]
    assert [finding.status for finding in both] == ["completed"] * 2
    assert (await desk.sessions()).total == 2


async def test_what_fails_in_its_own_time_is_not_tried_again(desk, monkeypatch):
    async def broken(*_: Any, **__: Any) -> Any:
        raise AppError("no bars")

    monkeypatch.setattr(ResearchGatewayAdapter, "run_expert", broken)
    finding = await research(desk, equity(SYMBOL, "technical_analyst"), record=SESSION)
    assert (finding.status, (await desk.sessions()).total) == ("failed", 1)


async def test_a_session_belongs_to_the_workspace_of_the_question(desk):
    finding = await research(desk, equity(SYMBOL, "technical_analyst"), workspace="fund")
    history = desk.coordinator.session_history()
    assert (await history.session(UUID(finding.session_id), "fund")).symbol == SYMBOL
