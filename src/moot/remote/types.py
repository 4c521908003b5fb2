"""What the SDK answers with and raises; `moot` hands it on."""

# ruff: noqa: PLC0414 (named again: so they are meant to be imported from here)

from moot.modules.coordinator.application.contest import ContestResult as ContestResult
from moot.modules.coordinator.application.dtos.research_dtos import Debate as Debate
from moot.modules.coordinator.application.dtos.research_dtos import ExpertResultItem as ExpertResultItem
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult as ResearchResult
from moot.modules.coordinator.application.dtos.research_dtos import Verdict as Verdict
from moot.modules.coordinator.application.session_history import ResearchSession as ResearchSession
from moot.modules.coordinator.application.session_history import SessionDetail as SessionDetail
from moot.modules.coordinator.application.session_history import SessionEvent as SessionEvent
from moot.modules.coordinator.application.session_history import SessionPage as SessionPage
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed as AllExpertsFailed
from moot.modules.coordinator.domain.exceptions import NothingToContest as NothingToContest
from moot.modules.coordinator.domain.exceptions import SessionCancelled as SessionCancelled
from moot.modules.coordinator.domain.exceptions import SessionEnded as SessionEnded
from moot.modules.coordinator.domain.exceptions import SessionHeld as SessionHeld
from moot.modules.coordinator.domain.exceptions import SessionInterrupted as SessionInterrupted
from moot.modules.coordinator.domain.exceptions import SessionNotFound as SessionNotFound
from moot.modules.coordinator.domain.exceptions import SessionNotRetryable as SessionNotRetryable
from moot.modules.coordinator.domain.exceptions import SessionRunning as SessionRunning
from moot.modules.coordinator.domain.exceptions import SessionTakenOver as SessionTakenOver
from moot.modules.coordinator.domain.exceptions import SessionWaiting as SessionWaiting
from moot.modules.intake.application.intake_service import Conversation as Conversation
from moot.modules.jobs.application.schedules import ScheduleList as ScheduleList
from moot.modules.jobs.application.schedules import ScheduleRun as ScheduleRun
from moot.modules.jobs.application.schedules import ScheduleView as ScheduleView
from moot.modules.jobs.application.watch import Watched as Watched
from moot.modules.jobs.application.watch import Watchlist as Watchlist
from moot.modules.market_data.application.sql import QueryResult as QueryResult
from moot.remote.desk import Desk as Desk
from moot.shared.domain.audit import Verification as Verification
from moot.shared.domain.claims import Holder as Holder
from moot.shared.domain.claims import Move as Move
from moot.shared.domain.errors import AppError as AppError
from moot.shared.domain.errors import Conflict as Conflict
from moot.shared.domain.errors import DecisionRejected as DecisionRejected
from moot.shared.domain.errors import Forbidden as Forbidden
from moot.shared.domain.errors import InvalidInput as InvalidInput
from moot.shared.domain.errors import NotFound as NotFound
from moot.shared.domain.errors import TooManyRequests as TooManyRequests
from moot.shared.domain.errors import Unauthenticated as Unauthenticated
from moot.shared.domain.errors import Unavailable as Unavailable
from moot.shared.domain.errors import UpstreamFailed as UpstreamFailed
from moot.shared.infrastructure.settings import Settings as Settings
