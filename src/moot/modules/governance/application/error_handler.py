"""What follows when a node fails: once more, without it, a word to its agent, a person, or the end."""

import builtins
import math
from collections import Counter
from collections.abc import Callable
from random import random as chance
from typing import Any, Literal

from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.workflow import (
    ErrorHandlingAction,
    ErrorHandlingPolicy,
    WorkflowExecution,
)
from moot.shared.domain.errors import AppError, ErrorKind, nature_of
from moot.shared.infrastructure.redaction import error_text

__all__ = ["ErrorHandler", "ErrorHandlingAction", "ErrorHandlingPolicy"]

KINDS = {
    "TimeoutError": ErrorKind.TIMEOUT,
    "ConnectionError": ErrorKind.CONNECTION,
    "RateLimitError": ErrorKind.RATE_LIMIT,
}
"""What a policy calls the kinds of errors that may pass."""
SEVERE = frozenset({ErrorKind.PERMISSION, ErrorKind.BREAKER, ErrorKind.DATA, ErrorKind.MEMORY})
"""Never retried, whatever the policy: asking again gives no right, and mends nothing."""

Gravity = Literal["passing", "lasting", "severe"]


class ErrorHandler:
    """Counts the failures of each node of each workflow until the workflow is forgotten."""

    def __init__(self, policy: ErrorHandlingPolicy, *, random: Callable[[], float] = chance) -> None:
        self.policy, self._random = policy, random
        self._failures: Counter[tuple[str, str]] = Counter()

    def determine_action(
        self, node_id: str, node_type: str, error: Exception, context: WorkflowExecution
    ) -> ErrorHandlingAction:
        """RETRY, FEEDBACK, SKIP, ESCALATE, ABORT: the first that fits; where FEEDBACK would, the optional is skipped.

        FEEDBACK fits once retries are used up, or after `feedback_after_retries` attempts if no retry would help.
        """
        before = self.failures_of(context.workflow_id, node_id)
        self._failures[context.workflow_id, node_id] += 1
        gravity = self._gravity(error)
        if gravity == "passing" and before < self.policy.max_retries:
            return ErrorHandlingAction.RETRY
        if node_type in self.policy.skippable_node_types:
            return ErrorHandlingAction.SKIP
        if gravity == "passing" or before >= self.policy.feedback_after_retries:
            return ErrorHandlingAction.FEEDBACK
        return ErrorHandlingAction.ESCALATE if gravity == "severe" else ErrorHandlingAction.ABORT

    def failures_of(self, workflow_id: str, node_id: str) -> int:
        return self._failures[workflow_id, node_id]

    def forget(self, workflow_id: str, node_id: str | None = None) -> None:
        """The workflow has ended, or one of its nodes has succeeded after all."""
        for known in list(self._failures):
            if known[0] == workflow_id and node_id in (None, known[1]):
                del self._failures[known]

    def create_retry_context(
        self, node_id: str, attempt: int, error: Exception | None = None
    ) -> dict[str, Any]:
        """`attempt` counts retries from 1. A pause that `error` asks for is kept to when it is the longer one."""
        policy = self.policy
        delay = policy.retry_delay_seconds * policy.backoff_factor ** (attempt - 1)
        delay = min(delay, policy.max_delay_seconds) * (1 + policy.jitter * self._random())
        return {"node_id": node_id, "attempt": attempt, "delay_seconds": max(delay, _pause_asked_for(error))}

    def create_feedback_message(
        self, node_id: str, error: Exception, context: WorkflowExecution
    ) -> dict[str, Any]:
        """What an agent is told before it plans anew, in the workflow's language, and what it may build on."""
        return {
            "type": "execution_error",
            "node_id": node_id,
            "error": error_text(error, context.locale),
            "context": {
                "executed_nodes": list(context.executed_nodes),
                "current_outputs": dict(context.node_outputs),
            },
            "suggestion": SAY(f"execution.suggestion.{nature_of(error).kind}").in_locale(context.locale),
        }

    def _gravity(self, error: Exception) -> Gravity:
        nature = nature_of(error)
        if nature.kind in SEVERE:
            return "severe"
        named = self.policy.retryable_errors
        if nature.passing and nature.kind in {KINDS.get(name) for name in named}:
            return "passing"
        pythons = tuple(getattr(builtins, name, ()) for name in named if name not in KINDS)
        return "passing" if isinstance(error, pythons) else "lasting"


def _pause_asked_for(error: Exception | None) -> float:
    """Seconds, as `Retry-After` said; 0 when nobody said any, or nonsense."""
    details = error.details if isinstance(error, AppError) else {}
    asked = details.get("retry_after", getattr(error, "retry_after", None))
    return float(asked) if isinstance(asked, int | float) and math.isfinite(asked) else 0.0
