"""The small real model, asked in people's own words: what it decides is counted, what the desk makes of it holds."""

import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from moot.desk import Moot
from moot.modules.intake.application.intake_service import Conversation, Question, Turn
from moot.modules.intake.application.language import normalise
from moot.modules.intake.domain.question import Limits
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.domain.grounding import ground
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import HandClock
from tests.fakes.search_server import LocalWeb, local_web
from tests.governance.factories import NOON
from tests.intake.steps_desk import finds, hit
from tests.real_model.gateway import Gateway, gateway

pytestmark = pytest.mark.skipif(
    not os.environ.get("MOOT_TEST_LLM"), reason="runs a real language model: make test-llm"
)

TRENDS, TREND = "What are the latest AI trends in 2025?", "Which AI trend of 2025 matters most?"
GO, RUST = "帮我分析一下 Go 语言的优势", "帮我比较一下 Go 和 Rust 的性能"
CHAT, THANKS = "你好，今天天气怎么样？", "谢谢你，晚安！"
SMALL = "https://ai.example/small"
PATIENT = {"llm_deadline": 900, "node_timeout": 3600, "log_level": "error"}
AGENTS = re.compile(r"coordinator|planner|reporter|processing\b.*|researcher:.*")
HAN = re.compile(r"[\u4e00-\u9fff]")
LINK = re.compile(r"https?://[^\s)>\]\"”]+")
TOLD = {
    "waiting": "plan",
    "replied": "reply",
    "failed": "error",
    "answered": "answer",
    "nothing_found": "answer",
}
"""What a person gets to see, by the status of the turn."""


@dataclass
class Asked:
    """A desk, what stands between it and its model, and the rows of the table that is printed at the end."""

    desk: Moot
    model: Gateway
    rows: list[tuple[Any, ...]]
    scenario: str
    seen: int = 0

    async def __call__(self, question: str) -> Turn:
        return (await self.timed(question, lambda: self.desk.ask(question))).last

    async def timed(self, question: str, turn: Callable[[], Awaitable[Conversation]]) -> Conversation:
        began = time.monotonic()
        conversation = await turn()
        seconds = time.monotonic() - began
        used, self.seen = self.model.tokens[self.seen :], len(self.model.tokens)
        last = conversation.last
        title = last.understanding.title if last.understanding else (last.reply or last.error or "")
        handed = (last.handed_locale or "-")[:14]
        told = (
            self.scenario,
            question,
            last.status,
            handed,
            len(used),
            sum(used),
            f"{seconds:.0f}",
            title[:50],
        )
        self.rows.append(told)
        return conversation

    async def record(self) -> list[LLMCallLog]:
        assert self.desk.database is not None
        async with self.desk.database.session() as db:
            return list((await db.execute(select(LLMCallLog))).scalars())


@pytest.fixture(scope="module")
def rows() -> Iterator[list[tuple[Any, ...]]]:
    """Told with `-s`: how often the model did what it should. No test fails for its moods."""
    told: list[tuple[Any, ...]] = []
    yield told
    names = (
        "scenario",
        "question",
        "status",
        "handed locale",
        "calls",
        "tokens",
        "seconds",
        "title, reply or error",
    )
    lines = [" | ".join(map(str, row)).replace("\n", " ") for row in (names, *told)]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


@pytest.fixture
async def web() -> AsyncIterator[LocalWeb]:
    async with local_web() as served:
        finds(served, hit("Models get smaller", SMALL, "Small models run on phones."))
        yield served


@pytest.fixture
def asked(base_url: str, home: Path, rows: list[tuple[Any, ...]]) -> Callable[..., Any]:
    """A clock that stands still lets the server remember the beginning of each prompt."""

    @asynccontextmanager
    async def opened(
        scenario: str, *, teaches: bool = True, longest: int | None = None, **more: Any
    ) -> AsyncIterator[Asked]:
        async with gateway(base_url, teaches=teaches, longest=longest) as model:
            settings = {
                "llm_base_url": model.url,
                "llm_model": "smollm2-135m",
                "llm_price_in": 1,
                "llm_price_out": 2,
            }
            async with Moot(
                Settings(home=home, **settings, **PATIENT, **more), clock=HandClock(NOON)
            ) as desk:
                yield Asked(desk, model, rows, scenario)

    return opened


def holds(turn: Turn, locale: str) -> None:
    """What is true of every turn, whatever a model says."""
    assert turn.status in ("waiting", "replied", "failed")
    assert getattr(turn, TOLD[turn.status]), "somebody is left without an outcome"
    assert turn.detected_locale == locale
    assert turn.locale == (normalise(turn.handed_locale) or locale)
    assert turn.answer is None and turn.findings == () and turn.sessions == ()
    if turn.error:
        assert bool(HAN.search(turn.error)) == (locale == "zh-CN")
    if turn.status == "waiting":
        plan_holds(turn, Limits().max_step_num)


def plan_holds(turn: Turn, most: int) -> None:
    plan = turn.plan
    assert plan is not None and plan.title and plan.locale == turn.locale
    assert 1 <= len(plan.steps) <= most
    assert {step.symbol for step in plan.steps} == {None}, "nobody named a company"
    assert len({step.id for step in plan.steps}) == len(plan.steps)


async def all_on_record(asked: Asked) -> None:
    """Each answer that the model gave, with the tokens that its server counted."""
    record = await asked.record()
    answered = [call for call in record if call.status == "success"]
    assert sorted(call.total_tokens or 0 for call in answered) == sorted(asked.model.tokens)
    assert all(
        call.caller_module == "intake" and AGENTS.fullmatch(call.caller_agent or "") for call in record
    )
    assert all(call.prompt_text and call.latency_ms is not None for call in record)
    assert all(call.completion_text or call.tool_calls for call in answered)


async def test_a_model_that_knows_no_tools_leaves_nobody_without_an_outcome(asked):
    async with asked("no tools", teaches=False) as ask:
        turn = await ask(TRENDS)
        holds(turn, "en-US")
        await all_on_record(ask)
        assert ask.desk.intake.metrics.snapshot().hand_off_success.out_of == 0


async def test_an_english_question_is_looked_up_where_the_model_hands_it_over(asked, web):
    async with asked("English, web", searxng_url=web.url) as ask:
        for question in (TRENDS, TREND):
            turn = await ask(question)
            holds(turn, "en-US")
            looked_up = question in [each.query["q"] for each in web.asked]
            assert looked_up == (turn.understanding is not None), (
                "looked up if, and only if, it was handed over"
            )
        await all_on_record(ask)


async def test_a_chinese_question_goes_to_the_planner_where_the_model_hands_it_over(asked):
    async with asked("Chinese") as ask:
        for question in (GO, RUST):
            turn = await ask(question)
            holds(turn, "zh-CN")
        await all_on_record(ask)
        decided = [each async for each in ask.desk.governance.decisions.history(DEFAULT_WORKSPACE, NOON)]
        assert {each.decision_type for each in decided} <= {"plan"}, (
            "nothing is researched before it is accepted"
        )


async def test_small_talk_gets_words_or_a_plan_to_refuse(asked):
    async with asked("small talk") as ask:
        for question in (CHAT, THANKS):
            holds(await ask(question), "zh-CN")
        endings = ask.desk.intake.metrics.snapshot().runs
        assert sum(endings.values()) == 2
        await all_on_record(ask)


async def test_the_whole_way_ends_with_an_answer_that_holds_no_figure_of_its_own(asked, web):
    """One step: the way is the same with three, and takes this model three times as long."""
    async with asked("whole way", longest=60, searxng_url=web.url) as ask:
        ended = await whole_way(ask, TRENDS)
        if ended.status != "answered":
            ended = await whole_way(ask, TREND)
        await all_on_record(ask)
    if ended.status != "answered":
        pytest.skip("the model handed nothing over")
    plan_holds(ended, 1)
    answer_holds(ended)


async def whole_way(ask: Asked, question: str) -> Turn:
    one = Question(question=question, style="brief", max_step_num=1, auto_accepted_plan=True)
    service = ask.desk.intake.service
    ended = (await ask.timed(question, lambda: service.ask(one, workspace=DEFAULT_WORKSPACE))).last
    assert ended.status in ("answered", "nothing_found", "replied", "failed")
    assert getattr(ended, TOLD[ended.status]), "somebody is left without an outcome"
    return ended


def answer_holds(turn: Turn) -> None:
    answer = turn.answer
    assert answer is not None and answer.locale == turn.locale and answer.disclaimer in answer.markdown
    assert answer.engine == "llm" or answer.warnings, "that rules wrote it is told"
    assert all(found.citations or found.warnings or found.error for found in turn.findings)
    assert turn.sessions == () and not any(found.figures for found in turn.findings), "nobody was rated"
    given = "\n".join([turn.question, SMALL, turn.model_dump_json(include={"plan", "findings"})])
    assert {link.rstrip(".,;") for link in LINK.findall(answer.markdown)} <= set(LINK.findall(given))
    written = [answer.title, *answer.key_points, *(section.text for section in answer.sections)]
    strange = ground(written, (), given=given).offenders
    assert all(any(number in warning for warning in answer.warnings) for number in strange[:8])
