"""The tests that documents name can fail: each does when what it is about is taken away."""

from dataclasses import replace
from typing import Any

import pytest

from moot.modules.governance.application.decision_validator import DecisionValidator
from moot.modules.governance.application.error_handler import ErrorHandler, ErrorHandlingAction
from moot.modules.governance.domain.decisions import ValidationResult, ValidationStatus
from tests.governance import test_decision_validator as validation
from tests.governance import test_error_handler as handling

real = DecisionValidator.validate_by


def always(status: ValidationStatus) -> Any:
    def validate_by(self: DecisionValidator, *asked: Any, **how: Any) -> ValidationResult:
        return replace(real(self, *asked, **how), status=status)

    return validate_by


@pytest.mark.accepts("W38")
@pytest.mark.parametrize(
    ("test", "status"),
    [
        (validation.test_validate_should_approve_valid_decision, ValidationStatus.REJECTED),
        (validation.test_validate_should_reject_tool_not_allowed, ValidationStatus.APPROVED),
        (validation.test_validate_should_modify_sensitive_data_query, ValidationStatus.APPROVED),
        (validation.test_validate_should_reject_goal_deviation, ValidationStatus.APPROVED),
    ],
)
def test_a_validator_that_always_says_the_same_is_found_out(monkeypatch, test, status):
    test()
    monkeypatch.setattr(DecisionValidator, "validate_by", always(status))
    with pytest.raises(AssertionError):
        test()


@pytest.mark.accepts("W38")
@pytest.mark.parametrize(
    "test",
    [
        handling.TestTheOrder().test_should_retry_on_timeout_error,
        handling.TestTheOrder().test_should_skip_optional_node,
        handling.TestTheOrder().test_should_feedback_after_max_retries,
    ],
)
def test_a_handler_that_always_does_the_same_is_found_out(monkeypatch, test):
    test()
    abort = lambda *_asked: ErrorHandlingAction.ABORT  # noqa: E731
    monkeypatch.setattr(ErrorHandler, "determine_action", abort)
    with pytest.raises(AssertionError):
        test()


@pytest.mark.accepts("W38")
def test_pauses_that_do_not_grow_are_found_out(monkeypatch):
    test = handling.TestPauses().test_retry_delay_should_use_exponential_backoff
    test()
    same = lambda *_asked, **_how: {"node_id": "n", "attempt": 1, "delay_seconds": 1.0}  # noqa: E731
    monkeypatch.setattr(ErrorHandler, "create_retry_context", same)
    with pytest.raises(AssertionError):
        test()
