"""What the coordinator cannot do, said so that the caller knows what to do next."""

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
from moot.shared.domain.messages import LOG_LOCALE, Locale, Message


class AllExpertsFailed(AppError, code="ALL_EXPERTS_FAILED"):
    """No expert had a result; `details` hold each error and the session, so that the caller can try again."""

    def __init__(self, result: ResearchResult) -> None:
        experts: dict[str, list[Message]] = {}  # by reason: what several miss is said once
        for item in result.expert_results.values():
            experts.setdefault(item.error or "", []).append(SAY(f"node.{item.expert_type.value}"))
        said = SAY("all_failed", symbol=result.symbol)
        for reason, names in experts.items():
            said = SAY("all_failed_why", said=said, experts=names, why=reason)
        if result.session_id:
            said = SAY("all_failed_retry", said=said, session_id=result.session_id)
        super().__init__(
            said,
            overall_status=result.overall_status,
            expert_results=result.model_dump(mode="json")["expert_results"],
            session_id=result.session_id,
        )


class OfSession(AppError):
    """About one session; the key of the text is the code in small letters."""

    def __init__(self, session_id: object, **said: object) -> None:
        super().__init__(SAY(self.code.lower(), session_id=session_id, **said), session_id=str(session_id))


class SessionNotFound(OfSession, NotFound, code="SESSION_NOT_FOUND"):
    """Nor is there for those who may not see it."""


class SessionRunning(OfSession, Conflict, code="SESSION_RUNNING"):
    """What was asked can only be done when it has ended."""


class SessionEnded(OfSession, Conflict, code="SESSION_ENDED"):
    """What was asked can only be done to a session that has not ended; `status` says how it did."""

    def __init__(self, session_id: object, status: str) -> None:
        super().__init__(session_id, status=SAY(f"literal.{status}"))
        self.details["status"] = status


class SessionHeld(OfSession, Conflict, code="SESSION_HELD"):
    """Somebody runs the session, or did until a moment ago."""


class SessionCancelled(OfSession, Conflict, code="SESSION_CANCELLED"):
    """Somebody stopped it before it had an answer."""


class SessionTakenOver(OfSession, Conflict, code="SESSION_TAKEN_OVER"):
    """This process was away for so long that another one carries on."""


class SessionInterrupted(OfSession, Unavailable, code="SESSION_INTERRUPTED"):
    """The desk closed before the session had ended; it goes on when a desk opens again."""


class SessionGivenUp(OfSession, code="SESSION_GIVEN_UP"):
    """It may be the session itself that so many processes (`attempts`) died of."""


class SessionNotRetryable(OfSession, InvalidInput, code="SESSION_NOT_RETRYABLE"):
    """A retry would have nothing to run."""


class NothingToContest(OfSession, InvalidInput, code="NOTHING_TO_CONTEST"):
    """Nothing was argued in it, or by a version that kept no argument."""


class KeyReused(OfSession, Conflict, code="IDEMPOTENCY_KEY_REUSED"):
    """The key stands for a question other than the one that is asked now."""


class KeyTaken(Exception):
    """There is a session under this key already; whoever learns it asks for that one."""


class DeskBusy(TooManyRequests, code="DESK_BUSY"):
    """As many sessions run and wait as this desk allows."""

    def __init__(self) -> None:
        super().__init__(SAY("desk_busy", seconds=10), retry_after=10)


class DeskClosing(Unavailable, code="DESK_CLOSING", passing=False):
    def __init__(self) -> None:
        super().__init__(SAY("desk_closing"), retry_after=5)


class ApprovalNeeded(BaseException):
    """The rules want a person to decide: the run stops here and goes on when somebody has.

    Not an `Exception`: nothing that makes the best of an error on the way may do so here.
    """

    def __init__(self, why: str | Message, escalation_id: UUID) -> None:
        super().__init__(str(why))
        self.why, self.escalation_id = why, escalation_id

    def asked(self, locale: Locale) -> dict[str, str]:
        """What the person is asked, and under which number."""
        reason = self.why.in_locale(locale) if isinstance(self.why, Message) else self.why
        return {"reason": reason, "escalation_id": str(self.escalation_id)}


class SessionStopped(BaseException):
    """A rule that ends the whole session was broken; like `ApprovalNeeded` it passes all bulkheads."""

    def __init__(self, error: DecisionRejected) -> None:
        super().__init__(str(error))
        self.error = error


class SessionWaiting(OfSession, Conflict, code="SESSION_WAITING"):
    """A person has to decide before the session can go on."""

    def __init__(self, session_id: object, needed: ApprovalNeeded | None = None) -> None:
        super().__init__(session_id)
        self.needed = needed
        if needed is not None:
            known = {"why": needed.why, "id": needed.escalation_id}
            self.message = SAY("session_waits_for", session_id=session_id, **known)
            self.details |= {"why": str(needed.why), **needed.asked(LOG_LOCALE)}


class Abstention(AppError, code="VERDICT_ABSTAINED"):
    """The judge heard the debate and declines to rule. Not a failure, and never a rating."""


class NodeTimeout(AppError, code="NODE_TIMEOUT", kind=ErrorKind.TIMEOUT, passing=True):
    def __init__(self, node_type: str, seconds: float) -> None:
        super().__init__(SAY("node_timeout", node=SAY(f"node.{node_type}"), seconds=f"{seconds:g}"))
