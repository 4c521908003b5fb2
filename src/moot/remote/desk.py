"""What a desk can be asked, wherever it stands."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, ResearchResult
from moot.modules.coordinator.application.research_run import Watch
from moot.modules.coordinator.application.session_history import SessionDetail, SessionEvent, SessionPage
from moot.modules.intake.application.intake_service import Conversation, PlanDecision, Style
from moot.modules.market_data.application.sql import QueryResult
from moot.shared.domain.audit import Verification
from moot.shared.domain.messages import Locale


class Desk(ABC):
    """One's own or another's: the same methods, answers and errors. Open it with `async with`."""

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @abstractmethod
    async def research(
        self,
        symbol: str,
        experts: Sequence[str] = EXPERTS,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        skip_debate: bool = False,
        as_of: date | datetime | str | None = None,
        locale: Locale | None = None,
        max_cost: float | None = None,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Ask the experts about `symbol`, let bull and bear argue, and have the judge rule.

        Raises `InvalidInput` for a question that cannot be asked, `AllExpertsFailed` when nobody had an answer.
        """

    @abstractmethod
    async def retry(
        self, session_id: UUID, *, skip_debate: bool = False, watch: Watch | None = None
    ) -> ResearchResult:
        """Run again what failed in a session, as of its moment; what had succeeded is reused.

        Raises `SessionNotFound`, `SessionRunning`, `SessionNotRetryable`, or `AllExpertsFailed` once more.
        """

    @abstractmethod
    async def start(
        self,
        symbol: str,
        experts: Sequence[str] = EXPERTS,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        skip_debate: bool = False,
        as_of: date | datetime | str | None = None,
        locale: Locale | None = None,
        max_cost: float | None = None,
        idempotency_key: str | None = None,
    ) -> SessionDetail:
        """Begin research in the background. The same key and question give the same session.

        Raises `Conflict` for a key that came with another question, `TooManyRequests` when the desk is full.
        """

    @abstractmethod
    def events(self, session_id: UUID, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """What happens in a session and what has happened, from the event after `after` to `done`."""

    @abstractmethod
    async def cancel(self, session_id: UUID) -> SessionDetail:
        """Stop a session."""

    @abstractmethod
    async def result(self, session_id: UUID) -> ResearchResult:
        """The answer a session gave; raises `Conflict` while it is still running."""

    @abstractmethod
    async def sessions(self, symbol: str | None = None, *, page: int = 1, page_size: int = 20) -> SessionPage:
        """Sessions of the workspace, newest first."""

    @abstractmethod
    async def session(self, session_id: UUID) -> SessionDetail:
        """A session with all its nodes."""

    @abstractmethod
    async def verify(self, session_id: UUID) -> Verification:
        """Whether the record of a session is still what was written."""

    @abstractmethod
    async def ask(
        self,
        question: str,
        *,
        thread: UUID | None = None,
        style: Style = "research",
        accept_plan: bool = False,
        locale: str | None = None,
    ) -> Conversation:
        """Ask in your own words. Unless `accept_plan`, a plan waits for `answer_plan` before anybody researches.

        The last of its turns has the answer; what keeps a question from one is that turn's `error`.
        """

    @abstractmethod
    async def answer_plan(self, thread: UUID, decision: PlanDecision, text: str = "") -> Conversation:
        """Say yes or no to the plan a conversation waits with, or what is to change about it."""

    @abstractmethod
    async def conversation(self, thread: UUID) -> Conversation: ...

    @abstractmethod
    async def query(
        self, sql: str, *, as_of: date | datetime | str | None = None, locale: Locale | None = None
    ) -> QueryResult:
        """One SELECT over the market data as known then, run as the rules allow it; a day means its end in UTC.

        Raises `Forbidden` where they do not, `Conflict` with an `escalation_id` in its details where a person has to
        decide, `InvalidInput` for what does not run. From a desk elsewhere, days and moments in rows come as text.
        """
