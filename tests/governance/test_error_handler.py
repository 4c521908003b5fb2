"""What follows an error: the order of the five actions, the pauses, and what an agent is told."""

import math
from dataclasses import fields
from typing import Any

import aiohttp
import httpx
import pytest
import sqlalchemy.exc

from moot.modules.coordinator.domain.exceptions import NodeTimeout
from moot.modules.governance.application.circuit_breaker import CircuitBreakerOpenError
from moot.modules.governance.application.error_handler import (
    ErrorHandler,
    ErrorHandlingAction,
    ErrorHandlingPolicy,
)
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.workflow import ErrorEntry, ExecutionMetrics, WorkflowExecution
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded, ModelTrouble
from moot.shared.domain.errors import (
    AppError,
    ErrorKind,
    Forbidden,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UpstreamFailed,
)
from moot.shared.domain.messages import LOCALES
from moot.shared.infrastructure.redaction import HIDDEN
from tests.governance.factories import NOON

RETRY, SKIP, FEEDBACK, ESCALATE, ABORT = ErrorHandlingAction


def handler(**changes: Any) -> ErrorHandler:
    return ErrorHandler(ErrorHandlingPolicy(**changes))


def workflow(workflow_id: str = "w-1", **changes: Any) -> WorkflowExecution:
    return WorkflowExecution(workflow_id, NOON, **changes)


def actions(of: ErrorHandler, *errors: Exception, node_type: str = "expert") -> list[ErrorHandlingAction]:
    """What follows when one node fails with these, one after the other."""
    return [of.determine_action("n", node_type, error, workflow()) for error in errors]


class TestTheOrder:
    @pytest.mark.accepts("A3-12")
    def test_should_retry_on_timeout_error(self) -> None:
        assert actions(handler(), TimeoutError()) == [RETRY]

    @pytest.mark.accepts("A3-13")
    def test_should_skip_optional_node(self) -> None:
        skipping = handler(skippable_node_types=["optional"])
        assert actions(skipping, RuntimeError("no"), node_type="optional") == [SKIP]
        assert actions(handler(), RuntimeError("no"), node_type="optional") == [ABORT]

    @pytest.mark.accepts("A3-14", "A3-46")
    def test_should_feedback_after_max_retries(self) -> None:
        assert actions(handler(), *[TimeoutError()] * 5) == [RETRY, RETRY, RETRY, FEEDBACK, FEEDBACK]

    @pytest.mark.accepts("A3-46")
    def test_an_error_that_no_retry_changes_goes_to_the_agent_after_enough_attempts(self) -> None:
        errors = [TimeoutError(), RuntimeError("no")]
        assert actions(handler(), *errors) == [RETRY, ABORT]
        assert actions(handler(), TimeoutError(), *errors) == [RETRY, RETRY, FEEDBACK]

    @pytest.mark.accepts("A3-46")
    def test_an_optional_node_is_retried_first_and_skipped_once_that_is_used_up(self) -> None:
        skipping = handler(skippable_node_types=["optional"])
        errors = [TimeoutError()] * 4
        assert actions(skipping, *errors, node_type="optional") == [RETRY, RETRY, RETRY, SKIP]

    @pytest.mark.accepts("A3-46")
    def test_what_is_severe_goes_to_a_person_unless_it_can_be_skipped_or_the_agent_was_due(self) -> None:
        assert actions(handler(), MemoryError()) == [ESCALATE]
        assert actions(handler(), TimeoutError(), TimeoutError(), MemoryError()) == [RETRY, RETRY, FEEDBACK]
        skipping = handler(skippable_node_types=["optional"])
        assert actions(skipping, MemoryError(), node_type="optional") == [SKIP]

    @pytest.mark.accepts("A3-46")
    def test_anything_else_is_the_end(self) -> None:
        assert actions(handler(), ZeroDivisionError()) == [ABORT]

    def test_without_retries_the_agent_hears_of_the_first_timeout(self) -> None:
        assert actions(handler(max_retries=0), TimeoutError()) == [FEEDBACK]


class TestKindsOfErrors:
    @pytest.mark.accepts("W35")
    @pytest.mark.parametrize(
        "error",
        [
            ConnectionResetError(),
            BrokenPipeError(),
            Unavailable("down"),
            TooManyRequests("later"),
            NodeTimeout("judge", 60),
            httpx.ReadTimeout("slow"),
            httpx.ConnectError("refused"),
            aiohttp.ServerDisconnectedError(),
            aiohttp.ServerTimeoutError(),
        ],
        ids=lambda error: type(error).__qualname__,
    )
    def test_a_passing_error_is_known_by_what_it_is_a_kind_of(self, error: Exception) -> None:
        assert actions(handler(), error) == [RETRY]

    @pytest.mark.accepts("W36")
    @pytest.mark.parametrize(
        "error",
        [
            PermissionError(),
            Forbidden("no"),
            Unauthenticated("who"),
            MemoryError(),
            sqlalchemy.exc.DataError("SELECT 1", {}, Exception()),
            CircuitBreakerOpenError("tushare", 60),
        ],
        ids=lambda error: type(error).__qualname__,
    )
    def test_missing_rights_and_severe_errors_go_to_a_person_at_once(self, error: Exception) -> None:
        assert actions(handler(), error) == [ESCALATE]

    def test_missing_rights_go_to_a_person_whatever_the_policy_calls_retryable(self) -> None:
        bold = handler(retryable_errors=["PermissionError", "ConnectionError"])
        assert actions(bold, PermissionError()) == [ESCALATE]
        assert actions(bold, Forbidden("no")) == [ESCALATE]

    def test_of_a_retryable_kind_what_lasts_is_not_retried(self) -> None:
        assert isinstance(BudgetExceeded("spent"), Unavailable)
        assert actions(handler(), Unavailable("down")) == [RETRY]
        assert actions(handler(), BudgetExceeded("spent")) == [ABORT]

    def test_an_error_says_itself_what_it_is_whatever_its_class_is_called(self) -> None:
        class TimeoutError(AppError):  # noqa: A001
            """Named like one that passes."""

        assert actions(handler(), TimeoutError("for good")) == [ABORT]

    def test_a_name_added_to_the_policy_is_retried(self) -> None:
        assert actions(handler(retryable_errors=["ArithmeticError"]), ZeroDivisionError()) == [RETRY]
        assert actions(handler(retryable_errors=["ArithmeticError"]), TimeoutError()) == [ABORT]


class TestCounting:
    @pytest.mark.accepts("W35")
    def test_the_same_node_of_another_workflow_starts_from_nothing(self) -> None:
        one = handler(max_retries=1)
        assert one.determine_action("n", "t", TimeoutError(), workflow("w-1")) is RETRY
        assert one.determine_action("n", "t", TimeoutError(), workflow("w-2")) is RETRY
        assert one.determine_action("m", "t", TimeoutError(), workflow("w-1")) is RETRY
        assert one.determine_action("n", "t", TimeoutError(), workflow("w-1")) is FEEDBACK

    def test_a_forgotten_workflow_starts_from_nothing_and_others_do_not(self) -> None:
        one = handler()
        for workflow_id in ("w-1", "w-2"):
            one.determine_action("n", "t", TimeoutError(), workflow(workflow_id))
        one.forget("w-1")
        assert (one.failures_of("w-1", "n"), one.failures_of("w-2", "n")) == (0, 1)

    def test_a_node_can_be_forgotten_alone(self) -> None:
        one = handler()
        for node in ("n", "m"):
            one.determine_action(node, "t", TimeoutError(), workflow())
        one.forget("w-1", "n")
        assert (one.failures_of("w-1", "n"), one.failures_of("w-1", "m")) == (0, 1)


class TestPauses:
    @pytest.mark.accepts("A3-15", "A3-47", "W35")
    def test_retry_delay_should_use_exponential_backoff(self) -> None:
        contexts = [handler().create_retry_context("n", attempt) for attempt in (1, 2, 3)]
        assert contexts == [
            {"node_id": "n", "attempt": 1, "delay_seconds": 1.0},
            {"node_id": "n", "attempt": 2, "delay_seconds": 2.0},
            {"node_id": "n", "attempt": 3, "delay_seconds": 4.0},
        ]

    def test_a_pause_stops_growing_at_the_longest(self) -> None:
        assert self.delay(attempt=9, max_delay_seconds=5) == 5.0

    @pytest.mark.parametrize(("chance", "seconds"), [(0.0, 4.0), (0.5, 4.5), (1.0, 5.0)])
    def test_jitter_only_ever_adds_and_no_more_than_its_share(self, chance: float, seconds: float) -> None:
        jittery = ErrorHandler(ErrorHandlingPolicy(jitter=0.25), random=lambda: chance)
        assert jittery.create_retry_context("n", 3)["delay_seconds"] == seconds

    def test_chance_is_real_unless_given(self) -> None:
        jittery = handler(jitter=0.5)
        delays = {jittery.create_retry_context("n", 1)["delay_seconds"] for _ in range(20)}
        assert len(delays) > 1
        assert all(1.0 <= delay <= 1.5 for delay in delays)

    @pytest.mark.parametrize(
        ("error", "seconds"),
        [
            (TooManyRequests("later", retry_after=45), 45.0),
            (TooManyRequests("later", retry_after=1), 2.0),
            (ModelTrouble("later", retry_after=7.5), 7.5),
            (ModelTrouble("later"), 2.0),
            (TooManyRequests("later", retry_after=math.inf), 2.0),
            (TooManyRequests("later", retry_after="soon"), 2.0),
            (TimeoutError(), 2.0),
        ],
    )
    def test_a_pause_that_was_asked_for_is_kept_to_when_it_is_longer(
        self, error: Exception, seconds: float
    ) -> None:
        assert self.delay(attempt=2, error=error, max_delay_seconds=5) == seconds

    @staticmethod
    def delay(attempt: int, error: Exception | None = None, **policy: Any) -> float:
        return handler(**policy).create_retry_context("n", attempt, error)["delay_seconds"]


class TestFeedback:
    @pytest.mark.accepts("A3-48", "W36")
    def test_an_agent_is_told_what_failed_what_there_is_and_what_to_try(self) -> None:
        outputs = {"a": {"rows": 3}}
        context = workflow(executed_nodes=["a"], node_outputs=outputs, locale="zh-CN")
        told = handler().create_feedback_message("b", TimeoutError("数据库连接超时"), context)
        assert told == {
            "type": "execution_error",
            "node_id": "b",
            "error": "数据库连接超时",
            "context": {"executed_nodes": ["a"], "current_outputs": {"a": {"rows": 3}}},
            "suggestion": "请考虑使用缓存数据或调整查询条件，例如缩小查询范围或缩短时间区间。",
        }

    def test_what_was_told_does_not_change_with_the_workflow(self) -> None:
        context = workflow(executed_nodes=["a"])
        told = handler().create_feedback_message("b", TimeoutError("slow"), context)
        context.place("c", "executed")
        context.node_outputs["c"] = {}
        assert told["context"] == {"executed_nodes": ["a"], "current_outputs": {}}

    def test_it_is_in_the_language_of_the_workflow(self) -> None:
        error = NodeTimeout("judge", 60)
        english = handler().create_feedback_message("b", error, workflow(locale="en-US"))
        assert (
            english["error"] == "Judge gave no answer within 60 s. To give it more time: MOOT_NODE_TIMEOUT."
        )
        assert english["suggestion"].startswith("Use cached data")
        chinese = handler().create_feedback_message("b", error, workflow(locale="zh-CN"))
        assert chinese["suggestion"].startswith("请考虑使用缓存数据")

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (ConnectionResetError(), "connection"),
            (TooManyRequests("later"), "rate_limit"),
            (Forbidden("no"), "permission"),
            (CircuitBreakerOpenError("tushare", 60), "breaker"),
            (BudgetExceeded("spent"), "budget"),
            (MemoryError(), "memory"),
            (UpstreamFailed("odd"), "answer"),
            (NotFound("gone"), "not_found"),
            (InvalidInput("bad"), "input"),
            (KeyError("x"), "input"),
            (AppError("hm"), "other"),
        ],
        ids=lambda value: value if isinstance(value, str) else type(value).__name__,
    )
    def test_each_kind_of_error_has_its_own_suggestion(self, error: Exception, kind: str) -> None:
        told = handler().create_feedback_message("b", error, workflow(locale="en-US"))
        assert told["suggestion"] == str(SAY(f"execution.suggestion.{kind}"))

    def test_there_is_a_text_for_every_suggestion_in_every_language(self) -> None:
        for locale in LOCALES:
            texts = [SAY(f"execution.suggestion.{kind}").in_locale(locale) for kind in ErrorKind]
            assert all(texts)

    def test_an_error_without_words_is_named_and_secrets_are_not_told(self) -> None:
        told = handler().create_feedback_message("b", TimeoutError(), workflow())
        assert told["error"] == "TimeoutError"
        leaking = ConnectionError("GET https://a.example/?token=abcdefgh failed")
        told = handler().create_feedback_message("b", leaking, workflow())
        assert told["error"] == f"GET https://a.example/?token={HIDDEN} failed"


class TestShapes:
    @pytest.mark.accepts("A3-45")
    def test_five_actions_and_the_documented_defaults(self) -> None:
        assert [action.value for action in ErrorHandlingAction] == [
            "retry",
            "skip",
            "feedback",
            "escalate",
            "abort",
        ]
        policy = ErrorHandlingPolicy()
        assert (policy.max_retries, policy.retry_delay_seconds, policy.backoff_factor) == (3, 1.0, 2.0)
        assert policy.feedback_after_retries == 2
        assert policy.skippable_node_types == ()
        assert policy.retryable_errors == ("TimeoutError", "ConnectionError", "RateLimitError")
        assert policy.jitter == 0.0

    @pytest.mark.accepts("A3-38", "A3-39", "A3-40")
    def test_the_record_of_a_workflow_has_the_documented_fields(self) -> None:
        assert {field.name for field in fields(WorkflowExecution)} >= {
            *("workflow_id", "started_at", "executed_nodes", "running_nodes", "pending_nodes"),
            *("failed_nodes", "skipped_nodes", "node_inputs", "node_outputs", "error_log", "metrics"),
        }
        assert {field.name for field in fields(ErrorEntry)} == {
            *("node_id", "error_type", "error_message", "timestamp", "attempt", "action_taken"),
        }
        assert {field.name for field in fields(ExecutionMetrics)} == {
            *("total_nodes", "completed_nodes", "failed_nodes"),
            *("total_time_ms", "total_tokens", "total_cost"),
        }
