"""A session run again from its record: the same to the last value, without a network, on any later day."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, text, update

from moot.desk import Moot
from moot.modules.coordinator.application.replay import NodeReplay, Replay, differences
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.modules.llm_platform.application import llm_service
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.domain.errors import Conflict, Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from moot.shared.infrastructure.tables import Base
from moot.shared.infrastructure.transactions import transaction
from tests.fakes.careful_model import careful
from tests.fakes.clock import FixedClock
from tests.fakes.llm_server import LLMServer, Status, running_llm_server
from tests.fakes.search_server import LocalWeb, Reply, local_web
from tests.fakes.tushare_server import TOKEN, TushareServer
from tests.fakes.tushare_tables import tushare_tables

NOW = FixedClock(datetime(2026, 10, 30, 12, 0, tzinfo=UTC))
LATER = FixedClock(NOW.now() + timedelta(days=75))
AFTER_THE_CLOSE = FixedClock(datetime(2026, 10, 30, 8, 30, tzinfo=UTC))
"""16:30 on the exchange: the day is over, and its figures are not out yet."""
DEMO, SHARE = "900001.DEMO", "600001.SH"
FEW = ["technical_analyst", "catalyst_detective"]


@pytest.fixture
def settings(home: Path, database: Database) -> dict[str, Any]:
    return {"home": home, "database_url": database.safe_url, "log_level": "error"}


@asynccontextmanager
async def a_desk(settings: dict[str, Any], clock: FixedClock = LATER, **more: Any) -> AsyncIterator[Moot]:
    async with Moot(Settings(**settings | more), clock=clock) as desk:
        yield desk


def asking(server: LLMServer) -> dict[str, str]:
    return {"llm_base_url": server.url, "llm_model": "careful-1"}


async def replay(desk: Moot, session_id: str) -> Replay:
    return await desk.coordinator.replay_service().replay(UUID(session_id), "default")


def outcomes(replayed: Replay) -> dict[str, str]:
    return {node.node_type: node.outcome for node in replayed.nodes}


def of(replayed: Replay, node_type: str) -> NodeReplay:
    return next(node for node in replayed.nodes if node.node_type == node_type)


async def row_counts(database: Database) -> dict[str, int]:
    async with transaction(database.session) as db:
        tables = Base.metadata.sorted_tables
        return {t.name: (await db.scalar(select(func.count()).select_from(t))) or 0 for t in tables}


async def change(database: Database, statement: Any) -> None:
    async with transaction(database.session) as db:
        await db.execute(statement)
        await db.commit()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Models that fail are asked again at once."""
    monkeypatch.setattr(llm_service, "PAUSES", (0.01, 0.01))


class TestByRule:
    @pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
    async def test_on_another_day_it_comes_out_the_same(self, settings, database, locale):
        async with a_desk(settings, NOW) as desk:
            result = await desk.research(DEMO, locale=locale)
        before = await row_counts(database)
        async with a_desk(settings) as desk:
            replayed = await replay(desk, result.session_id)
            assert (await desk.verify(UUID(result.session_id))).intact
        assert (replayed.equal, replayed.ending) == (True, [])
        assert set(outcomes(replayed).values()) == {"same"}
        assert len(replayed.nodes) == 7
        assert await row_counts(database) == before, "a replay leaves no trace"

    async def test_a_model_that_was_added_since_is_not_asked(self, settings, llm_server):
        async with a_desk(settings, NOW) as desk:
            result = await desk.research(DEMO, FEW)
        async with a_desk(settings, **asking(llm_server)) as desk:
            assert (await replay(desk, result.session_id)).equal
        assert llm_server.requests == []

    async def test_without_a_debate(self, settings):
        async with a_desk(settings, NOW) as desk:
            result = await desk.research(DEMO, FEW, skip_debate=True, as_of="2026-09-01")
        async with a_desk(settings) as desk:
            replayed = await replay(desk, result.session_id)
        assert replayed.equal
        assert list(outcomes(replayed)) == FEW

    async def test_other_data_are_told_place_by_place(self, settings, database):
        async with a_desk(settings, NOW) as desk:
            result = await desk.research(DEMO, FEW)
        async with a_desk(settings, demo_seed=7) as desk:
            replayed = await replay(desk, result.session_id)
        technical = of(replayed, "technical_analyst")
        assert (replayed.equal, technical.outcome) == (False, "differs")
        assert len(technical.differences) == 5
        assert technical.more > 0
        assert technical.differences[0].then != technical.differences[0].now

    async def test_a_row_that_was_changed_is_found_with_both_values(self, settings, database):
        async with a_desk(settings, NOW) as desk:
            result = await desk.research(DEMO, FEW)
        row = NodeExecutionRow
        changed = {**result.verdict, "confidence": 0.125}
        changed["levels"] = {**result.verdict["levels"], "stop": 1}
        statement = update(row).where(row.node_type == "judge").values(result_data=changed)
        await change(database, statement)
        async with a_desk(settings) as desk:
            replayed = await replay(desk, result.session_id)
        judge = of(replayed, "judge")
        told = {d.path: (d.then, d.now) for d in judge.differences}
        assert told["confidence"] == (0.125, result.verdict["confidence"])
        assert told["levels.stop"] == (1, result.verdict["levels"].get("stop"))
        assert (len(told), judge.more, replayed.equal) == (2, 0, False)
        assert set(outcomes(replayed).values()) == {"same", "differs"}

    async def test_another_ending_is_found(self, settings, database):
        async with a_desk(settings, NOW) as desk:
            result = await desk.research(DEMO, FEW)
        await change(database, update(ResearchSessionRow).values(status="partial"))
        async with a_desk(settings) as desk:
            replayed = await replay(desk, result.session_id)
        assert [d.model_dump() for d in replayed.ending] == [
            {"path": "status", "then": "partial", "now": "completed"}
        ]
        assert (replayed.equal, set(outcomes(replayed).values())) == (False, {"same"})


class TestByModel:
    async def test_with_every_server_gone_it_comes_out_the_same(self, settings, database):
        async with running_llm_server() as server:
            server.default = careful
            async with a_desk(settings, NOW, **asking(server)) as desk:
                result = await desk.research(DEMO, locale="en-US")
        before, asked = await row_counts(database), len(server.requests)
        assert (asked, result.verdict_status) == (9, "judged")
        async with a_desk(settings, **asking(server)) as desk:
            replayed = await replay(desk, result.session_id)
        assert replayed.equal, replayed.nodes
        assert set(outcomes(replayed).values()) == {"same"}
        assert (await row_counts(database), len(server.requests)) == (before, asked)

    async def test_a_model_that_was_removed_since_still_answers(self, settings, llm_server):
        llm_server.default = careful
        async with a_desk(settings, NOW, **asking(llm_server)) as desk:
            result = await desk.research(DEMO, FEW)
        async with a_desk(settings) as desk:
            assert (await replay(desk, result.session_id)).equal

    async def test_a_server_that_is_there_is_not_asked(self, settings, llm_server):
        llm_server.default = careful
        async with a_desk(settings, NOW, **asking(llm_server)) as desk:
            result = await desk.research(DEMO, FEW)
            asked = len(llm_server.requests)
            assert (await replay(desk, result.session_id)).equal
        assert len(llm_server.requests) == asked

    async def test_a_changed_prompt_is_shown_where_it_changed(self, settings, llm_server):
        llm_server.default = careful
        async with a_desk(settings, NOW, **asking(llm_server)) as desk:
            result = await desk.research(DEMO, ["technical_analyst"], skip_debate=True)
            asked = len(llm_server.requests)
        async with a_desk(settings, demo_seed=7, **asking(llm_server)) as desk:
            replayed = await replay(desk, result.session_id)
        technical = of(replayed, "technical_analyst")
        assert (technical.outcome, technical.differences[0].path) == ("differs", "status")
        assert any(line.startswith("-technical.") for line in technical.prompt)
        assert len(llm_server.requests) == asked

    async def test_what_failed_then_and_has_no_answer_now_failed_alike(self, settings, llm_server):
        def out_of_order(body: dict[str, Any]) -> Any:
            answer = careful(body)
            return Status(500, "out of order") if '"key_technical_levels"' in str(answer.content) else answer

        llm_server.default = out_of_order
        async with a_desk(settings, NOW, **asking(llm_server)) as desk:
            first = await desk.research(DEMO, [*FEW, "valuation_modeler"])
            llm_server.default = careful
            retried = await desk.retry(UUID(first.session_id))
        assert (first.overall_status, retried.overall_status) == ("partial", "completed")
        async with a_desk(settings) as desk:
            replayed = await replay(desk, first.session_id)
            again = await replay(desk, retried.session_id)
        assert (replayed.equal, of(replayed, "technical_analyst").outcome) == (True, "failed_alike")
        assert again.equal, again.nodes
        assert {node.node_type for node in again.nodes if node.reused} == {
            "catalyst_detective",
            "valuation_modeler",
        }

    async def test_where_rules_had_stood_in_they_do_again(self, settings, llm_server):
        llm_server.default = Status(401, "bad key")
        async with a_desk(settings, NOW, analyst_fallback="rubric", **asking(llm_server)) as desk:
            result = await desk.research(DEMO, FEW)
        async with a_desk(settings, **asking(llm_server)) as desk:
            replayed = await replay(desk, result.session_id)
        assert replayed.equal, replayed.nodes

    async def test_an_abstention_is_repeated_in_the_same_words(self, settings, llm_server):
        def out_of_order(body: dict[str, Any]) -> Any:
            answer = careful(body)
            return Status(400, "no") if '"key_technical_levels"' in str(answer.content) else answer

        llm_server.default = out_of_order
        async with a_desk(settings, NOW, judge_quorum=3, **asking(llm_server)) as desk:
            result = await desk.research(DEMO, [*FEW, "valuation_modeler"])
        assert result.verdict_status == "abstained"
        async with a_desk(settings, judge_quorum=3, **asking(llm_server)) as desk:
            replayed = await replay(desk, result.session_id)
        assert (replayed.equal, of(replayed, "judge").outcome) == (True, "failed_alike")


@pytest.fixture(scope="module")
def tables() -> dict[str, list[dict[str, Any]]]:
    """The market as it is known later."""
    return asyncio.run(tushare_tables(LATER, [SHARE], date(2025, 1, 1)))


class TestOfARealShare:
    """Market data over HTTP, the web over HTTP, a model over HTTP: then, and never again."""

    @staticmethod
    def pages(web: LocalWeb) -> None:
        dated = {"title": "订单", "url": "https://news.example/1", "content": "公司签下大单"}
        undated = {"title": "传闻", "url": "https://news.example/2", "content": "公司或有新品"}
        found = {"results": [{**dated, "publishedDate": "2026-10-29T08:00:00+00:00"}, undated]}
        web.replies["/search"] = Reply(json.dumps(found))

    async def test_months_later_all_servers_gone_the_prompts_are_the_same(self, settings, database, tables):
        with TushareServer(tables) as market:
            async with running_llm_server() as model, local_web() as web:
                model.default = careful
                self.pages(web)
                sources = {"tushare_token": TOKEN, "tushare_url": market.url, "searxng_url": web.url}
                at_work = settings | sources | asking(model)
                async with a_desk(at_work, AFTER_THE_CLOSE) as desk:
                    result = await desk.research(SHARE, FEW)
                async with a_desk(at_work) as desk:
                    upkeep = desk.market_data.upkeep()
                    await upkeep.sync(await upkeep.plan([SHARE], None, None, None))
                counts = [len(market.requests), len(model.requests), len(web.asked)]
                told = model.requests[0].prompt + model.requests[1].prompt
        assert (result.overall_status, min(counts) > 0) == ("completed", True)
        assert "传闻" in told, "a page without a date was seen, because the session was of its present"
        before = await row_counts(database)
        async with a_desk(at_work) as desk:
            replayed = await replay(desk, result.session_id)
        assert replayed.equal, replayed.nodes
        assert [len(market.requests), len(model.requests), len(web.asked)] == counts
        assert await row_counts(database) == before

        async with a_desk(settings, tushare_token=TOKEN, tushare_url=market.url) as desk:
            assert (await replay(desk, result.session_id)).equal, "no model and no web search any more"

        shutil.rmtree(settings["home"] / "lake")
        async with a_desk(at_work) as desk:
            bare = await replay(desk, result.session_id)
        (status, error) = of(bare, "technical_analyst").differences
        assert (bare.equal, status.now) == (False, "failed")
        assert "数据湖" in error.now
        assert len(market.requests) == counts[0]

    async def test_a_web_search_that_was_set_up_since_is_not_used(self, settings, tables):
        with TushareServer(tables) as market:
            async with running_llm_server() as model, local_web() as web:
                model.default = careful
                at_work = settings | {"tushare_token": TOKEN, "tushare_url": market.url} | asking(model)
                async with a_desk(at_work, NOW) as desk:
                    result = await desk.research(SHARE, ["catalyst_detective"], skip_debate=True)
                async with a_desk(at_work, searxng_url=web.url) as desk:
                    replayed = await replay(desk, result.session_id)
                assert replayed.equal, replayed.nodes
                assert web.asked == []


class TestWhatCannotBeReplayed:
    @pytest.fixture
    async def session_id(self, settings, llm_server) -> str:
        llm_server.default = careful
        async with a_desk(settings, NOW, **asking(llm_server)) as desk:
            return (await desk.research(DEMO, FEW, skip_debate=True)).session_id

    @pytest.mark.parametrize("status", ["queued", "running"])
    async def test_one_that_has_not_ended(self, settings, database, session_id, status):
        await change(database, update(ResearchSessionRow).values(status=status))
        async with a_desk(settings) as desk:
            with pytest.raises(Conflict, match=session_id) as refused:
                await replay(desk, session_id)
        assert refused.value.code == "SESSION_RUNNING"

    async def test_one_that_was_cancelled_before_anything(self, settings, database, session_id):
        await change(database, text("DELETE FROM node_executions"))
        await change(database, update(ResearchSessionRow).values(status="cancelled"))
        async with a_desk(settings) as desk:
            with pytest.raises(Conflict) as refused:
                await replay(desk, session_id)
        assert refused.value.code == "NOTHING_ON_RECORD"

    async def test_one_whose_texts_were_pruned(self, settings, database, session_id):
        await change(database, update(LLMCallLog).values(prompt_text="", completion_text=None))
        async with a_desk(settings) as desk:
            with pytest.raises(Conflict) as refused:
                await replay(desk, session_id)
        assert refused.value.code == "BODIES_PRUNED"

    async def test_one_nobody_knows_or_of_another_workspace(self, settings, session_id):
        async with a_desk(settings) as desk:
            with pytest.raises(SessionNotFound):
                await replay(desk, str(uuid4()))
            with pytest.raises(SessionNotFound):
                await desk.coordinator.replay_service().replay(UUID(session_id), "others")

    async def test_any_where_nothing_is_stored(self, home):
        async with Moot(Settings(home=home, persistence=False)) as desk:
            with pytest.raises(Unavailable):
                await replay(desk, str(uuid4()))


async def test_a_cancelled_session_is_compared_as_far_as_it_got(settings, database):
    async with a_desk(settings, NOW) as desk:
        result = await desk.research(DEMO, FEW)
    row = NodeExecutionRow
    gone = row.__table__.delete().where(row.node_type.in_(["catalyst_detective", "debate", "judge"]))
    await change(database, gone)
    await change(database, update(ResearchSessionRow).values(status="cancelled", verdict_status="failed"))
    async with a_desk(settings) as desk:
        replayed = await replay(desk, result.session_id)
    assert (replayed.equal, outcomes(replayed)) == (True, {"technical_analyst": "same"})


async def test_a_row_that_is_missing_is_said_to_be(settings, database):
    async with a_desk(settings, NOW) as desk:
        result = await desk.research(DEMO, FEW)
    row = NodeExecutionRow
    await change(database, row.__table__.delete().where(row.node_type == "catalyst_detective"))
    async with a_desk(settings) as desk:
        replayed = await replay(desk, result.session_id)
    assert (replayed.equal, of(replayed, "catalyst_detective").outcome) == (False, "unrecorded")
    assert of(replayed, "judge").outcome == "same"


class TestDifferences:
    @pytest.mark.parametrize(
        ("then", "now"),
        [
            ({"a": 1}, {"a": 1.0}),
            ({"a": 1e22}, {"a": 10**22}),
            ({"a": -0.0, "b": None}, {"a": 0}),
            ({"a": [1, 2], "on": "2026-01-02"}, {"a": (1, 2), "on": date(2026, 1, 2)}),
            ({"a": None}, {"a": float("nan")}),
            ({"a": "Bearer ***"}, {"a": "Bearer abcdef123456"}),
        ],
        ids=["whole", "large", "zero and null", "JSON", "NaN", "secret"],
    )
    def test_what_a_database_makes_of_a_value_is_no_difference(self, then, now):
        assert list(differences(then, now)) == []

    @pytest.mark.parametrize(
        ("then", "now", "path"),
        [
            ({"a": True}, {"a": 1}, "a"),
            ({"a": 0.1}, {"a": 0.1 + 1e-12}, "a"),
            ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "a.b[1].c"),
            ({"a": [1]}, {"a": [1, 2]}, "a[1]"),
            ({"a": "x"}, {}, "a"),
            ({"a": {"b": 1}}, {"a": [1]}, "a"),
        ],
    )
    def test_anything_else_is_named_by_its_place(self, then, now, path):
        (found,) = differences(then, now)
        assert found.path == path
