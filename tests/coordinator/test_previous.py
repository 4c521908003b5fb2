"""The last verdict on a symbol goes with the next question about it, and stays with it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from moot.desk import Moot
from moot.modules.coordinator.application.results import remember
from moot.modules.coordinator.domain.model.session import Judged, NodeExecution
from moot.modules.coordinator.infrastructure.session_repository import SqlResearchSessionRepository
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_session_repository import a_session
from tests.fakes.clock import TickingClock

NOON = datetime(2026, 6, 30, 12, tzinfo=UTC)
SEEN = {"kind": "a.kind", "as_of": "2026-06-29T12:00:00Z"}
ARGUMENT = {
    "claims": [
        {"id": "a.up", **SEEN, "side": "for", "strength": 0.5, "says": {"zh-CN": "涨", "en-US": "up"}},
        {"id": "b.down", **SEEN, "side": "against", "strength": 0.75, "says": {"zh-CN": "跌"}},
        {
            "id": "c.flat",
            **SEEN,
            "side": "neither",
            "strength": 0.25,
            "says": {"zh-CN": "平", "en-US": "flat"},
        },
    ],
    "strengths": {"a.up": 0.4, "b.down": 0.6, "c.flat": 0.25},
}
DEBATE = {"direction": "BULLISH", "argument": ARGUMENT}
VERDICT = {"action": "BUY", "confidence": 0.7}


@pytest.fixture
async def repository(database):
    trail = AuditTrail(database)
    yield SqlResearchSessionRepository(trail)
    await trail.finish()


async def judged(
    repository: SqlResearchSessionRepository, asked_on: int = 0, known_on: int = 0, **changes: Any
) -> UUID:
    """A session with a verdict, asked so many days after noon, about what was known so many days after it."""
    known = {
        "verdict_status": "judged",
        "verdict_action": "BUY",
        "status": "completed",
        "trigger_source": "cli",
    }
    times = {
        "created_at": NOON + timedelta(days=asked_on),
        "as_of": NOON + timedelta(days=known_on),
    }
    session = a_session(
        id=uuid4(), **{**known, **times, "parent_session_id": None, "workspace_id": "default", **changes}
    )
    nodes = [
        NodeExecution(
            id=uuid4(),
            session_id=session.id,
            node_type=name,
            status="success",
            result_data=data,
            started_at=NOON,
        )
        for name, data in {"technical_analyst": {"big": 1}, "debate": DEBATE, "judge": VERDICT}.items()
    ]
    await repository.save_session(session, nodes=nodes)
    await repository.update_session(session)
    return session.id


async def test_it_is_that_of_the_latest_moment_however_late_another_was_asked(repository):
    latest = await judged(repository, asked_on=1, known_on=3)
    await judged(repository, asked_on=2, known_on=1)
    await judged(repository, asked_on=3, known_on=5)
    found = await repository.last_judged("default", a_session().symbol, NOON + timedelta(days=4))
    assert found == Judged(latest, NOON + timedelta(days=3), DEBATE, VERDICT)


@pytest.mark.parametrize(
    "other",
    [
        {"workspace_id": "theirs"},
        {"symbol": "900009.DEMO"},
        {"trigger_source": "contest"},
        {"verdict_status": "abstained", "verdict_action": None},
        {"known_on": 9},
    ],
    ids=str,
)
async def test_what_is_anothers_unjudged_of_the_future_or_a_what_if_is_none(repository, other):
    await judged(repository, **other)
    assert await repository.last_judged("default", a_session().symbol, NOON + timedelta(days=4)) is None


def test_its_claims_pull_as_far_as_they_did_in_the_end_and_speak_the_next_readers_language():
    past = remember(Judged(UUID(int=1), NOON, DEBATE, VERDICT), "en-US")
    assert past is not None
    assert (past.action, past.confidence) == ("BUY", 0.7)
    assert {name: claim.pull for name, claim in past.claims.items()} == {
        "a.up": 0.4,
        "b.down": -0.6,
        "c.flat": 0,
    }
    assert [claim.says for claim in past.claims.values()] == [
        {"en-US": "up"},
        {"zh-CN": "跌"},
        {"en-US": "flat"},
    ]


def test_a_verdict_without_an_argument_is_not_looked_back_at():
    assert remember(Judged(UUID(int=1), NOON, {"direction": "BULLISH"}, VERDICT), "en-US") is None


@pytest.fixture
async def desk(home, clock):
    async with Moot(Settings(home=home, log_level="error"), clock=TickingClock(clock.now())) as desk:
        yield desk


async def test_a_session_keeps_the_verdict_before_it_and_so_do_its_retries(desk):
    asked = {"experts": ["technical_analyst", "valuation_modeler"], "as_of": "2026-03-31"}
    first = await desk.research("900001.DEMO", **asked | {"as_of": "2026-03-30"})
    second = await desk.session((await desk.research("900001.DEMO", **asked)).session_id)
    third = await desk.session((await desk.research("900001.DEMO", **asked, skip_debate=True)).session_id)
    assert (await desk.session(first.session_id)).previous is None
    assert str(second.previous.session_id) == first.session_id
    assert (second.previous.action, second.previous.confidence) == (
        first.verdict.action,
        first.verdict.confidence,
    )
    claims = {claim["id"] for claim in first.debate_outcome["argument"]["claims"]}
    assert second.previous.claims.keys() == claims
    assert third.previous is None, "nobody rules in it"
    again = await desk.session((await desk.research("900001.DEMO", **asked)).session_id)
    assert again.previous == second.previous, "of the same moment, the same answer"
    assert (await desk.replay(second.id)).equal
    assert (await desk.verify(second.id)).intact


async def test_a_store_that_fails_keeps_nobody_from_research(desk, monkeypatch):
    async def fail(*_asked: Any) -> None:
        raise Unavailable("gone")

    monkeypatch.setattr(SqlResearchSessionRepository, "last_judged", fail)
    result = await desk.research("900001.DEMO", ["technical_analyst"], as_of="2026-03-31")
    assert result.verdict_status == "judged"
