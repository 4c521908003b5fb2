"""What the SDK answers with and raises; `moot` hands it on."""

from moot.modules.coordinator.application.dtos.research_dtos import (
    Debate,
    ExpertResultItem,
    ResearchResult,
    Verdict,
)
from moot.modules.coordinator.application.session_history import (
    ResearchSession,
    SessionDetail,
    SessionEvent,
    SessionPage,
)
from moot.modules.coordinator.domain.exceptions import (
    AllExpertsFailed,
    SessionCancelled,
    SessionEnded,
    SessionHeld,
    SessionInterrupted,
    SessionNotFound,
    SessionNotRetryable,
    SessionRunning,
    SessionTakenOver,
    SessionWaiting,
)
from moot.modules.intake.application.intake_service import Conversation
from moot.modules.market_data.application.sql import QueryResult
from moot.remote.desk import Desk
from moot.shared.domain.audit import Verification
from moot.shared.domain.errors import (
    AppError,
    Conflict,
    DecisionRejected,
    Forbidden,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UpstreamFailed,
)
from moot.shared.infrastructure.settings import Settings

__all__ = [
    "AllExpertsFailed",
    "AppError",
    "Conflict",
    "Conversation",
    "Debate",
    "DecisionRejected",
    "Desk",
    "ExpertResultItem",
    "Forbidden",
    "InvalidInput",
    "NotFound",
    "QueryResult",
    "ResearchResult",
    "ResearchSession",
    "SessionCancelled",
    "SessionDetail",
    "SessionEnded",
    "SessionEvent",
    "SessionHeld",
    "SessionInterrupted",
    "SessionNotFound",
    "SessionNotRetryable",
    "SessionPage",
    "SessionRunning",
    "SessionTakenOver",
    "SessionWaiting",
    "Settings",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "UpstreamFailed",
    "Verdict",
    "Verification",
]
