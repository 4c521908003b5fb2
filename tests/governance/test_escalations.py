"""What waits for a person: one answer, by somebody else, for this payload, once, and in time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from moot.modules.governance.application.decision_log import make_record
from moot.modules.governance.application.escalations import EscalationClosed, EscalationService
from moot.modules.governance.domain.decisions import (
    DecisionRequest,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
)
from moot.modules.governance.domain.escalations import (
    Escalation,
)
from moot.modules.governance.domain.rules import RuleAction
from moot.modules.governance.infrastructure.persistence.decision_log import SqlDecisionLog, SqlEscalationQueue
from moot.shared.domain.errors import Forbidden, InvalidInput, NotFound, Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from tests.governance.factories import NOON, request

DESK = "desk"
SESSION = UUID(int=5)
LARGE = request({"symbol": "900001.DEMO", "position_percent": 0.35}, "verdict", goal="a small position")
ASKS = RuleViolation(
    "risk.large", "a large position", RuleAction.REJECT, "35 % needs a person", escalates=True
)


@dataclass
class MovingClock:
    moment: datetime = NOON

    def now(self) -> datetime:
        return self.moment


@dataclass
class PositionValidator:
    """Above 20 % a person is asked; above 50 % nobody is; what is below 0 becomes 0."""

    asked: list[tuple[DecisionRequest, bool]] = field(default_factory=list)

    def validate(self, request: DecisionRequest, *, waived: bool = False) -> ValidationResult:
        self.asked.append((request, waived))
        position = request.payload["position_percent"]
        if position > 0.5:
            stops = replace(ASKS, rule_id="risk.cap", message="more than half", escalates=False)
            return self._result(request, "rejected", ASKS, stops)
        if position < 0:
            return self._result(request, "modified", modified={**request.payload, "position_percent": 0})
        asks = position > 0.2 and not waived
        return self._result(request, "escalated", ASKS) if asks else self._result(request, "approved")

    def _result(
        self,
        of: DecisionRequest,
        status: str,
        *broken: RuleViolation,
        modified: dict[str, Any] | None = None,
    ) -> ValidationResult:
        return ValidationResult(ValidationStatus(status), of, modified, broken, (), NOON)


class Desk:
    """A service on a database, and who was told what."""

    def __init__(self, database: Database) -> None:
        self.clock, self.validator = MovingClock(), PositionValidator()
        self.told: list[tuple[UUID, str]] = []
        self.log = SqlDecisionLog(AuditTrail(database))
        self.service = EscalationService(
            SqlEscalationQueue(AuditTrail(database)), self.clock, self._waived, self._notify
        )

    async def _waived(self, request: DecisionRequest, workspace: str) -> ValidationResult:
        assert workspace == DESK
        return self.validator.validate(request, waived=True)

    async def _notify(self, escalation: Escalation) -> None:
        self.told.append((escalation.id, escalation.status))

    async def ask(self, asked: DecisionRequest = LARGE, session_id: UUID | None = SESSION) -> Escalation:
        result = self.validator.validate(asked)
        record = await self.log.write(make_record(asked, result, session_id=session_id, workspace=DESK))
        return await self.service.open(asked, record)

    async def use(
        self, asked: DecisionRequest = LARGE, session_id: UUID | None = SESSION, workspace: str = DESK
    ) -> Mapping[str, Any] | None:
        used = await self.service.use(asked, session_id=session_id, workspace=workspace)
        return used and (asked.payload if used.approved_payload is None else used.approved_payload)

    async def approve(self, escalation: Escalation, **changes: Any) -> Escalation:
        given = {"by": "Ms Wu", "reason": "known company"} | changes
        return await self.service.approve(escalation.id, given.pop("workspace", DESK), **given)

    async def status(self, escalation: Escalation) -> str:
        return (await self.service.get(escalation.id, DESK)).status


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


class TestAnEscalation:
    async def test_waits_with_what_a_person_needs_to_know(self, desk):
        asked = await desk.ask()
        (waiting,) = (await desk.service.list_waiting(DESK)).items
        assert waiting == asked
        assert (waiting.payload, waiting.context) == (LARGE.payload, LARGE.context)
        assert (waiting.status, waiting.why) == ("pending", ["35 % needs a person"])
        assert (waiting.requester, waiting.session_id) == ("agent", SESSION)
        assert waiting.expires_at - waiting.requested_at == timedelta(hours=24)

    async def test_outlives_the_process(self, desk, database):
        asked = await desk.ask()
        again = Desk(database)
        await again.approve(asked)
        assert await again.use() == LARGE.payload

    async def test_that_is_asked_again_waits_once(self, desk):
        first, second = await desk.ask(), await desk.ask(replace(LARGE, decision_id="d-2"))
        assert first == second
        other = await desk.ask(replace(LARGE, payload={**LARGE.payload, "position_percent": 0.4}))
        assert other.id != first.id
        assert (await desk.service.list_waiting(DESK)).total == 2

    async def test_needs_a_decision_that_is_on_record(self, desk):
        record = await desk.log.write(
            make_record(LARGE, desk.validator.validate(LARGE), session_id=SESSION, workspace=DESK)
        )
        with pytest.raises(Unavailable):
            await desk.service.open(LARGE, record.model_copy(update={"id": uuid4()}))

    async def test_is_listed_with_the_oldest_first_in_pages(self, desk):
        asked = []
        for minute in range(5):
            desk.clock.moment = NOON + timedelta(minutes=minute)
            asked.append(await desk.ask(session_id=UUID(int=minute)))
        page = await desk.service.list_waiting(DESK, page=2, page_size=2)
        assert (page.total, page.items) == (5, asked[2:4])
        assert (await desk.service.list_waiting("other")).total == 0

    async def test_keeps_no_secret(self, desk, database):
        secret = "Bearer abcdefghijklmnop"
        asked = await desk.ask(replace(LARGE, payload={**LARGE.payload, "auth": secret}))
        await desk.approve(asked, reason=f"she has {secret}")
        async with database.session() as db:
            assert "abcdefghijklmnop" not in str((await db.execute(text("SELECT * FROM escalations"))).all())


class TestAnAnswer:
    async def test_names_who_and_why_and_whoever_waits_is_told(self, desk):
        asked = await desk.ask()
        desk.clock.moment = NOON + timedelta(hours=1)
        approved = await desk.approve(asked)
        assert (approved.status, approved.decided_by, approved.reason) == (
            "approved",
            "Ms Wu",
            "known company",
        )
        assert approved.decided_at == NOON + timedelta(hours=1)
        assert desk.told == [(asked.id, "approved")]
        assert (await desk.service.list_waiting(DESK)).total == 0

    async def test_no_lets_nothing_through(self, desk):
        asked = await desk.ask()
        rejected = await desk.service.reject(asked.id, DESK, by="Ms Wu", reason="too much")
        assert (rejected.status, rejected.reason) == ("rejected", "too much")
        assert desk.told == [(asked.id, "rejected")]
        assert await desk.use() is None
        standing = await desk.service.find_standing(LARGE, session_id=SESSION, workspace=DESK)
        assert standing == rejected

    @pytest.mark.parametrize("by", ["agent", " Agent "])
    async def test_never_comes_from_the_requester(self, desk, by):
        asked = await desk.ask()
        with pytest.raises(Forbidden, match="cannot decide about it"):
            await desk.approve(asked, by=by)
        with pytest.raises(Forbidden, match="cannot decide about it"):
            await desk.service.edit(asked.id, DESK, by=by, payload={"position_percent": 0.1}, reason="fine")
        assert (await desk.status(asked), desk.told) == ("pending", [])

    @pytest.mark.parametrize("given", [{"by": " "}, {"reason": ""}])
    async def test_needs_a_name_and_a_reason(self, desk, given):
        asked = await desk.ask()
        with pytest.raises(InvalidInput, match="a name and a reason"):
            await desk.approve(asked, **given)

    async def test_from_another_workspace_finds_nothing(self, desk):
        asked = await desk.ask()
        with pytest.raises(NotFound, match="no escalation"):
            await desk.approve(asked, workspace="other")
        with pytest.raises(NotFound, match="no escalation"):
            await desk.service.get(asked.id, "other")
        assert await desk.status(asked) == "pending"

    async def test_comes_once_whoever_is_second_is_told_who_was_first(self, desk):
        asked = await desk.ask()
        await desk.approve(asked)
        with pytest.raises(EscalationClosed, match="approved already: Ms Wu decided at 2026-03-02T12:00"):
            await desk.service.reject(asked.id, DESK, by="Mr Li", reason="no")
        assert await desk.status(asked) == "approved"

    async def test_of_many_at_once_has_one_winner(self, desk, database):
        asked = await desk.ask()
        desks = [Desk(database) for _ in range(8)]
        answers = [
            each.approve(asked, by=f"person {n}")
            if n % 2
            else each.service.reject(asked.id, DESK, by=f"person {n}", reason="no")
            for n, each in enumerate(desks)
        ]
        ended = await asyncio.gather(*answers, return_exceptions=True)
        won = [answer for answer in ended if isinstance(answer, Escalation)]
        assert len(won) == 1
        assert [type(lost) for lost in ended if lost not in won] == [EscalationClosed] * 7
        assert await desk.service.get(asked.id, DESK) == won[0]

    async def test_stands_when_nobody_could_be_told(self, database):
        async def nobody(_: Escalation) -> None:
            raise RuntimeError("no session there")

        desk = Desk(database)
        asked = await desk.ask()
        service = EscalationService(
            SqlEscalationQueue(AuditTrail(database)), desk.clock, desk._waived, nobody
        )
        assert (await service.approve(asked.id, DESK, by="Ms Wu", reason="yes")).status == "approved"
        assert await desk.status(asked) == "approved"


class TestAnEdit:
    async def edit(self, desk: Desk, asked: Escalation, position: float) -> Escalation:
        payload = {**LARGE.payload, "position_percent": position}
        return await desk.service.edit(asked.id, DESK, by="Ms Wu", payload=payload, reason="smaller")

    async def test_is_validated_again_and_goes_in_place_of_the_proposal(self, desk):
        asked = await desk.ask()
        approved = await self.edit(desk, asked, 0.3)
        request, waived = desk.validator.asked[-1]
        assert (request.payload["position_percent"], request.context, waived) == (0.3, LARGE.context, True)
        assert (approved.status, approved.payload) == ("approved", LARGE.payload)
        assert await desk.use() == {**LARGE.payload, "position_percent": 0.3}

    async def test_that_breaks_a_rule_is_refused_with_the_rule(self, desk):
        asked = await desk.ask()
        with pytest.raises(Forbidden, match="more than half") as refused:
            await self.edit(desk, asked, 0.9)
        assert [violation["rule"] for violation in refused.value.details["violations"]] == ["risk.cap@1"]
        assert (await desk.status(asked), desk.told) == ("pending", [])

    async def test_goes_on_as_the_rules_correct_it(self, desk):
        asked = await desk.ask()
        await self.edit(desk, asked, -0.1)
        assert await desk.use() == {**LARGE.payload, "position_percent": 0}


class TestUsing:
    async def test_an_approval_works_once(self, desk):
        asked = await desk.ask()
        assert await desk.use() is None
        await desk.approve(asked)
        assert await desk.use() == LARGE.payload
        assert await desk.use(replace(LARGE, decision_id="d-2")) is None
        assert await desk.status(asked) == "used"

    async def test_a_decision_that_is_resumed_finds_its_own_approval_again(self, desk):
        asked = await desk.ask()
        await desk.approve(asked)
        await desk.use()
        desk.clock.moment = NOON + timedelta(days=30)
        assert await desk.use() == LARGE.payload
        assert await desk.use(session_id=UUID(int=6)) is None

    @pytest.mark.parametrize(
        ("asked", "where"),
        [
            (replace(LARGE, payload={**LARGE.payload, "position_percent": 0.36}), {}),
            (replace(LARGE, payload={**LARGE.payload, "leverage": 2}), {}),
            (replace(LARGE, decision_type="node"), {}),
            (replace(LARGE, requester="another agent"), {}),
            (LARGE, {"session_id": UUID(int=6)}),
            (LARGE, {"session_id": None}),
            (LARGE, {"workspace": "other"}),
        ],
    )
    async def test_an_approval_is_for_nothing_else(self, desk, asked, where):
        await desk.approve(await desk.ask())
        assert await desk.use(asked, **where) is None
        assert await desk.use() == LARGE.payload

    async def test_an_approval_without_a_session_works_too(self, desk):
        await desk.approve(await desk.ask(session_id=None))
        assert await desk.use(session_id=None) == LARGE.payload
        assert await desk.use(replace(LARGE, decision_id="d-2"), session_id=None) is None

    async def test_of_many_at_once_one_gets_it(self, desk, database):
        await desk.approve(await desk.ask())
        uses = (Desk(database).use(replace(LARGE, decision_id=f"d-{n}")) for n in range(8))
        found = await asyncio.gather(*uses)
        assert sorted(found, key=bool) == [None] * 7 + [LARGE.payload]

    async def test_a_secret_in_the_payload_is_still_there_for_whoever_acts(self, desk):
        asked = replace(LARGE, payload={**LARGE.payload, "auth": "Bearer abcdefghijklmnop"})
        await desk.approve(await desk.ask(asked))
        assert await desk.use(asked) == asked.payload


class TestOutOfTime:
    async def test_no_answer_is_a_no(self, desk):
        asked = await desk.ask()
        desk.clock.moment = asked.expires_at
        assert await desk.status(asked) == "expired"
        assert (await desk.service.list_waiting(DESK)).total == 0
        with pytest.raises(EscalationClosed, match="expired at 2026-03-03T12:00"):
            await desk.approve(asked)
        assert await desk.use() is None

    async def test_an_edit_that_is_examined_for_too_long_comes_too_late(self, desk, monkeypatch):
        asked = await desk.ask()

        def slowly(request: DecisionRequest, *, waived: bool) -> ValidationResult:
            desk.clock.moment = asked.expires_at
            return PositionValidator().validate(request, waived=waived)

        monkeypatch.setattr(desk.validator, "validate", slowly)
        with pytest.raises(EscalationClosed):
            await desk.service.edit(asked.id, DESK, by="Ms Wu", payload=LARGE.payload, reason="fine")
        assert (await desk.status(asked), desk.told) == ("expired", [])

    async def test_a_moment_earlier_is_in_time(self, desk):
        asked = await desk.ask()
        desk.clock.moment = asked.expires_at - timedelta(microseconds=1)
        await desk.approve(asked)
        desk.clock.moment = asked.expires_at + timedelta(hours=1)
        assert await desk.use() == LARGE.payload

    async def test_an_approval_nobody_uses_lapses(self, desk):
        asked = await desk.ask()
        approved = await desk.approve(asked)
        desk.clock.moment = approved.expires_at
        assert await desk.use() is None
        assert await desk.status(asked) == "expired"

    async def test_a_sweep_writes_it_down_and_tells_once(self, desk, database):
        asked, answered = await desk.ask(), await desk.ask(session_id=UUID(int=6))
        await desk.service.reject(answered.id, DESK, by="Ms Wu", reason="no")
        desk.told.clear()
        assert await desk.service.sweep() == []

        desk.clock.moment = asked.expires_at
        assert [late.id for late in await desk.service.sweep()] == [asked.id]
        assert await desk.service.sweep() == []
        assert desk.told == [(asked.id, "expired")]
        async with database.session() as db:
            stored = await db.scalars(text("SELECT status FROM escalations ORDER BY status"))
            assert list(stored) == ["expired", "rejected"]

    async def test_what_expired_can_be_asked_again(self, desk):
        first = await desk.ask()
        desk.clock.moment = first.expires_at
        second = await desk.ask()
        assert (second.id != first.id, second.status) == (True, "pending")
