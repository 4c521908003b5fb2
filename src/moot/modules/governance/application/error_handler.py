"""What follows when a node fails: once more, without it, a word to its agent, a person, or the end."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from random import random as chance
from typing import Any, Literal, TypedDict

from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.workflow import (
    ErrorHandlingAction,
    ErrorHandlingPolicy,
    WorkflowExecution,
)
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.redaction import REDACT

__all__ = [
    "ErrorHandler",
    "ErrorHandlingAction",
    "ErrorHandlingPolicy",
    "FeedbackMessage",
    "RetryContext",
    "error_text",
]

SAME_AS = {
    "NodeTimeout": "TimeoutError",
    "TimeoutException": "TimeoutError",
    "APITimeoutError": "TimeoutError",
    "Unavailable": "ConnectionError",
    "TransportError": "ConnectionError",
    "APIConnectionError": "ConnectionError",
    "InternalServerError": "ConnectionError",
    "ClientConnectionError": "ConnectionError",
    "gaierror": "ConnectionError",
    "TooManyRequests": "RateLimitError",
    "Forbidden": "PermissionError",
    "Unauthenticated": "PermissionError",
    "AuthenticationError": "PermissionError",
    "AuthorizationError": "PermissionError",
    "PermissionDenied": "PermissionError",
    "PermissionDeniedError": "PermissionError",
}
"""What Moot and the libraries it may meet call the errors that a policy knows by Python's names."""

DENIED = "PermissionError"
"""Never retried, whatever the policy: asking again does not give a right."""

SUGGESTIONS = {
    "TimeoutError": "timeout",
    "ConnectionError": "connection",
    "RateLimitError": "rate_limit",
    "PermissionError": "permission",
    "CircuitBreakerOpenError": "breaker",
    "BudgetExceeded": "budget",
    "MemoryError": "memory",
    "DataError": "data",
    "DataCorruptionError": "data",
    "IntegrityError": "data",
    "UpstreamFailed": "answer",
    "LLMOutputParseError": "answer",
    "JSONDecodeError": "answer",
    "NotFound": "not_found",
    "FileNotFoundError": "not_found",
    "InvalidInput": "input",
    "ValueError": "input",
    "TypeError": "input",
    "LookupError": "input",
}

Gravity = Literal["passing", "lasting", "severe"]


class RetryContext(TypedDict):
    node_id: str
    attempt: int
    delay_seconds: float


class FeedbackContext(TypedDict):
    """What the agent may build on."""

    executed_nodes: list[str]
    current_outputs: dict[str, dict[str, Any]]


class FeedbackMessage(TypedDict):
    """What an agent is told before it plans anew."""

    type: Literal["execution_error"]
    node_id: str
    error: str
    context: FeedbackContext
    suggestion: str


class ErrorHandler:
    """Counts the failures of each node of each workflow until the workflow is forgotten."""

    def __init__(self, policy: ErrorHandlingPolicy, *, random: Callable[[], float] = chance) -> None:
        self.policy, self._random = policy, random
        self._failures: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def determine_action(
        self, node_id: str, node_type: str, error: Exception, context: WorkflowExecution
    ) -> ErrorHandlingAction:
        """RETRY, FEEDBACK, SKIP, ESCALATE, ABORT: the first that fits; where FEEDBACK would, the optional is skipped.

        FEEDBACK fits once retries are used up, or after `feedback_after_retries` attempts if no retry would help.
        """
        before = self.failures_of(context.workflow_id, node_id)
        self._failures[context.workflow_id][node_id] += 1
        gravity = self._gravity(error)
        if gravity == "passing" and before < self.policy.max_retries:
            return ErrorHandlingAction.RETRY
        if node_type in self.policy.skippable_node_types:
            return ErrorHandlingAction.SKIP
        if gravity == "passing" or before >= self.policy.feedback_after_retries:
            return ErrorHandlingAction.FEEDBACK
        return ErrorHandlingAction.ESCALATE if gravity == "severe" else ErrorHandlingAction.ABORT

    def failures_of(self, workflow_id: str, node_id: str) -> int:
        return self._failures[workflow_id][node_id] if workflow_id in self._failures else 0

    def forget(self, workflow_id: str, node_id: str | None = None) -> None:
        """The workflow has ended, or one of its nodes has succeeded after all."""
        if node_id is None:
            self._failures.pop(workflow_id, None)
        elif workflow_id in self._failures:
            self._failures[workflow_id].pop(node_id, None)

    def create_retry_context(
        self, node_id: str, attempt: int, error: Exception | None = None
    ) -> RetryContext:
        """`attempt` counts retries from 1. A pause that `error` asks for is kept to when it is the longer one."""
        policy = self.policy
        delay = policy.retry_delay_seconds * policy.backoff_factor ** (attempt - 1)
        delay = min(delay, policy.max_delay_seconds) * (1 + policy.jitter * self._random())
        return {"node_id": node_id, "attempt": attempt, "delay_seconds": max(delay, _pause_asked_for(error))}

    def create_feedback_message(
        self, node_id: str, error: Exception, context: WorkflowExecution, locale: Locale | None = None
    ) -> FeedbackMessage:
        """In the workflow's language unless another is asked for."""
        locale = locale or context.locale
        return {
            "type": "execution_error",
            "node_id": node_id,
            "error": error_text(error, locale),
            "context": {
                "executed_nodes": list(context.executed_nodes),
                "current_outputs": dict(context.node_outputs),
            },
            "suggestion": SAY(f"execution.suggestion.{_kind(error)}").in_locale(locale),
        }

    def _gravity(self, error: Exception) -> Gravity:
        """The most specific of its classes that the policy names decides."""
        policy = self.policy
        for name in _names(error):
            if name == DENIED or name in policy.severe_errors:
                return "severe"
            if name in policy.lasting_errors:
                return "lasting"
            if name in policy.retryable_errors:
                return "passing"
        return "lasting"


def error_text(error: Exception, locale: Locale) -> str:
    """What an error says to a reader, secrets taken out; one that says nothing is at least named."""
    said = error.in_locale(locale) if isinstance(error, AppError) else str(error)
    return REDACT.text(said) or type(error).__name__


def _names(error: Exception) -> Iterator[str]:
    """What the error is, its own class first; each class also by the name that a policy knows it by."""
    for kind in type(error).__mro__:
        yield kind.__name__
        if kind.__name__ in SAME_AS:
            yield SAME_AS[kind.__name__]


def _kind(error: Exception) -> str:
    return next((SUGGESTIONS[name] for name in _names(error) if name in SUGGESTIONS), "other")


def _pause_asked_for(error: Exception | None) -> float:
    """Seconds, as `Retry-After` said; 0 when nobody said any, or nonsense."""
    details = error.details if isinstance(error, AppError) else {}
    asked = details.get("retry_after", getattr(error, "retry_after", None))
    return float(asked) if isinstance(asked, int | float) and math.isfinite(asked) else 0.0
