"""The desk as an SDK, on both databases, with everything real."""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from moot import Moot
from moot.modules.coordinator.application import run
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.shared.domain.errors import Conflict, InvalidInput, Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import PATIENCE, FixedClock, TickingClock

ALL = {expert.value for expert in ExpertType}


@pytest.fixture
async def desk(home, clock, empty_url):
    database = Database(empty_url)
    await database.upgrade()
    await database.close()
    async with Moot(Settings(home=home, database_url=empty_url), clock=TickingClock(clock.now())) as desk:
        yield desk


async def test_a_desk_does_not_open_with_tables_of_another_build(desk, home, empty_url):
    """What is asked for there would be lost, and nobody would notice."""
    await desk.database.write(lambda db: db.execute(text("UPDATE alembic_version SET build = 'another'")))
    later = Moot(Settings(home=home, database_url=empty_url, log_level="error"))
    with pytest.raises(Unavailable, match="another build") as refused:
        await later.__aenter__()
    assert refused.value.code == "DATABASE_OTHER_BUILD"
    await later.database.close()


@pytest.mark.accepts("A2-08", "A2-09", "A2-11")
async def test_a_session_can_be_read_back_whole(desk):
    result = await desk.research("900001.DEMO", locale="en-US")
    session = await desk.session(UUID(result.session_id))
    assert (session.status, session.verdict_status, session.audit_gaps) == ("completed", "judged", 0)
    assert (session.symbol, session.locale, session.trigger_source) == ("900001.DEMO", "en-US", "sdk")
    assert session.as_of == result.as_of
    rows = {node.node_type: node for node in session.nodes}
    assert rows.keys() == ALL | {"debate", "judge"}
    assert {node.session_id for node in session.nodes} == {session.id}
    for item in result.expert_results.values():
        row = rows[item.expert_type]
        assert {**row.result_data, "evidence": row.evidence} == item.data
        assert row.narrative_report == item.data["narrative_report"]
    judged = rows["judge"]
    assert judged.result_data == result.verdict
    assert all(node.started_at < node.completed_at for node in session.nodes)


async def test_sessions_that_run_together_do_not_mix(desk):
    symbols = [f"9000{n:02}.DEMO" for n in (1, 2, 3, 4, 5)]
    results = await asyncio.gather(*(desk.research(symbol) for symbol in symbols))
    assert [result.symbol for result in results] == symbols
    for result in results:
        session = await desk.session(UUID(result.session_id))
        assert (session.symbol, session.audit_gaps, len(session.nodes)) == (result.symbol, 0, 7)
    page = await desk.sessions(page_size=3)
    assert (page.total, len(page.items)) == (len(symbols), 3)


async def test_the_same_question_gets_the_same_answer(desk):
    one, two = [await desk.research("900004.DEMO", as_of="2026-03-31") for _ in range(2)]
    changing = {"session_id"}
    assert one.model_dump(exclude=changing) == two.model_dump(exclude=changing)


async def test_nothing_known_later_than_as_of_is_used(desk):
    result = await desk.research("900001.DEMO", as_of="2023-05-15")
    facts = [fact for item in result.expert_results.values() for fact in item.data["evidence"]]
    assert facts
    assert max(datetime.fromisoformat(fact["as_of"]) for fact in facts) <= result.as_of


@pytest.mark.parametrize("experts", [[], ["wizard"]])
async def test_the_sdk_refuses_what_rest_refuses(desk, experts):
    with pytest.raises(InvalidInput, match="experts"):
        await desk.research("900001.DEMO", experts)


async def test_a_report_says_what_was_found_in_the_language_of_the_session(desk):
    result = await desk.research("900002.DEMO", locale="zh-CN")
    report = desk.write_report(result).read_text(encoding="utf-8")
    assert report.startswith("# 研究报告：雾港银行（900002.DEMO）\n\n**")
    assert "> 合成数据" in report
    for item in result.expert_results.values():
        for claim in item.data["claims"]:
            assert report.count(claim["says"]["zh-CN"]) == 1, claim["id"]
    assert result.session_id in report
    assert "\n\n\n" not in report


async def test_a_report_without_a_verdict_says_why(desk):
    result = await desk.research("900002.DEMO", ["macro_intelligence"], skip_debate=True, locale="en-US")
    report = desk.write_report(result).read_text(encoding="utf-8")
    assert "No verdict (skipped). The debate was skipped on request." in report
    assert "Direction:" not in report


async def test_an_expert_without_enough_data_fails_alone(desk):
    """On the third day of the market the technical analyst has too few bars to go by."""
    result = await desk.research("900001.DEMO", as_of="2018-01-04", locale="en-US")
    heard = [item for item in result.expert_results.values() if item.status == "success"]
    assert (result.overall_status, len(heard) >= 2) == ("partial", True)
    assert "technical_analyst" not in {item.expert_type for item in heard}


async def test_a_desk_asks_for_a_quorum(home, clock):
    async with Moot(Settings(home=home, judge_quorum=5, persistence=False), clock=clock) as desk:
        result = await desk.research("900001.DEMO", as_of="2018-01-04", locale="en-US")
    assert (result.verdict, result.verdict_status) == (None, "abstained")
    assert "at least 5 are needed" in result.reason


async def test_a_postgres_that_was_not_upgraded_does_not_keep_the_desk_from_answering(
    home, clock, empty_postgres_url
):
    settings = Settings(home=home, database_url=empty_postgres_url)
    async with Moot(settings, clock=clock) as desk:
        readiness = await desk.readiness()
        result = await desk.research("900001.DEMO", ["macro_intelligence", "valuation_modeler"])
    assert readiness["database"]["ok"] is False
    assert (result.verdict_status, result.audit_gaps) == ("judged", 11)
    assert UUID(result.session_id)


async def test_a_session_resumed_on_a_later_day_sees_what_was_there_when_it_began(home, clock):
    """The demo market publishes a day at its end: a session of that day must not see more when it goes on."""
    settings = Settings(home=home)
    async with Moot(settings, clock=clock) as desk:
        undisturbed = await desk.research("900001.DEMO", locale="en-US")
        left = await desk.start("900001.DEMO", locale="en-US")
    async with Moot(settings, clock=FixedClock(clock.now() + timedelta(days=3))) as desk:
        resumed = await desk.resume(left.id)
    parts = {"expert_results", "debate_outcome", "verdict", "as_of"}
    assert resumed.model_dump(mode="json", include=parts) == undisturbed.model_dump(
        mode="json", include=parts
    )


async def test_what_runs_in_the_background_is_followed_to_its_answer(desk):
    desk.settings = desk.settings.model_copy(update={"worker": True})
    started = await desk.start("900002.DEMO", ["technical_analyst", "macro_intelligence"], locale="en-US")
    told = [event async for event in desk.events(started.id)]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert (told[0].type, told[0].data["status"], told[-1].type) == ("session", "queued", "done")
    result = await desk.result(started.id)
    assert (result.verdict_status, result.session_id) == ("judged", str(started.id))
    again = await desk.start("900002.DEMO", ["technical_analyst", "macro_intelligence"], locale="en-US")
    assert again.id != started.id
    with pytest.raises(Conflict):
        await desk.cancel(started.id)


async def test_a_store_that_was_gone_at_the_end_gets_the_end_later(desk, monkeypatch):
    """Otherwise the session would be taken for one whose process died, and be run again."""
    monkeypatch.setattr(run, "STORE_AGAIN", (0.01, 0.01, 0.01))
    repository = desk.coordinator._repository
    store, refused = repository.update_session, []

    async def not_at_first(session, **beside):
        if len(refused) < 2:
            refused.append(session.id)
            raise Unavailable("the database is gone")
        await store(session, **beside)

    monkeypatch.setattr(repository, "update_session", not_at_first)
    result = await desk.research("900001.DEMO", ["macro_intelligence"], skip_debate=True)
    assert result.overall_status == "completed"
    async with asyncio.timeout(PATIENCE):
        while (session := await desk.session(UUID(result.session_id))).status == "running":
            assert session.id not in await desk.coordinator.sessions.find_left_behind()
            await asyncio.sleep(0.01)
    assert (session.status, session.audit_gaps, len(refused)) == ("completed", 0, 2)
