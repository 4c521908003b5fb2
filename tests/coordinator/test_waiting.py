"""A session that a person has to decide about: it stops, costs nothing, and goes on when somebody has decided."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.exceptions import (
    ApprovalNeeded,
    SessionCancelled,
    SessionWaiting,
)
from moot.modules.coordinator.domain.model.session import SessionFilter
from moot.modules.coordinator.domain.ports.permission import NodePolicy
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import DecisionRejected
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from tests.coordinator.test_resume import (  # noqa: F401
    ALL,
    MACRO,
    WORKSPACE,
    Process,
    closed_in_the_end,
    hours,
    later,
    said,
)


class Asking(NodePolicy):
    """Wants a person for what it is told to, until one has said yes or no."""

    def __init__(self, *about: str) -> None:
        self.about, self.answer, self.escalation = set(about), None, uuid4()

    def ask(self, what: str) -> None:
        if what in self.about:
            if self.answer is None:
                raise ApprovalNeeded(SAY("session_running", session_id=what), self.escalation)
            if self.answer == "no":
                raise DecisionRejected(f"{what}: a person said no")

    async def admit(self, request: ResearchRequest) -> ResearchRequest:
        self.ask("request")
        return request

    async def authorise(self, node_type: str, symbol: str, options: dict[str, Any]) -> None:
        self.ask(node_type)

    async def review(self, node_type: str, result: dict[str, Any]) -> dict[str, Any]:
        self.ask(f"{node_type}'s result")
        return result


async def waiting(process: Process) -> UUID:
    with pytest.raises(SessionWaiting) as refused:
        await process.ask()
    assert refused.value.details["escalation_id"]
    return UUID(refused.value.details["session_id"])


@pytest.mark.parametrize("about", ["request", "macro_intelligence", "debate", "judge's result"])
async def test_a_session_waits_for_a_person_and_then_goes_on_to_the_same_result(
    database: Database,
    hours,  # noqa: F811
    about,
) -> None:
    first = Process(database, hours)
    undisturbed = await first.sessions.outcome(UUID((await first.ask()).session_id), WORKSPACE)
    policy = Asking(about)
    process = Process(database, hours, policy=policy)
    session_id = await waiting(process)
    assert (await process.session(session_id)).status == "waiting"
    assert await process.sessions.find_left_behind() == []
    later(hours)
    assert await Process(database, hours).sessions.find_left_behind() == [], "nobody takes it up on their own"
    with pytest.raises(SessionWaiting):
        await process.sessions.resume(session_id, WORKSPACE)

    policy.answer = "yes"
    await process.sessions.wake(session_id)
    assert said(await process.sessions.outcome(session_id, WORKSPACE)) == said(undisturbed)
    assert (await verify(process.trail, session_id)).intact
    assert len(await process.nodes(session_id)) == len(ALL) + 2


async def test_what_a_person_refuses_is_not_done(database: Database, hours) -> None:  # noqa: F811
    policy = Asking("judge's result")
    process = Process(database, hours, policy=policy)
    session_id = await waiting(process)
    policy.answer = "no"
    await process.sessions.wake(session_id)
    result = await process.sessions.outcome(session_id, WORKSPACE)
    assert (result.verdict, result.verdict_status) == (None, "failed")
    assert "a person said no" in (result.reason or "")


async def test_a_waiting_session_can_be_cancelled(database: Database, hours) -> None:  # noqa: F811
    process = Process(database, hours, policy=Asking("request"))
    session_id = await waiting(process)
    await process.sessions.cancel(session_id, WORKSPACE)
    assert (await process.session(session_id)).status == "cancelled"
    with pytest.raises(SessionCancelled):
        await process.sessions.outcome(session_id, WORKSPACE)


async def test_a_request_the_rules_refuse_ends_the_session_before_anybody_is_asked(
    database: Database,
    hours,  # noqa: F811
) -> None:
    policy = Asking("request")
    policy.answer = "no"
    process = Process(database, hours, policy=policy)
    with pytest.raises(DecisionRejected):
        await process.ask(MACRO)
    assert process.research.calls == []
    (session,) = (await process.repository.list_sessions(SessionFilter(workspace_id=WORKSPACE))).items
    assert (session.status, session.verdict_status) == ("failed", "failed")
    assert "a person said no" in (session.reason or "")
