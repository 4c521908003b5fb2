"""Whether an action serves its goal, by a model or embeddings: asked before the rules are, kept with the decision."""

import asyncio
import importlib
import json
import logging
import math
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from moot.desk import Moot
from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.decision_log import simulate
from moot.modules.governance.application.goal_alignment_checker import (
    AlignmentOpinion,
    OpinionOnAlignment,
    compare,
)
from moot.modules.governance.container import GovernanceContainer, RuleBook
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.infrastructure import alignment_measures
from moot.modules.governance.infrastructure.alignment_measures import (
    EmbeddingOpinion,
    ModelOpinion,
    word_llama,
)
from moot.modules.llm_platform.application.config_service import ConfigBody
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings, load_settings
from tests.fakes.clock import FixedClock, leap, until
from tests.fakes.llm import FakeLLM
from tests.fakes.llm_server import Hang, LLMServer, Say, Status
from tests.governance.factories import NOON, request, rule

GOAL = "Plan a holiday in Italy"
ON_THE_WAY = "Look up trains from Rome to Florence"
AWAY = "Sell the house"
SECRET = "sk-not-to-be-kept"
APPROVED, REJECTED = ValidationStatus.APPROVED, ValidationStatus.REJECTED


def an_act(action: str = ON_THE_WAY, **context: Any) -> DecisionRequest:
    payload = {"node": "judge", "symbol": "900001.DEMO", "options": {}, "title": action}
    return request(payload, "node", **{"goal": GOAL, **context})


def settings(server: LLMServer, home: Path, **also: Any) -> Settings:
    asking = {"llm_base_url": server.url, "llm_model": "judge-1", "llm_api_key": SECRET}
    return Settings(home=home, log_level="error", **{**asking, "goal_alignment": "model", **also})


@pytest.fixture
async def desk(llm_server: LLMServer, home: Path, clock, database: Database) -> AsyncIterator[Moot]:
    async with Moot(settings(llm_server, home, database_url=database.safe_url), clock=clock) as desk:
        yield desk


async def test_a_models_opinion_decides_and_is_kept_with_the_decision(desk: Moot, llm_server: LLMServer):
    assert compare(GOAL, ON_THE_WAY).score == compare(GOAL, AWAY).score == 0.0
    llm_server.script(Say('{"score": 0.9}'), Say('{"score": 0.05}'))
    yes, no = [await desk.governance.agent.decide(an_act(action)) for action in (ON_THE_WAY, AWAY)]
    assert (yes.result.status, no.result.status) == (APPROVED, REJECTED)
    assert {v.rule_id for v in no.result.violations} == {"system.goal_deviation", "system.goal_alignment"}

    kept = [record async for record in desk.governance.decisions.history("default", NOON)]
    scores = {record.payload["title"]: record.context["alignment_score"] for record in kept}
    assert scores == {ON_THE_WAY: 0.9, AWAY: 0.05}

    asked = llm_server.requests[0].body
    assert json.loads(asked["messages"][-1]["content"]) == {"goal": GOAL, "action": ON_THE_WAY}
    assert asked["temperature"] == 0.0
    assert asked["response_format"]["json_schema"]["schema"]["required"] == ["score"]


async def calls(desk: Moot) -> list[LLMCallLog]:
    """Every question to a model that is on the record."""
    assert desk.database is not None
    async with desk.database.session() as db:
        return list(await db.scalars(select(LLMCallLog)))


async def test_the_question_is_a_model_call_on_the_record_without_secrets(desk: Moot, llm_server: LLMServer):
    llm_server.default = Say('{"score": 1.0}')
    await desk.governance.agent.decide(an_act(f"{ON_THE_WAY} with {SECRET}"))
    (call,) = await calls(desk)
    assert (call.caller_module, call.caller_agent) == ("governance", "goal_alignment")
    assert (call.status, call.completion_text, call.total_tokens) == ("success", '{"score": 1.0}', 150)
    assert ON_THE_WAY in call.prompt_text
    assert SECRET not in call.prompt_text


async def test_a_workspace_asks_its_own_model(desk: Moot, llm_server: LLMServer):
    own = ConfigBody(alias="own", base_url=llm_server.url, model_name="own-1", vendor="somebody")
    await desk.llm_platform.config_service().create(own, "fund")
    llm_server.default = Say('{"score": 1.0}')
    decided = [await desk.governance.agent.decide(an_act(), workspace=name) for name in ("fund", "other")]
    assert [decision.result.status for decision in decided] == [APPROVED, REJECTED]
    assert [(call.workspace_id, call.model_name) for call in await calls(desk)] == [("fund", "own-1")]


async def test_what_goes_beyond_the_budget_is_not_asked(llm_server: LLMServer, home: Path):
    async with Moot(settings(llm_server, home, budget_day_tokens=10)) as desk:
        assert (await desk.governance.agent.decide(an_act(ON_THE_WAY))).result.status is REJECTED
    assert llm_server.requests == []


@pytest.mark.parametrize(
    "trouble",
    [
        Status(401),
        Say("I would say it serves the goal."),
        Say('{"score": 7}'),
        Say('{"score": "high"}'),
        Say('{"opinion": 0.9}'),
    ],
)
async def test_when_the_model_has_no_opinion_the_words_decide(
    desk: Moot, llm_server: LLMServer, trouble: Say | Status
):
    llm_server.default = trouble
    with capture_logs() as logs:
        decided = await desk.governance.agent.decide(an_act("Plan the holiday in Italy"))
        refused = await desk.governance.agent.decide(an_act(ON_THE_WAY))
    assert (decided.result.status, refused.result.status) == (APPROVED, REJECTED)
    warned = [log for log in logs if log["event"] == "no opinion on alignment, the words decide"]
    assert [log["log_level"] for log in warned] == ["warning"] * 2
    assert decided.record and "alignment_score" not in decided.record.context


async def test_a_silent_model_is_not_waited_for(llm_server: LLMServer, home: Path):
    llm_server.default = Hang()
    async with Moot(settings(llm_server, home)) as desk:
        asked = OpinionOnAlignment(ModelOpinion(desk.llm_platform.llm_service()), patience=60)
        active = desk.governance.agent.validator.rule_repository.active
        adding = asyncio.create_task(asked.add_to(an_act(), active, "default"))
        await until(lambda: llm_server.requests)
        leap(60)
        assert await adding == an_act()
        assert len(llm_server.requests) == 1
        assert [call.status for call in await calls(desk)] == ["unknown"]


async def test_what_was_decided_with_a_model_is_decided_again_without_one(desk: Moot, llm_server: LLMServer):
    llm_server.script(Say('{"score": 0.9}'), Say('{"score": 0.05}'))
    for action in (ON_THE_WAY, AWAY):
        await desk.governance.agent.decide(an_act(action))
    records = desk.governance.decisions.history("default", NOON)
    book = RuleBook()
    report = await simulate(book.validator(book.repository(book.read_shipped())).validate, records)
    assert (report.total, report.same, report.changed) == (2, 2, [])
    assert len(llm_server.requests) == 2


async def test_by_default_no_model_is_asked(llm_server: LLMServer, home: Path, monkeypatch):
    monkeypatch.delenv("MOOT_GOAL_ALIGNMENT", raising=False)
    assert Settings(home=home).goal_alignment == "words"
    async with Moot(settings(llm_server, home, goal_alignment="words")) as desk:
        refused = await desk.governance.agent.decide(an_act(ON_THE_WAY))
        assert refused.result.status is REJECTED
        assert refused.record and "alignment_score" not in refused.record.context
    assert llm_server.requests == []


async def test_a_dry_run_asks_no_model(desk: Moot, llm_server: LLMServer):
    assert (await desk.governance.agent.validate(an_act(ON_THE_WAY))).status is REJECTED
    assert llm_server.requests == []


class Opinionated:
    """An opinion of its own, and who was asked for it."""

    def __init__(self, score: float | Exception = 1.0) -> None:
        self._score = score
        self.asked: list[tuple[str, str]] = []

    async def score(self, goal: str, action: str, _workspace: str) -> float:
        self.asked.append((goal, action))
        if isinstance(self._score, Exception):
            raise self._score
        return self._score


def governed(opinion: AlignmentOpinion, clock: FixedClock) -> CoordinatorAgent:
    return GovernanceContainer(trail=None, clock=clock, opinion=opinion).agent


@pytest.mark.parametrize(
    "decision",
    [
        an_act(goal=None),
        an_act(goal=""),
        an_act(action=""),
        an_act(alignment_score=0.8),
        request({"tool": "database", "args": {"sql": "SELECT 1"}}, goal=GOAL),
    ],
    ids=["no goal", "an empty goal", "no words for the action", "known already", "arguments are no words"],
)
async def test_nobody_is_asked_where_there_is_nothing_to_tell(clock, decision: DecisionRequest):
    opinion = Opinionated(0.0)
    decided = await governed(opinion, clock).decide(decision)
    assert opinion.asked == []
    assert decided.result.original_request.context.items() >= decision.context.items()
    assert ("alignment_score" in decided.result.original_request.context) == (
        "alignment_score" in decision.context
    )


async def asked_by(*rules: EnhancedRule) -> list[tuple[str, str]]:
    """What somebody with an opinion is asked about a plan that meets these rules."""
    opinion, active = Opinionated(), RuleBook().repository(rules).active
    await OpinionOnAlignment(opinion).add_to(an_act(), active, "default")
    return opinion.asked


LOOKS = "has(context.alignment_score) && context.alignment_score < 0.9"


@pytest.mark.parametrize(
    ("rules", "asked"),
    [
        ([], False),
        ([rule("payload.tool == 'rm'")], False),
        ([rule(LOOKS, decision_types=())], True),
        ([rule(LOOKS, decision_types=("node",))], True),
        ([rule(LOOKS, decision_types=("node",), mode="shadow")], True),
        ([rule(LOOKS, decision_types=("node",), enabled=False)], False),
        ([rule(LOOKS, decision_types=("verdict",))], False),
        ([rule(LOOKS, tools=("rm",))], False),
        ([rule(bool, category="goal", decision_types=("node",))], True),
        ([rule(bool, category="tool", decision_types=("node",))], False),
    ],
)
async def test_nobody_is_asked_unless_a_rule_could_look_at_the_answer(rules: list[EnhancedRule], asked: bool):
    assert await asked_by(*rules) == [(GOAL, ON_THE_WAY)] * asked


@pytest.mark.parametrize(("said", "kept"), [(1.7, 1.0), (-0.2, 0.0), (0.123456, 0.1235)])
async def test_an_opinion_is_kept_within_bounds(clock, said: float, kept: float):
    decided = await governed(Opinionated(said), clock).decide(an_act())
    assert decided.result.original_request.context["alignment_score"] == kept


@pytest.mark.parametrize("said", [math.nan, math.inf, AppError("away"), ZeroDivisionError()])
async def test_what_is_no_opinion_leaves_it_to_the_words(clock, said: float | Exception):
    agent = governed(Opinionated(said), clock)
    assert (await agent.decide(an_act("Plan the holiday in Italy"))).result.status is APPROVED
    decided = await agent.decide(an_act(ON_THE_WAY))
    assert decided.result.status is REJECTED
    assert "alignment_score" not in decided.result.original_request.context


@pytest.mark.parametrize(
    "said",
    ['{"score": 0.7}', '```json\n{"score": 0.7}\n```', '<think>{"score": 0.1}?</think> So: {"score": 0.7}'],
)
async def test_a_model_may_put_words_around_its_answer(said: str):
    assert await ModelOpinion(FakeLLM(said)).score(GOAL, ON_THE_WAY) == 0.7


async def test_a_model_is_shown_so_much_and_no_more():
    llm = FakeLLM('{"score": 0.7}')
    await ModelOpinion(llm).score(GOAL, "x" * 1_000_000)
    assert len(llm.asked[0].prompt) < 5000


VECTORS = {GOAL: [1.0, 0.0], ON_THE_WAY: [0.575, math.sqrt(1 - 0.575**2)], AWAY: [0.0, 1.0]}


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [VECTORS.get(text, [0.0, 0.0]) for text in texts]


async def test_embeddings_see_what_is_said_in_other_words_and_hazards_still_count():
    opinion = EmbeddingOpinion(embed)
    assert await opinion.score(GOAL, ON_THE_WAY) == pytest.approx(0.75)
    assert await opinion.score(GOAL, AWAY) == 0.0
    VECTORS["Delete the plan"] = [1.0, 0.0]
    assert await opinion.score(GOAL, "Delete the plan") == pytest.approx(0.4)


async def test_words_the_vectors_do_not_know_still_count():
    action = "Plan the holiday in Italy"
    assert await EmbeddingOpinion(embed).score(GOAL, action) == compare(GOAL, action).score > 0.5
    assert await EmbeddingOpinion(embed).score(GOAL, "Xyzzy") == 0.0


async def test_more_must_be_alike_in_chinese():
    goal, action = "规划意大利之旅", "查询火车"
    vectors = [[1.0, 0.0], [0.45, math.sqrt(1 - 0.45**2)]]
    assert await EmbeddingOpinion(lambda _: vectors).score(goal, action) == pytest.approx(0.5)


async def test_without_the_extra_the_desk_says_what_to_install(home: Path, monkeypatch):
    monkeypatch.setenv("MOOT_HOME", str(home))
    monkeypatch.setenv("MOOT_GOAL_ALIGNMENT", "embeddings")
    monkeypatch.setattr(alignment_measures, "importlib", Bare())
    with pytest.raises(InvalidInput, match=r"pip install 'moot\[embeddings\]'") as refused:
        Moot(load_settings())
    assert refused.value.code == "SETTINGS_INVALID"
    assert "MOOT_GOAL_ALIGNMENT=words" in refused.value.in_locale("zh-CN")


class Bare:
    """A machine on which nothing more is installed."""

    def import_module(self, name: str) -> Any:
        raise ModuleNotFoundError(name)


def test_a_measure_nobody_knows_is_refused(monkeypatch, home: Path):
    monkeypatch.setenv("MOOT_HOME", str(home))
    monkeypatch.setenv("MOOT_GOAL_ALIGNMENT", "stars")
    with pytest.raises(InvalidInput, match="MOOT_GOAL_ALIGNMENT"):
        load_settings()


async def test_the_vectors_that_come_with_the_extra_tell_a_step_from_a_detour(home: Path):
    pytest.importorskip("wordllama")
    opinion = EmbeddingOpinion(word_llama())
    assert await opinion.score(GOAL, ON_THE_WAY) > 0.6
    assert await opinion.score(GOAL, "Buy bitcoin") < 0.25
    async with Moot(Settings(home=home, goal_alignment="embeddings")) as desk:
        decided = await desk.governance.agent.decide(an_act(ON_THE_WAY))
    assert decided.result.status is APPROVED
    assert decided.record and decided.record.context["alignment_score"] > 0.6


def test_loading_the_vectors_leaves_logging_alone():
    pytest.importorskip("wordllama")
    before = logging.getLogger().handlers[:], logging.getLogger().level
    importlib.reload(importlib.import_module("wordllama"))
    word_llama()
    assert (logging.getLogger().handlers, logging.getLogger().level) == before
