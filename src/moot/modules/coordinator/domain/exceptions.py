"""What the coordinator cannot do, said so that the caller knows what to do next."""

from typing import ClassVar
from uuid import UUID

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import (
    AppError,
    Conflict,
    DecisionRejected,
    ErrorKind,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from moot.shared.domain.messages import Message


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


class OfSession(AppError):
    """About one session, and no more to be said than which; `said` is the key of the text."""

    said: ClassVar[str]

    def __init__(self, session_id: object) -> None:
        super().__init__(SAY(self.said, session_id=session_id), session_id=str(session_id))


class SessionNotFound(OfSession, NotFound):
    code, said = "SESSION_NOT_FOUND", "session_not_found"


class SessionRunning(OfSession, Conflict):
    code, said = "SESSION_RUNNING", "session_running"


class SessionHeld(OfSession, Conflict):
    """Somebody runs the session, or did until a moment ago."""

    code, said = "SESSION_HELD", "session_held"


class SessionCancelled(OfSession, Conflict):
    code, said = "SESSION_CANCELLED", "session_cancelled"


class SessionTakenOver(OfSession, Conflict):
    """This process was away for so long that another one carries on."""

    code, said = "SESSION_TAKEN_OVER", "session_taken_over"


class SessionInterrupted(OfSession, Unavailable):
    """The desk closed before the session had ended; it goes on when a desk opens again."""

    code, said = "SESSION_INTERRUPTED", "session_interrupted"


class KeyReused(OfSession, Conflict):
    """The key stands for a question other than the one that is asked now."""

    code, said = "IDEMPOTENCY_KEY_REUSED", "key_reused"


class SessionNotRetryable(InvalidInput):
    """A retry would have nothing to run."""

    code = "SESSION_NOT_RETRYABLE"

    def __init__(self, session_id: object, *, only_verdict_failed: bool = False) -> None:
        why = "only_verdict_failed" if only_verdict_failed else "nothing_failed"
        super().__init__(SAY(f"not_retryable.{why}", session_id=session_id), session_id=str(session_id))


class SessionEnded(Conflict):
    """What was asked can only be done to a session that has not ended."""

    code = "SESSION_ENDED"

    def __init__(self, session_id: object, status: str) -> None:
        said = SAY("session_ended", session_id=session_id, status=SAY(f"literal.{status}"))
        super().__init__(said, session_id=str(session_id), status=status)


class SessionGivenUp(AppError):
    """It may be the session itself that processes die of."""

    code = "SESSION_GIVEN_UP"

    def __init__(self, session_id: object, attempts: int) -> None:
        super().__init__(SAY("session_given_up", attempts=attempts), session_id=str(session_id))


class KeyTaken(Conflict):
    """There is a session under this key already."""

    code = "IDEMPOTENCY_KEY_TAKEN"

    def __init__(self, key: str) -> None:
        super().__init__(SAY("key_taken", key=key))


class DeskBusy(TooManyRequests):
    """As many sessions run and wait as this desk allows."""

    code = "DESK_BUSY"

    def __init__(self, retry_after: int) -> None:
        super().__init__(SAY("desk_busy", seconds=retry_after), retry_after=retry_after)


class DeskClosing(Unavailable):
    code = "DESK_CLOSING"
    passing = False

    def __init__(self) -> None:
        super().__init__(SAY("desk_closing"), retry_after=5)


class ApprovalNeeded(BaseException):
    """The rules want a person to decide: the run stops here and goes on when somebody has.

    Not an `Exception`: nothing that makes the best of an error on the way may do so here.
    """

    def __init__(self, why: Message, escalation_id: UUID) -> None:
        super().__init__(str(why))
        self.why, self.escalation_id = why, escalation_id


class SessionStopped(BaseException):
    """A rule that ends the whole session was broken; like `ApprovalNeeded` it passes all bulkheads."""

    def __init__(self, error: DecisionRejected) -> None:
        super().__init__(str(error))
        self.error = error


class SessionWaiting(Conflict):
    """A person has to decide before the session can go on."""

    code = "SESSION_WAITING"

    def __init__(self, session_id: object, needed: ApprovalNeeded | None = None) -> None:
        details = {"session_id": str(session_id)}
        if needed is not None:
            details |= {"escalation_id": str(needed.escalation_id), "why": str(needed.why)}
        super().__init__(SAY("session_waiting", session_id=session_id), **details)


class RecordedFailure(AppError):
    """What a node failed with before its process died."""

    code = "NODE_FAILED"


class Abstention(AppError):
    """The judge heard the debate and declines to rule. Not a failure, and never a rating."""

    code = "VERDICT_ABSTAINED"


class NodeTimeout(AppError):
    code = "NODE_TIMEOUT"
    kind = ErrorKind.TIMEOUT
    passing = True

    def __init__(self, node_type: str, seconds: float) -> None:
        super().__init__(SAY("node_timeout", node=SAY(f"node.{node_type}"), seconds=f"{seconds:g}"))
