"""What the coordinator cannot do, said so that the caller knows what to do next."""

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, NotFound


class AllExpertsFailed(AppError):
    """No expert had a result; `details` hold each error and the session, so that the caller can try again."""

    code = "ALL_EXPERTS_FAILED"

    def __init__(self, result: ResearchResult) -> None:
        why = [f"{item.expert_type.value}: {item.error}" for item in result.expert_results]
        super().__init__(
            SAY("all_failed", symbol=result.symbol, why="; ".join(why)),
            overall_status=result.overall_status,
            expert_results=result.model_dump(mode="json")["expert_results"],
            session_id=result.session_id,
        )


class SessionNotFound(NotFound):
    code = "SESSION_NOT_FOUND"

    def __init__(self, session_id: object) -> None:
        super().__init__(SAY("session_not_found", session_id=session_id))


class SessionRunning(Conflict):
    code = "SESSION_RUNNING"

    def __init__(self, session_id: object) -> None:
        super().__init__(SAY("session_running", session_id=session_id), session_id=str(session_id))


class SessionNotRetryable(InvalidInput):
    """A retry would have nothing to run."""

    code = "SESSION_NOT_RETRYABLE"

    def __init__(self, session_id: object, *, only_verdict_failed: bool = False) -> None:
        why = "only_verdict_failed" if only_verdict_failed else "nothing_failed"
        super().__init__(SAY(f"not_retryable.{why}", session_id=session_id), session_id=str(session_id))


class Abstention(AppError):
    """The judge heard the debate and declines to rule. Not a failure, and never a rating."""

    code = "VERDICT_ABSTAINED"


class NodeTimeout(AppError):
    code = "NODE_TIMEOUT"

    def __init__(self, node_type: str, seconds: float) -> None:
        super().__init__(SAY("node_timeout", node=SAY(f"node.{node_type}"), seconds=f"{seconds:g}"))
