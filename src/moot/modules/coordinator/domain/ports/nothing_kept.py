"""The store of a desk that stores nothing: what nobody waits for is dropped, whoever wants something back is told."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from moot.modules.coordinator.domain.model.events import SessionEvent
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.ports.session_leases import ISessionLeases
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import Renewal


async def refuse(*_asked: Any, **_more: Any) -> NoReturn:
    raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")


class NothingKept(IResearchSessionRepository, ISessionLeases):
    lasting = False

    async def save_session(self, session: ResearchSession, *, at_leisure: bool = False, **_: Any) -> None:
        if not at_leisure:
            await refuse()

    async def update_session(self, session: ResearchSession, *, events: Sequence[SessionEvent] = ()) -> None:
        return None

    async def save_node_execution(self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()) -> None:
        return None

    async def settle(self) -> None:
        return None

    def note_event(self, session_id: UUID, event: SessionEvent) -> None:
        return None

    events_after = wait_for_events = refuse
    get_session_by_id = get_session_by_key = list_sessions = get_node_executions_by_session = refuse
    acquire = request_cancel = refuse

    async def renew(self, owner: str, rows: Sequence[UUID], until: datetime) -> Renewal:
        return Renewal(set(), set())

    async def release(self, owner: str, now: datetime) -> None:
        return None

    async def left_behind(self, now: datetime, at_most: int) -> list[UUID]:
        return []

    async def pause(self, session_id: UUID, token: int) -> None:
        return None

    async def wake(self, session_id: UUID) -> bool:
        return False


class NoRecord:
    """What others would have written down while a session ran: stands for `SessionRecord` and `TextStore`."""

    llm_calls = api_calls = close_calls = verify = chain = staticmethod(refuse)
    sessions_before = count = drop = drop_loose = staticmethod(refuse)


NOTHING_KEPT = NothingKept()
NO_RECORD = NoRecord()
