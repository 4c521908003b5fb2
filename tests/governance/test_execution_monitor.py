"""Workflows under watch: the five lists, the errors, the events, and what stays in memory."""

from collections import Counter
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from moot.modules.governance.application import execution_monitor
from moot.modules.governance.application.error_handler import (
    ErrorHandler,
    ErrorHandlingAction,
    ErrorHandlingPolicy,
)
from moot.modules.governance.application.execution_monitor import (
    MOST_KEPT,
    ErrorEntry,
    ExecutionContext,
    ExecutionMonitor,
    WorkflowExecution,
)
from moot.shared.domain.clock import SystemClock
from moot.shared.infrastructure.execution_context import ExecutionContext as SessionContext
from moot.shared.infrastructure.execution_context import Tally
from tests.fakes.clock import HandClock
from tests.governance.factories import NOON

W = "w-1"


class FakeJournal:
    def __init__(self, *recorded: WorkflowExecution) -> None:
        self._recorded = {workflow.workflow_id: workflow for workflow in recorded}
        self.asked: list[str] = []

    async def load(self, workflow_id: str) -> WorkflowExecution | None:
        self.asked.append(workflow_id)
        return self._recorded.get(workflow_id)


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOON)


def watching(clock: HandClock, *, policy: ErrorHandlingPolicy | None = None, **more: Any) -> ExecutionMonitor:
    return ExecutionMonitor(ErrorHandler(policy or ErrorHandlingPolicy()), clock, **more)


async def started(monitor: ExecutionMonitor, *nodes: str, workflow_id: str = W) -> WorkflowExecution:
    """A workflow whose nodes all run."""
    await monitor.on_workflow_start(workflow_id, nodes)
    for node in nodes:
        await monitor.on_node_start(workflow_id, node, {})
    return known(monitor, workflow_id)


def known(monitor: ExecutionMonitor, workflow_id: str = W) -> WorkflowExecution:
    workflow = monitor.get_context(workflow_id)
    assert workflow is not None
    return workflow


def places(workflow: WorkflowExecution) -> dict[str, list[str]]:
    """The lists that are not empty."""
    names = ("pending", "running", "executed", "failed", "skipped")
    lists = {name: getattr(workflow, f"{name}_nodes") for name in names}
    return {name: nodes for name, nodes in lists.items() if nodes}


class TestTheLifeOfANode:
    @pytest.mark.accepts("A3-42", "A3-38")
    async def test_every_node_waits_when_its_workflow_starts(self, clock: HandClock) -> None:
        monitor = watching(clock)
        await monitor.on_workflow_start(W, ["a", "b", "a"])
        workflow = known(monitor)
        assert isinstance(workflow, ExecutionContext)
        assert (workflow.workflow_id, workflow.started_at, workflow.status) == (W, NOON, "running")
        assert places(workflow) == {"pending": ["a", "b"]}
        assert workflow.metrics.total_nodes == 2

    @pytest.mark.accepts("A3-09", "A3-41")
    async def test_on_node_start_should_update_context(self, clock: HandClock) -> None:
        monitor = watching(clock)
        await monitor.on_workflow_start(W, ["a", "b"])
        await monitor.on_node_start(W, "a", {"symbol": "900001.DEMO"})
        assert places(known(monitor)) == {"pending": ["b"], "running": ["a"]}
        assert known(monitor).node_inputs == {"a": {"symbol": "900001.DEMO"}}

    @pytest.mark.accepts("A3-10", "A3-41")
    async def test_on_node_complete_should_record_output(self, clock: HandClock) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        await monitor.on_node_complete(W, "a", {"signal": "BULLISH"})
        assert places(workflow) == {"executed": ["a"]}
        assert workflow.node_outputs == {"a": {"signal": "BULLISH"}}
        assert workflow.metrics.completed_nodes == 1

    @pytest.mark.accepts("A3-11", "A3-39", "A3-44")
    async def test_on_node_error_should_trigger_error_handler(self, clock: HandClock) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        clock.move(3)
        assert await monitor.on_node_error(W, "a", ConnectionResetError("gone")) is ErrorHandlingAction.RETRY
        assert workflow.error_log == [
            ErrorEntry(
                node_id="a",
                error_type="ConnectionResetError",
                error_message="gone",
                timestamp=NOON + timedelta(seconds=3),
                attempt=1,
                action_taken=ErrorHandlingAction.RETRY,
            )
        ]

    @pytest.mark.accepts("W36")
    async def test_a_node_that_tries_again_is_running_and_not_failed(self, clock: HandClock) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        await monitor.on_node_error(W, "a", TimeoutError())
        await monitor.on_node_error(W, "a", TimeoutError())
        assert places(workflow) == {"running": ["a"]}
        assert workflow.metrics.failed_nodes == 0
        assert [entry.attempt for entry in workflow.error_log] == [1, 2]

    @pytest.mark.accepts("W36")
    async def test_an_optional_node_is_skipped_and_not_failed(self, clock: HandClock) -> None:
        monitor = watching(clock, policy=ErrorHandlingPolicy(skippable_node_types=("extra",)))
        workflow = await started(monitor, "a", "b")
        action = await monitor.on_node_error(W, "a", RuntimeError("no"), node_type="extra")
        assert action is ErrorHandlingAction.SKIP
        known(monitor).place("b", "skipped")
        assert places(workflow) == {"skipped": ["a", "b"]}
        assert workflow.metrics.failed_nodes == 0
        assert len(workflow.error_log) == 1

    @pytest.mark.accepts("A3-41")
    @pytest.mark.parametrize(
        ("error", "action"),
        [(RuntimeError("no"), ErrorHandlingAction.ABORT), (PermissionError(), ErrorHandlingAction.ESCALATE)],
    )
    async def test_a_node_that_is_given_up_has_failed(
        self, clock: HandClock, error: Exception, action: ErrorHandlingAction
    ) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        assert await monitor.on_node_error(W, "a", error) is action
        assert places(workflow) == {"failed": ["a"]}
        assert workflow.metrics.failed_nodes == 1

    async def test_a_node_that_succeeds_after_feedback_has_not_failed(self, clock: HandClock) -> None:
        monitor = watching(clock, policy=ErrorHandlingPolicy(max_retries=0))
        workflow = await started(monitor, "a")
        assert await monitor.on_node_error(W, "a", TimeoutError()) is ErrorHandlingAction.FEEDBACK
        assert places(workflow) == {"failed": ["a"]}
        await monitor.on_node_start(W, "a", {"feedback": "plan anew"})
        await monitor.on_node_complete(W, "a", {})
        assert places(workflow) == {"executed": ["a"]}
        assert (workflow.metrics.completed_nodes, workflow.metrics.failed_nodes) == (1, 0)

    async def test_a_success_ends_the_count_of_failures(self, clock: HandClock) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        await monitor.on_node_error(W, "a", TimeoutError())
        await monitor.on_node_complete(W, "a", {})
        await monitor.on_node_error(W, "a", TimeoutError())
        assert [entry.attempt for entry in workflow.error_log] == [1, 1]


class TestTheEnd:
    @pytest.mark.parametrize(
        ("failing", "status"), [([], "completed"), (["a"], "partial"), (["a", "b"], "failed")]
    )
    async def test_a_workflow_ends_as_its_nodes_did(
        self, clock: HandClock, failing: list[str], status: str
    ) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a", "b")
        for node in ("a", "b"):
            if node in failing:
                await monitor.on_node_error(W, node, RuntimeError("no"))
            else:
                await monitor.on_node_complete(W, node, {})
        await monitor.on_workflow_complete(W)
        assert workflow.status == status

    async def test_a_node_broken_off_by_the_end_has_yet_to_run(self, clock: HandClock) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        await monitor.on_workflow_complete(W)
        assert (workflow.status, places(workflow)) == ("completed", {"pending": ["a"]})

    async def test_time_stops_at_the_end(self, clock: HandClock) -> None:
        monitor = watching(clock)
        await started(monitor, "a")
        clock.move(2)
        assert known(monitor).metrics.total_time_ms == 2_000
        await monitor.on_workflow_complete(W)
        clock.move(5)
        assert known(monitor).metrics.total_time_ms == 2_000

    async def test_after_the_end_nothing_is_tried_again_or_changed(self, clock: HandClock) -> None:
        monitor = watching(clock)
        workflow = await started(monitor, "a")
        await monitor.on_workflow_complete(W)
        assert await monitor.on_node_error(W, "a", TimeoutError()) is ErrorHandlingAction.ABORT
        await monitor.on_node_complete(W, "a", {"late": True})
        assert (workflow.error_log, workflow.node_outputs) == ([], {})

    async def test_the_next_run_of_a_workflow_has_all_its_retries(self, clock: HandClock) -> None:
        monitor = watching(clock, policy=ErrorHandlingPolicy(max_retries=1))
        for _ in range(2):
            await started(monitor, "a")
            action = await monitor.on_node_error(W, "a", TimeoutError())
            assert action is ErrorHandlingAction.RETRY
            await monitor.on_workflow_complete(W)


class TestUnknownWorkflows:
    @pytest.mark.accepts("A3-43")
    async def test_there_is_no_context_and_no_progress(self, clock: HandClock) -> None:
        monitor = watching(clock)
        assert monitor.get_context("nobody") is None
        assert monitor.get_progress("nobody") is None
        assert await monitor.context_of("nobody") is None

    async def test_an_error_in_one_is_the_end_and_nothing_else_is_kept(self, clock: HandClock) -> None:
        monitor = watching(clock)
        assert await monitor.on_node_error("nobody", "a", TimeoutError()) is ErrorHandlingAction.ABORT
        await monitor.on_node_start("nobody", "a", {})
        await monitor.on_node_complete("nobody", "a", {})
        await monitor.on_workflow_complete("nobody")
        monitor.set_usage("nobody", 10, 0.1)
        assert monitor.get_all_workflows() == []


class TestUsage:
    @pytest.mark.accepts("A3-40", "W36")
    async def test_tokens_and_cost_are_those_counted_last_and_stay_when_it_has_ended(
        self, clock: HandClock
    ) -> None:
        monitor = watching(clock)
        await started(monitor, "a")
        monitor.set_usage(W, 100, 0.5)
        monitor.set_usage(W, 150, 0.75)
        await monitor.on_workflow_complete(W)
        monitor.set_usage(W, 160, 0.85)
        assert (known(monitor).metrics.total_tokens, known(monitor).metrics.total_cost) == (150, 0.75)


class TestProgress:
    async def test_whatever_is_over_counts(self, clock: HandClock) -> None:
        monitor = watching(clock)
        await monitor.on_workflow_start(W, ["a", "b", "c", "d", "e", "f"])
        for node in ("a", "b", "c", "d"):
            await monitor.on_node_start(W, node, {})
        await monitor.on_node_complete(W, "a", {})
        await monitor.on_node_error(W, "b", RuntimeError("no"))
        known(monitor).place("e", "skipped")
        await monitor.on_node_error(W, "c", TimeoutError())
        assert monitor.get_progress(W) == {
            "total": 6,
            "completed": 1,
            "running": 2,
            "pending": 1,
            "failed": 1,
            "skipped": 1,
            "percentage": 50.0,
        }

    async def test_a_workflow_without_nodes_is_nowhere(self, clock: HandClock) -> None:
        monitor = watching(clock)
        await monitor.on_workflow_start(W, [])
        progress = monitor.get_progress(W)
        assert progress is not None
        assert (progress["total"], progress["percentage"]) == (0, 0.0)


class TestMemory:
    @pytest.mark.accepts("W36")
    async def test_only_so_many_that_have_ended_are_kept(
        self, clock: HandClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(execution_monitor, "MOST_KEPT", 2)
        monitor = watching(clock)
        await started(monitor, "a", workflow_id="running")
        for n in range(5):
            await started(monitor, "a", workflow_id=f"w-{n}")
            await monitor.on_node_error(f"w-{n}", "a", TimeoutError())
            await monitor.on_workflow_complete(f"w-{n}")
        kept = [workflow.workflow_id for workflow in monitor.get_all_workflows()]
        assert kept == ["running", "w-3", "w-4"]
        assert monitor.count_active() == 1

    async def test_the_journal_answers_what_memory_no_longer_has(self, clock: HandClock) -> None:
        recorded = WorkflowExecution("old", NOON, executed_nodes=["a"], status="completed")
        journal = FakeJournal(recorded)
        monitor = watching(clock, journal=journal)
        workflow = await started(monitor, "a")
        assert await monitor.context_of("old") is recorded
        assert await monitor.context_of(W) is workflow
        assert await monitor.context_of("nobody") is None
        assert journal.asked == ["old", "nobody"]

    async def test_a_workflow_that_starts_again_begins_anew(self, clock: HandClock) -> None:
        monitor = watching(clock)
        await started(monitor, "a")
        await monitor.on_node_error(W, "a", TimeoutError())
        await monitor.on_workflow_complete(W)
        await monitor.on_workflow_start(W, ["b"])
        assert places(known(monitor)) == {"pending": ["b"]}
        assert (known(monitor).error_log, monitor.count_active()) == ([], 1)

    async def test_ten_thousand_workflows_leave_no_more_behind_than_are_kept(self) -> None:
        handler = ErrorHandler(ErrorHandlingPolicy())
        monitor = ExecutionMonitor(handler, SystemClock())
        for n in range(10_000):
            await started(monitor, "a", workflow_id=f"w-{n}")
            await monitor.on_node_error(f"w-{n}", "a", TimeoutError())
            await monitor.on_workflow_complete(f"w-{n}")
        assert len(monitor.get_all_workflows()) == MOST_KEPT
        assert sum(handler.failures_of(f"w-{n}", "a") for n in range(10_000)) == 0


class TestFacts:
    async def test_failures_in_a_row_end_with_a_success_and_count_each_node_once(
        self, clock: HandClock
    ) -> None:
        monitor = watching(clock, policy=ErrorHandlingPolicy(max_retries=0))
        workflow = await started(monitor, "a", "b", "c", "d")
        await monitor.on_node_error(W, "a", TimeoutError())
        await monitor.on_node_error(W, "a", TimeoutError())
        await monitor.on_node_error(W, "b", RuntimeError("no"))
        assert workflow.consecutive_failures == 2
        await monitor.on_node_complete(W, "c", {})
        await monitor.on_node_error(W, "d", RuntimeError("no"))
        assert workflow.consecutive_failures == 1

    async def test_rules_are_told_of_what_is_under_way_and_of_nothing_where_nothing_is(
        self, clock: HandClock
    ) -> None:
        monitor = watching(clock)
        nothing = {
            "iteration_count": 0,
            "token_used": 0,
            "cost": 0.0,
            "execution_time": 0.0,
            "consecutive_failures": 0,
            "running": 0,
        }
        assert monitor.facts() == nothing
        with SessionContext(workspace="theirs", session_id="other").active():
            await started(monitor, "a", workflow_id="other")
        spent = Tally(tokens=1200, cost=0.5, attempts=Counter(a=2, b=1))
        with SessionContext(workspace="ours", session_id=W, tally=spent).active():
            await started(monitor, "a", "b")
            await monitor.on_node_error(W, "a", RuntimeError("no"))
            clock.move(3)
            assert monitor.facts() == {
                "iteration_count": 2,
                "token_used": 1200,
                "cost": 0.5,
                "execution_time": 3.0,
                "consecutive_failures": 1,
                "running": 1,
            }
        assert (monitor.count_active(), monitor.count_active("ours"), monitor.count_active("no")) == (2, 1, 0)

    async def test_what_follows_an_error_comes_with_what_it_takes(self, clock: HandClock) -> None:
        monitor = watching(clock, policy=ErrorHandlingPolicy(max_retries=1))
        await started(monitor, "a", "b")
        await monitor.on_node_complete(W, "b", {"signal": "BULLISH"})
        again = await monitor.react(W, "a", TimeoutError("slow"))
        assert (again.action, again.delay, again.feedback) == (ErrorHandlingAction.RETRY, 1.0, None)
        told = await monitor.react(W, "a", TimeoutError("slow"))
        assert (told.action, told.delay) == (ErrorHandlingAction.FEEDBACK, 0.0)
        assert told.feedback is not None
        assert told.feedback["context"] == {
            "executed_nodes": ["b"],
            "current_outputs": {"b": {"signal": "BULLISH"}},
        }
        assert await monitor.react(W, "a", PermissionError()) == (ErrorHandlingAction.FEEDBACK, 0.0, ANY)
        assert await monitor.react("nobody", "a", TimeoutError()) == (ErrorHandlingAction.ABORT, 0.0, None)
