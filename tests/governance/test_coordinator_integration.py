"""The rules at work: a session asks them at every step, and its record says what they said."""

import asyncio
import io
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console

from moot.cli.research_view import show_result
from moot.desk import Moot
from moot.modules.coordinator.application.report import render_report
from moot.modules.coordinator.container import workflow_journal
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed, DecisionRejected, SessionWaiting
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.modules.coordinator.infrastructure.orchestration import graph_builder
from moot.modules.governance.application.decision_log import explain
from moot.modules.governance.application.error_handler import ErrorHandlingPolicy
from moot.modules.governance.container import GovernanceContainer, RuleBook
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.workflow import WorkflowExecution
from moot.shared.domain.errors import AppError, Forbidden, InvalidInput
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_execution_ctx
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_resume import (  # noqa: F401
    ALL,
    FOUND,
    MACRO,
    WORKSPACE,
    Process,
    closed_in_the_end,
    hours,
    question,
)
from tests.fakes.clock import PATIENCE
from tests.fakes.coordinator import FakeJudge, FakeResearch
from tests.governance.factories import rule

QUICK = ErrorHandlingPolicy(retry_delay_seconds=0.01)
VERDICT = {
    "symbol": "900001.DEMO",
    "action": "BUY",
    "position_percent": 0.35,
    "confidence": 0.8,
    "entry_strategy": "in two steps",
    "stop_loss": "below 9",
    "take_profit": "around 14",
    "time_horizon": "three months",
    "risk_warnings": ["debt", "demand"],
    "reasoning": "cheap",
    "narrative_report": "in words",
    "levels": {"entry": 10.0, "stop": 9.0, "target": 14.0},
    "engine": "rubric",
    "grounding": None,
    "warnings": [],
}


class Desk(Process):
    """A process whose sessions ask the rules: those that are shipped, and `more`."""

    def __init__(
        self,
        database: Database,
        hours,  # noqa: F811
        *more: EnhancedRule,
        research=None,
        policy=QUICK,
    ) -> None:
        trail = AuditTrail(database)
        self.governance = GovernanceContainer(
            trail=trail,
            clock=hours,
            policy=policy,
            journal=workflow_journal(trail),
            on_answer=self._go_on,
        )
        rules = [*self.governance.book.read_shipped(), *more]
        self.governance.rulesets._shipped = tuple(rules)
        policy = GovernanceAdapter(self.governance.agent, hours)
        super().__init__(database, hours, research, judge=FakeJudge(VERDICT), policy=policy, trail=trail)

    async def _go_on(self, escalation) -> None:
        await self.sessions.wake(escalation.session_id)

    async def said(self, session_id: str) -> dict[str, str]:
        """What was decided, each in one sentence."""
        records = await self.governance.decisions.of_session(UUID(session_id), WORKSPACE)
        return {record.decision_id: explain(record).in_locale("en-US") for record in records}


@pytest.mark.accepts("A3-16", "A3-37", "A3-52", "A3-53")
async def test_full_workflow_with_rule_validation(database: Database, hours):  # noqa: F811
    desk = Desk(database, hours)
    result = await desk.ask()
    assert (result.verdict_status, result.verdict["position_percent"]) == ("judged", 0.2)
    said = await desk.said(result.session_id)
    assert set(said) == {
        "research_request",
        *(f"node:{node}" for node in (*(expert.value for expert in ALL), "debate", "judge")),
        "verdict",
    }
    assert "35% → 20%" in said["verdict"]
    assert "risk.position_cap@1" in said["verdict"]
    assert (await verify(desk.trail, UUID(result.session_id))).intact
    stored = (await desk.nodes(UUID(result.session_id)))["judge"]
    assert stored.result_data["position_percent"] == 0.2
    status = await desk.governance.agent.status()
    assert status.decision_statistics.model_dump() == {
        "total": 9,
        "approved": 8,
        "modified": 1,
        "rejected": 0,
        "escalated": 0,
    }


class Flaky(FakeResearch):
    def __init__(self, *errors: Exception) -> None:
        super().__init__(dict.fromkeys(ALL, FOUND))
        self.errors, self.told = list(errors), []

    async def run_expert(self, expert_type, symbol, options=None):
        if expert_type == MACRO:
            self.told.append(current_execution_ctx.get().feedback)
            if self.errors:
                raise self.errors.pop(0)
        return await super().run_expert(expert_type, symbol, options)


@pytest.mark.accepts("A3-17", "W36")
async def test_workflow_with_error_retry_and_recovery(database: Database, hours):  # noqa: F811
    research = Flaky(TimeoutError("slow"), ConnectionResetError("gone"))
    desk = Desk(database, hours, research=research)
    result = await desk.ask()
    assert result.overall_status == "completed"
    assert (await desk.nodes(UUID(result.session_id)))["macro_intelligence"].attempts == 3
    workflow = await desk.governance.agent.monitor.context_of(result.session_id)
    assert workflow is not None
    assert [(entry.error_type, entry.action_taken) for entry in workflow.error_log] == [
        ("TimeoutError", "retry"),
        ("ConnectionResetError", "retry"),
    ]
    assert (workflow.status, workflow.failed_nodes) == ("completed", [])
    assert set(workflow.executed_nodes) == {*(expert.value for expert in ALL), "debate", "judge"}


@pytest.mark.accepts("A3-47")
async def test_each_attempt_waits_for_the_pause_of_its_number(database: Database, hours, monkeypatch):  # noqa: F811
    waited: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float, *more: Any) -> None:
        waited.append(seconds)
        await sleep(0, *more)

    desk = Desk(database, hours, research=Flaky(*[TimeoutError("slow")] * 3))
    monkeypatch.setattr(graph_builder.asyncio, "sleep", note)
    result = await desk.ask()
    assert result.overall_status == "completed"
    first = QUICK.retry_delay_seconds
    pauses = [seconds for seconds in waited if seconds >= first]
    assert pauses == [first, 2 * first, 4 * first]


@pytest.mark.accepts("A3-18")
async def test_workflow_with_feedback_to_agent(database: Database, hours):  # noqa: F811
    research = Flaky(*[TimeoutError("slow")] * 4)
    desk = Desk(database, hours, research=research)
    result = await desk.ask()
    assert (result.overall_status, len(research.told)) == ("completed", 5)
    assert research.told[:4] == [None] * 4
    told = research.told[4]
    assert (told["type"], told["node_id"], told["error"]) == ("execution_error", "macro_intelligence", "slow")
    assert told["suggestion"]


async def test_an_error_that_does_not_pass_is_not_tried_again(database: Database, hours):  # noqa: F811
    desk = Desk(database, hours, research=Flaky(AppError("no licence")))
    result = await desk.ask()
    assert result.overall_status == "partial"
    assert (await desk.nodes(UUID(result.session_id)))["macro_intelligence"].attempts == 1


async def test_a_refused_request_says_which_rule_and_what_to_do(database: Database, hours):  # noqa: F811
    no = rule(
        "payload.symbol.endsWith('.DEMO')",
        id="desk.no_demo",
        name="No demo",
        decision_types=("research_request",),
        metadata={"suggestion": "Name a real company."},
    )
    desk = Desk(database, hours, no)
    with pytest.raises(DecisionRejected) as refused:
        await desk.ask()
    assert refused.value.details["suggestions"] == ["Name a real company."]
    assert [violation["rule_id"] for violation in refused.value.details["violations"]] == ["desk.no_demo"]
    assert desk.research.calls == []


async def test_a_refused_node_is_the_only_one_that_does_not_run(database: Database, hours):  # noqa: F811
    no = rule("payload.node == 'macro_intelligence'", id="desk.no_macro", decision_types=("node",))
    result = await Desk(database, hours, no).ask()
    assert (result.overall_status, result.verdict_status) == ("partial", "judged")
    (failed,) = [item for item in result.expert_results.values() if item.status == "failed"]
    assert "desk.no_macro" in (failed.error or "")


async def test_a_refused_verdict_is_no_verdict_and_never_another_one(database: Database, hours):  # noqa: F811
    no = rule("payload.action == 'BUY'", id="desk.no_buy", decision_types=("verdict",))
    result = await Desk(database, hours, no).ask()
    assert (result.verdict, result.verdict_status) == (None, "failed")
    assert "desk.no_buy" in (result.reason or "")


class TestAPersonIsAsked:
    asks = rule(
        "payload.position_percent > 0.1", id="desk.asks", decision_types=("verdict",), requires_human=True
    )

    async def waiting(self, desk: Desk) -> tuple[UUID, UUID]:
        with pytest.raises(SessionWaiting) as stopped:
            await desk.ask()
        details = stopped.value.details
        return UUID(details["session_id"]), UUID(details["escalation_id"])

    async def test_and_the_session_goes_on_when_they_approve(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours, self.asks)
        session_id, escalation_id = await self.waiting(desk)
        (open_,) = (await desk.governance.escalations.list_waiting(WORKSPACE)).items
        assert (open_.id, open_.session_id) == (escalation_id, session_id)
        await desk.governance.escalations.approve(escalation_id, WORKSPACE, by="Li", reason="small fund")
        result = await desk.sessions.outcome(session_id, WORKSPACE)
        assert (result.verdict_status, result.verdict["position_percent"]) == ("judged", 0.2)
        assert "Li said: small fund" in result.verdict["warnings"][-1]
        assert (await verify(desk.trail, session_id)).intact
        made = await desk.governance.decisions.of_session(session_id, WORKSPACE)
        [told] = [record for record in made if record.result.notes == ("Li said: small fund",)]
        assert explain(told).in_locale("en-US").endswith("; Li said: small fund")

    async def test_and_whoever_looks_meanwhile_is_told_why_and_whom_to_ask(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours, self.asks)
        with pytest.raises(SessionWaiting) as stopped:
            await desk.ask()
        session_id, escalation_id = (UUID(stopped.value.details[n]) for n in ("session_id", "escalation_id"))
        for again in (desk.sessions.outcome, desk.sessions.resume):
            with pytest.raises(SessionWaiting) as waits:
                await again(session_id, WORKSPACE)
            for seen in (stopped.value, waits.value):
                assert seen.details["escalation_id"] == str(escalation_id)
                assert "payload.position_percent > 0.1" in seen.details["reason"]
                assert f"moot escalations approve {escalation_id}" in seen.in_locale("en-US")
                assert seen.details["reason"] in seen.in_locale("en-US")

    async def test_and_what_they_write_instead_is_what_is_done(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours, self.asks)
        session_id, escalation_id = await self.waiting(desk)
        await desk.governance.escalations.edit(
            escalation_id, WORKSPACE, by="Li", payload={**VERDICT, "position_percent": 0.05}, reason="careful"
        )
        result = await desk.sessions.outcome(session_id, WORKSPACE)
        assert result.verdict["position_percent"] == 0.05

    async def test_and_their_no_is_a_no(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours, self.asks)
        session_id, escalation_id = await self.waiting(desk)
        await desk.governance.escalations.reject(escalation_id, WORKSPACE, by="Li", reason="not now")
        result = await desk.sessions.outcome(session_id, WORKSPACE)
        assert (result.verdict, result.verdict_status) == (None, "failed")
        assert "Li said: not now" in (result.reason or "")


def test_the_book_decides_without_a_database_or_a_desk():
    book = RuleBook()
    decide = book.validator(book.repository(book.read_shipped("presets"))).validate
    asked: dict[str, Any] = {
        "decision_id": "1",
        "decision_type": "create_node",
        "payload": {"description": "x"},
    }
    assert decide(DecisionRequest(**asked, context={"iteration_count": 11})).terminates


async def test_a_rule_that_terminates_ends_the_whole_session(database: Database, hours):  # noqa: F811
    ends = rule("payload.node == 'debate'", id="desk.ends", decision_types=("node",), action="terminate")
    desk = Desk(database, hours, ends)
    with pytest.raises(DecisionRejected) as stopped:
        await desk.ask()
    session_id = UUID(stopped.value.details["session_id"])
    session = await desk.session(session_id)
    assert (session.status, session.verdict_status) == ("failed", "failed")
    assert "desk.ends" in (session.reason or "")
    assert desk.debate.calls == desk.judge.calls == []
    assert (await verify(desk.trail, session_id)).intact


async def test_what_the_rules_changed_is_said_beside_the_verdict(database: Database, hours):  # noqa: F811
    verdict = (await Desk(database, hours).ask()).verdict
    assert verdict["warnings"] == [
        "Changed by the desk's rules: position 35% → 20%: Position cap (risk.position_cap@1: "
        "payload.position_percent > 0.2). A single share may take 20 % of the capital at most, "
        "so the position was lowered to 20 %."
    ]
    assert verdict["entry_strategy"] == (
        "Build the position in parts, up to 20% of capital. Reference price CNY 10.00."
    )
    assert (verdict["stop_loss"], verdict["reasoning"]) == (VERDICT["stop_loss"], VERDICT["reasoning"])


async def test_a_purchase_that_the_rules_turn_into_a_hold_tells_no_entry_any_more(database, hours):  # noqa: F811
    hold = rule(
        "payload.action == 'BUY'",
        id="desk.no_purchases",
        name="No purchases",
        decision_types=("verdict",),
        action="suggest",
        corrector={"kind": "set", "path": "payload.action", "value": "HOLD"},
        metadata={"suggestion": {"zh-CN": "本周不买入。", "en-US": "Nothing is bought this week."}},
    )
    result = (await Desk(database, hours, hold).ask()).model_copy(
        update={
            "expert_results": {},
            "debate_outcome": None,
        }  # what is written about these is their own affair
    )
    verdict = result.verdict
    assert (verdict["action"], verdict["position_percent"]) == ("HOLD", 0)
    assert "action BUY → HOLD: No purchases (desk.no_purchases@1" in verdict["warnings"][0]
    assert verdict["warnings"][0].endswith("Nothing is bought this week.")
    assert "Open nothing new and keep what is held." in verdict["entry_strategy"]
    report = render_report(result)
    console = Console(file=io.StringIO(), width=100)
    show_result(console, result, Path("report.md"), Path("moot.log"))
    shown = console.file.getvalue()
    for text in (report, shown):
        assert "HOLD" in text
        assert "BUY → HOLD" in text
        assert "Build the position" not in text, "the entry no longer stands"
        assert "35%" not in text.replace("35% →", "")


async def test_a_session_whose_model_departs_waits_for_a_person(database: Database, hours):  # noqa: F811
    desk = departing(database, hours)
    with pytest.raises(SessionWaiting) as stopped:
        await desk.ask()
    assert "BUY" in stopped.value.details["reason"] and "HOLD" in stopped.value.details["reason"]
    escalation_id = UUID(stopped.value.details["escalation_id"])
    await desk.governance.escalations.reject(escalation_id, WORKSPACE, by="Li", reason="a planted text")
    result = await desk.sessions.outcome(UUID(stopped.value.details["session_id"]), WORKSPACE)
    assert (result.verdict, result.verdict_status) == (None, "failed")


async def test_an_operator_may_trust_a_model_further(database: Database, hours):  # noqa: F811
    desk = departing(database, hours)
    instead = {"decision_types": ("verdict",), "metadata": {"replaces": "risk.departs_from_rules"}}
    own = rule("payload.confidence < 0.1", id="house.trust", **instead)
    desk.governance.rulesets._shipped = (*desk.governance.book.read_shipped("default", [own]), own)
    assert (await desk.ask()).verdict["action"] == "BUY"


def departing(database: Database, hours) -> Desk:  # noqa: F811
    desk = Desk(database, hours)
    departs = {"action": "HOLD", "confidence": 0.5}
    desk.judge._answer = VERDICT | {"position_percent": 0.1, "engine": "llm", "departs": departs}
    return desk


async def test_whoever_asked_for_a_session_cannot_approve_what_it_waits_for(database: Database, hours):  # noqa: F811
    desk = Desk(database, hours, TestAPersonIsAsked.asks)
    with pytest.raises(SessionWaiting) as stopped:
        await desk.service.execute(question(), requested_by="Li")
    waiting, escalation_id = desk.governance.escalations, UUID(stopped.value.details["escalation_id"])
    with pytest.raises(Forbidden):
        await waiting.approve(escalation_id, WORKSPACE, by="Li", reason="mine")
    await waiting.approve(escalation_id, WORKSPACE, by="Wu", reason="looked at it")
    result = await desk.sessions.outcome(UUID(stopped.value.details["session_id"]), WORKSPACE)
    assert result.verdict_status == "judged"


def given_to(workflow: WorkflowExecution) -> dict[str, set[str]]:
    return {node: set(inputs) for node, inputs in workflow.node_inputs.items()}


EVERYBODY = [*(expert.value for expert in ALL), "debate", "judge"]


class TestTheMonitorKnows:
    async def test_what_each_node_was_given_and_came_to(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours)
        result = await desk.ask(options={"technical_analyst": {"analysis_date": "2024-01-02"}})
        workflow = desk.governance.agent.monitor.get_context(result.session_id)
        assert given_to(workflow) == {
            **{expert.value: {"symbol", "options"} for expert in ALL},
            "debate": {"symbol", "results"},
            "judge": {"symbol", "debate_outcome"},
        }
        assert workflow.node_inputs["technical_analyst"]["options"] == {"analysis_date": "2024-01-02"}
        assert workflow.node_inputs["debate"]["results"] == dict.fromkeys(EVERYBODY[:5], FOUND)
        assert workflow.node_outputs["macro_intelligence"] == FOUND
        assert workflow.node_outputs["judge"]["position_percent"] == 0.2
        elsewhere = await Desk(database, hours).governance.agent.monitor.context_of(result.session_id)
        assert {**elsewhere.node_outputs, "debate": ...} == {**workflow.node_outputs, "debate": ...}

    async def test_nodes_that_a_resumed_session_does_not_run_again(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours, TestAPersonIsAsked.asks)
        session_id, escalation_id = await TestAPersonIsAsked().waiting(desk)
        after = Desk(database, hours, TestAPersonIsAsked.asks)
        await after.governance.escalations.approve(escalation_id, WORKSPACE, by="Li", reason="small fund")
        await after.sessions.outcome(session_id, WORKSPACE)
        assert after.research.calls == []
        workflow = after.governance.agent.monitor.get_context(str(session_id))
        assert (set(workflow.executed_nodes), workflow.pending_nodes) == (set(EVERYBODY), [])
        assert set(workflow.node_outputs) == set(EVERYBODY)

    async def test_nodes_that_a_retried_session_reuses(self, database: Database, hours):  # noqa: F811
        research = Flaky(AppError("no licence"))
        desk = Desk(database, hours, research=research)
        first = await desk.ask()
        begun = len(research.calls)
        second = await desk.service.retry(UUID(first.session_id))
        assert [call[0] for call in research.calls[begun:]] == [MACRO]
        workflow = desk.governance.agent.monitor.get_context(second.session_id)
        assert set(workflow.executed_nodes) == set(EVERYBODY)
        assert workflow.node_outputs["technical_analyst"] == FOUND
        assert workflow.metrics.total_nodes == 7

    async def test_that_none_succeeded_and_the_session_has_failed_and_waits_for_nobody(
        self,
        database: Database,
        hours,  # noqa: F811
    ):
        desk = Desk(database, hours, research=FakeResearch(dict.fromkeys(ALL, AppError("no licence"))))
        with pytest.raises(AllExpertsFailed) as failed:
            await desk.ask()
        workflow = desk.governance.agent.monitor.get_context(failed.value.details["session_id"])
        assert (workflow.consecutive_failures, set(workflow.skipped_nodes)) == (5, {"debate", "judge"})
        assert (await desk.governance.escalations.list_waiting(WORKSPACE)).items == []

    @pytest.mark.accepts("A3-49")
    async def test_how_many_run_now_in_whose_workspace(self, database: Database, hours):  # noqa: F811
        slow = Slow()
        desk = Desk(database, hours, research=slow)
        asking = [asyncio.create_task(desk.ask(MACRO)) for _ in range(3)]
        await asyncio.wait_for(slow.three.wait(), PATIENCE)
        agent = desk.governance.agent
        assert (await agent.status(WORKSPACE)).active_workflows == 3
        assert (await agent.status("theirs")).active_workflows == 0
        slow.go.set()
        ids = [UUID((await each).session_id) for each in asking]
        assert (await agent.status(WORKSPACE)).active_workflows == 0
        asked = [record for i in ids for record in await desk.governance.decisions.of_session(i, WORKSPACE)]
        running = [each.context["running"] for each in asked if each.decision_type == "research_request"]
        assert sorted(running) == [0, 1, 2]


class Slow(FakeResearch):
    def __init__(self) -> None:
        super().__init__(dict.fromkeys(ALL, FOUND))
        self.three, self.go = asyncio.Event(), asyncio.Event()

    async def run_expert(self, expert_type, symbol, options=None):
        found = await super().run_expert(expert_type, symbol, options)
        if len(self.calls) == 3:
            self.three.set()
        await self.go.wait()
        return found


class TestWhatFollowsAnError:
    async def test_one_that_no_retry_mends_is_put_before_a_person(self, database: Database, hours):  # noqa: F811
        desk = Desk(database, hours, research=Flaky(PermissionError("the key may not read macro data")))
        told: list[Any] = []
        result = await desk.service.execute(question(), watch=told.append)
        assert (result.overall_status, result.verdict_status) == ("partial", "judged")
        (open_,) = (await desk.governance.escalations.list_waiting(WORKSPACE)).items
        assert (str(open_.session_id), open_.why) == (result.session_id, ["the key may not read macro data"])
        assert open_.payload == {"node": "macro_intelligence", "symbol": "900001.DEMO", "options": {}}
        (event,) = [
            event.data
            for event in told
            if event.type == "decision" and event.data["decision"] == "error:macro_intelligence"
        ]
        assert (event["status"], event["escalation_id"]) == ("escalated", str(open_.id))
        assert (await verify(desk.trail, UUID(result.session_id))).intact
        await desk.governance.escalations.approve(open_.id, WORKSPACE, by="Li", reason="has the right now")
        again = await desk.service.retry(UUID(result.session_id))
        assert again.overall_status == "completed"

    async def test_an_optional_expert_is_left_out_and_told_so(self, database: Database, hours):  # noqa: F811
        policy = ErrorHandlingPolicy(skippable_node_types=("macro_intelligence", "judge"))
        desk = Desk(database, hours, research=Flaky(AppError("no licence")), policy=policy)
        result = await desk.ask()
        assert (result.overall_status, result.verdict_status) == ("completed", "judged")
        assert (await desk.nodes(UUID(result.session_id)))["macro_intelligence"].status == "skipped"
        (left_out,) = [item for item in result.expert_results.values() if item.status == "failed"]
        assert (left_out.expert_type, "optional" in left_out.error) == (MACRO, True)
        assert set(desk.debate.calls[0][1]) == {*EVERYBODY[:5]} - {"macro_intelligence"}
        later = await desk.sessions.outcome(UUID(result.session_id), WORKSPACE)
        assert later.expert_results == result.expert_results
        workflow = desk.governance.agent.monitor.get_context(result.session_id)
        assert (workflow.skipped_nodes, workflow.failed_nodes) == (["macro_intelligence"], [])


def test_which_nodes_are_optional_is_a_setting(home):
    desk = Moot(Settings(home=home, optional_nodes="debate, macro_intelligence"))
    policy = desk.governance.agent.error_handler.policy
    assert policy.skippable_node_types == ("debate", "macro_intelligence")
    named = r"MOOT_OPTIONAL_NODES: 'debat' is not known. Did you mean debate\? Allowed: technical_analyst, .*judge"
    with pytest.raises(InvalidInput, match=named):
        Moot(Settings(home=home, optional_nodes="debat"))
