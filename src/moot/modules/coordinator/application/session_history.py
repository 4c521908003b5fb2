"""Looking back: which sessions there were, and what each node of one did. REST and command line ask alike."""

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field

from moot.modules.coordinator.application.results import notices_of, past_result
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.model.session import (
    Called,
    NodeExecution,
    ResearchSession,
    SessionEvent,
    SessionFilter,
    SessionOutcome,
    SessionPage,
    SessionStatus,
    VerdictAction,
)
from moot.modules.coordinator.domain.ports.permission import NodePolicy
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Day, Instant, in_utc
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import SymbolDirectory
from moot.shared.domain.ids import LAST_PAGE, MOST_PER_PAGE, find_id
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import Name, Strict

__all__ = [
    "NodeExecution",
    "ResearchSession",
    "SessionEvent",
    "SessionFilter",
    "SessionOutcome",
    "SessionPage",
    "SessionStatus",
    "VerdictAction",
]


LOOK_AGAIN = 0.3
"""Seconds until a session that runs in another process is looked at again."""

Progress = Literal["waiting", "running", "retrying", "success", "failed", "skipped"]


class NodeProgress(BaseModel, frozen=True):
    """How far a node is. `said` is why it tries again, or what it failed with."""

    node: str
    status: Progress = "waiting"
    started_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    said: str | None = None


class SessionDetail(ResearchSession):
    """A session with its nodes, in the order in which they started; `retries` are the sessions that retried it,
    `what_ifs` those that contest it, oldest first; of very many, the newest page.

    Where it waits for a person, `reason` says for what, and `escalation_id` under which number.
    """

    nodes: list[NodeExecution]
    progress: list[NodeProgress]
    retries: list[UUID]
    what_ifs: list[UUID] = Field(default_factory=list)
    notices: list[str]
    escalation_id: UUID | None = None


class Started(BaseModel):
    """A receipt: the session is stored and will run, whatever happens to this process.

    `reason` and `escalation_id` are there when it waits for a person.
    """

    session_id: UUID
    status: str
    links: dict[str, str]
    reason: str | None = Field(default=None, exclude_if=lambda told: told is None)
    escalation_id: UUID | None = Field(default=None, exclude_if=lambda told: told is None)


class Pruned(BaseModel):
    """How many sessions and calls lost their texts, of how many bytes. Those in `broken` kept theirs: their records
    do not verify."""

    sessions: int = 0
    calls: int = 0
    size: int = 0
    broken: list[UUID] = Field(default_factory=list)


class SessionHistory:
    """`policy` is asked what a session that waits was put before a person for, `directory` which share is meant."""

    def __init__(
        self,
        repository: IResearchSessionRepository,
        currency: str = "",
        policy: Callable[[], NodePolicy] = NodePolicy,
        directory: Callable[[], SymbolDirectory] | None = None,
    ) -> None:
        self._repository, self._currency, self._policy = repository, currency, policy
        self._directory = directory
        self.verify, self.verify_all = repository.verify, repository.verify_all
        self.list_outcomes = repository.list_outcomes

    async def sessions(self, wanted: SessionFilter) -> SessionPage:
        """The symbol may be a code in any spelling, or a name."""
        if wanted.symbol is not None:
            known = self._directory and self._directory()
            symbol = await known.symbol(wanted.symbol) if known else Symbol.parse(wanted.symbol)
            wanted = wanted.model_copy(update={"symbol": symbol.text})
        return await self._repository.list_sessions(wanted)

    async def find(self, text: str, workspace_id: str) -> UUID:
        """The session that somebody means by its id, by the beginning of it, or by `last`."""

        async def newest(first: UUID, last: UUID) -> list[UUID]:
            wanted = SessionFilter(workspace_id=workspace_id, ids=(first, last), page_size=MOST_PER_PAGE)
            return [session.id for session in (await self._repository.list_sessions(wanted)).items]

        return await find_id("session_id", text, newest)

    async def session(self, session_id: UUID, workspace_id: str) -> SessionDetail:
        session = await self._repository.require_session(session_id, workspace_id)
        nodes = await self._repository.get_node_executions_by_session(session_id)
        events = await self._repository.events_after(session_id, 0)
        children = SessionFilter(
            workspace_id=workspace_id, parent_session_id=session_id, page_size=MOST_PER_PAGE
        )
        following = list(reversed((await self._repository.list_sessions(children)).items))
        waits = session.status == "waiting"
        needed = await self._policy().waits_for(session_id, workspace_id) if waits else None
        return SessionDetail(
            **session.model_dump() | (needed.asked(session.locale) if needed else {}),
            nodes=nodes,
            progress=progress_of(session, events),
            retries=[child.id for child in following if child.retry_count],
            what_ifs=[child.id for child in following if not child.retry_count],
            notices=notices_of(session),
        )

    async def events(
        self,
        session_id: UUID,
        workspace_id: str,
        *,
        after: int = 0,
        closing: Callable[[], bool] = lambda: False,
    ) -> AsyncIterator[SessionEvent]:
        """The events after that one, as they come.

        Ends with `done`, or without it when the desk is `closing`: whoever listens asks again after the last heard.
        """
        last = after
        while True:
            # before the events: a session's end is stored together with its `done`
            ended = (await self._repository.require_session(session_id, workspace_id)).ended
            for event in await self._repository.events_after(session_id, last):
                yield event
                last = event.seq
                if event.type == "done":
                    return
            if ended or closing():
                return
            await self._repository.wait_for_events(session_id, LOOK_AGAIN)

    async def result(self, session_id: UUID, workspace_id: str) -> ResearchResult:
        """The answer the session gave, from its record; raises `SessionRunning` until it has ended."""
        past = await self._repository.past_session(session_id, workspace_id)
        calls = await self._repository.calls(session_id, "models", include_text=False)
        return past_result(*past, calls, self._currency)

    async def calls(
        self, session_id: UUID, workspace_id: str, to: Called, *, include_text: bool = True
    ) -> list[dict[str, Any]]:
        await self._repository.require_session(session_id, workspace_id)
        return await self._repository.calls(session_id, to, include_text=include_text)


TWO_FORMS = {
    "created_after": "start_date",
    "created_before": "end_date",
    "skip": "page",
    "limit": "page_size",
}


class SessionQuery(Strict):
    """All conditions must hold. Periods and pages can be asked for in two forms, but not in both at once."""

    symbol: str | None = Field(
        default=None, description="a code in any spelling, or a name", examples=["900001.DEMO"]
    )
    status: SessionStatus | None = None
    verdict_action: VerdictAction | None = Field(default=None, description="only sessions with this verdict")
    trigger_source: Name | None = Field(default=None, description="how they were started: api, cli, sdk, …")
    start_date: Day | None = Field(default=None, description="first day (UTC)")
    end_date: Day | None = Field(default=None, description="last day (UTC)")
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)
    created_after: Instant | None = Field(default=None, description="from this moment on; or start_date")
    created_before: Instant | None = Field(default=None, description="before this moment; or end_date")
    skip: int | None = Field(default=None, ge=0, le=LAST_PAGE, description="how many to leave out; or page")
    limit: int | None = Field(default=None, ge=1, le=MOST_PER_PAGE, description="another name of page_size")

    def of(self, workspace_id: str) -> SessionFilter:
        """Raises `InvalidInput` for what no single field can be blamed for."""
        given = self.model_fields_set
        for other, field in TWO_FORMS.items():
            if other in given and field in given:
                raise InvalidInput(SAY("sessions.both_forms", field=other, other=field), field=other)
        start = in_utc(self.start_date) if self.start_date else self.created_after
        end = in_utc(self.end_date) + timedelta(days=1) if self.end_date else self.created_before
        if start and end and start >= end:
            field = "end_date" if self.end_date else "created_before"
            raise InvalidInput(SAY("sessions.ends_first", field=field), field=field)
        return SessionFilter(
            workspace_id=workspace_id,
            created_from=start,
            created_before=end,
            page_size=self.limit or self.page_size,
            **self.model_dump(
                include={"symbol", "status", "verdict_action", "trigger_source", "page", "skip"}
            ),
        )


def progress_of(session: ResearchSession, events: Iterable[SessionEvent]) -> list[NodeProgress]:
    """Every node the session has or will have, in the order of the desk."""
    nodes = {name: NodeProgress(node=name) for name in session.node_types}
    for event in events:
        name = event.data.get("node")
        if isinstance(name, str) and event.type.startswith("node_"):
            before = nodes.get(name) or NodeProgress(node=name)
            nodes[name] = before.model_copy(update=_step(event))
    return list(nodes.values())


def _step(event: SessionEvent) -> dict[str, Any]:
    match event.type:
        case "node_started":
            return {"status": "running", "started_at": event.at, "said": None}
        case "node_retrying":
            return {"status": "retrying", "said": event.data.get("reason")}
        case "node_failed":
            return {"status": "failed", "ended_at": event.at, "said": event.data.get("error")}
        case _:
            return {"status": event.data.get("status", "success"), "ended_at": event.at, "said": None}
