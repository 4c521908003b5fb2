"""The three scenarios of the coordinator, the whole way: a desk, a model over HTTP, and a small web."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from moot.modules.intake.application.understanding import Understander
from moot.modules.intake.domain.question import Mention
from tests.fakes.llm_server import LLMServer, Say
from tests.fakes.search_server import LocalWeb, local_web
from tests.intake.steps_desk import calls, finds, hit
from tests.intake.whole_desk import (
    ACCEPTED,
    Asking,
    Heard,
    Parts,
    asking,
    hands_over,
    plans,
    researching,
    settings_of,
    writes,
)

TRENDS = "What are the latest AI trends in 2025?"
GO = "帮我分析一下 Go 语言的优势"
CHAT = "你好，今天天气怎么样？"
SORRY = "抱歉，我是专注于研究任务的助手，无法回答天气问题。"
SAID = "Small models run on phones [1]."


@pytest.fixture
async def web() -> AsyncIterator[LocalWeb]:
    async with local_web() as served:
        finds(served, hit("Models get smaller", "https://ai.example/small", "Small models run on phones."))
        yield served


@pytest.fixture
def parts(llm_server: LLMServer) -> Parts:
    return Parts(llm_server)


@pytest.fixture
async def desk(home, database, llm_server, web) -> AsyncIterator[Asking]:
    modelled = {"llm_base_url": llm_server.url, "llm_model": "fake-1", "searxng_url": web.url}
    async with asking(settings_of(home, database, **modelled)) as desk:
        yield desk


def english(parts: Parts) -> None:
    """A model that hands the question over, plans two steps, looks each of them up, and writes."""
    steps = researching("a", "Latest AI trends"), researching("b", "AI trends of 2025")
    parts.play("coordinator", hands_over("AI Trends 2025 Research", "en-US"))
    parts.play("planner", plans(*steps, title="AI trends 2025", locale="en-US"))
    looked_up = calls(("web_search", {"query": "latest AI trends"}))
    parts.play("researcher", looked_up, looked_up, Say(SAID), Say(SAID))
    parts.play("reporter", writes("AI trends in 2025", SAID))


@pytest.mark.accepts("A4-01", "A4-17", "A4-18", "A4-20")
async def test_an_english_question_is_looked_up_planned_accepted_researched_and_answered(desk, parts, web):
    english(parts)
    heard, later = Heard(), Heard()
    waiting = await desk.ask(TRENDS, heard, enable_background_investigation=True)
    assert (waiting.status, waiting.last.locale, waiting.last.handed_locale) == ("waiting", "en-US", "en-US")
    assert [asked.query["q"] for asked in web.asked] == [TRENDS]
    assert heard.names == ["tool_call", "citation", "plan", "interrupt", "done"]
    assert heard.of("citation")[0]["url"] == "https://ai.example/small"
    assert "https://ai.example/small" in parts.told("planner")
    assert heard.of("interrupt")[0]["options"] == ["accepted", "edit_plan", "rejected"]

    answered = await desk.say(waiting, ACCEPTED, later)
    turn = answered.last
    assert (answered.status, turn.error, turn.answer.engine) == ("answered", None, "llm")
    assert [(found.step_id, found.status) for found in turn.findings] == [
        ("a", "completed"),
        ("b", "completed"),
    ]
    assert turn.answer.title == "AI trends in 2025"
    assert [cited.url for cited in turn.answer.citations] == ["https://ai.example/small"]
    assert all("en-US" in parts.told(agent) for agent in ("planner", "researcher"))
    assert later.names[0] == "step" and later.names[-2:] == ["report", "done"]
    assert later.of("done") == [{"thread_id": str(answered.id), "status": "answered"}]


async def test_each_step_is_told_when_it_begins_and_ends_and_each_tool_when_it_is_called(desk, parts):
    english(parts)
    waiting = await desk.ask(TRENDS)
    later = Heard()
    await desk.say(waiting, ACCEPTED, later)
    for step in ("a", "b"):
        told = [(what, about.get("status")) for what, about in later.events if step in _step(about)]
        assert told[0] == ("step", "started") and told[-1] == ("step", "completed")
        assert [what for what, _ in told[1:-1] if what != "citation"] == ["tool_call", "tool_result"]
    cited = [(about["step"], about["url"]) for about in later.of("citation")]
    assert sorted(cited) == [("a", "https://ai.example/small"), ("b", "https://ai.example/small")]
    report = later.of("report")[0]
    told_in_pieces = "".join(about["text"] for about in later.of("message_chunk"))
    assert told_in_pieces.strip() == report["markdown"].strip()


def _step(about: dict[str, Any]) -> list[str]:
    return [str(about.get("step")), str(about.get("id"))]


@pytest.mark.accepts("A4-02", "A4-17", "A4-18")
async def test_a_chinese_question_without_investigation_goes_to_the_planner(desk, parts, web):
    parts.play("coordinator", hands_over("Go语言优势分析", "zh-CN"))
    parts.play("planner", plans(researching("a", "Go 语言的优势"), title="Go 语言优势", locale="zh-CN"))
    waiting = await desk.ask(GO, enable_background_investigation=False)
    assert (waiting.status, waiting.last.locale) == ("waiting", "zh-CN")
    assert waiting.last.plan.locale == "zh-CN"
    assert web.asked == []
    assert waiting.last.understanding.title == "Go语言优势分析"


DOMES = Mention(text="Dome", symbols=("900004.DEMO", "900009.DEMO"), names=("Irondome", "Warmdome"))


async def find_domes(text: str) -> Sequence[Mention]:
    by_code = [Mention(text=code, symbols=(code,)) for code in DOMES.symbols if code in text]
    return [DOMES] if "Dome" in text else by_code


async def find_none(text: str) -> Sequence[str]:
    return ()


@pytest.mark.parametrize("by", ["model", "rules"])
async def test_which_of_two_companies_is_asked_back_and_the_next_turn_settles_it(
    home, database, llm_server, parts, by: str
):
    model = {"llm_base_url": llm_server.url, "llm_model": "fake-1"} if by == "model" else {}
    share = {"id": "a", "type": "equity", "title": "Warmdome", "symbol": "900009.DEMO"}
    parts.play("coordinator", *[hands_over("Is Dome cheap?", "en-US")] * 2)
    parts.play("planner", plans(share, title="Is Dome cheap?", locale="en-US"))
    async with asking(settings_of(home, database, **model)) as desk:
        desk.desk.intake.parts.coordinator._rules = Understander(find_domes, find_none)
        asked = await desk.ask("Is Dome cheap?")
        assert (asked.status, asked.last.plan) == ("replied", None)
        assert asked.last.reply == (
            "“Dome” may be: 900004.DEMO Irondome, 900009.DEMO Warmdome. Which one do you mean? "
            "Answer with its code or its full name."
        )
        settled = await desk.ask("900009.DEMO", thread_id=asked.id)
        assert (settled.status, settled.last.understanding.symbols) == ("waiting", ("900009.DEMO",))
        assert [step.symbol for step in settled.last.plan.steps] == ["900009.DEMO"]
        assert settled.last.understanding.by == by


@pytest.mark.accepts("A4-03", "A4-18")
async def test_small_talk_ends_with_the_models_reply(desk, parts, web):
    parts.play("coordinator", Say(SORRY))
    heard = Heard()
    ended = await desk.ask(CHAT, heard)
    assert (ended.status, ended.last.reply, ended.last.plan, ended.last.answer) == (
        "replied",
        SORRY,
        None,
        None,
    )
    assert heard.events[:-1] == [("message_chunk", {"text": SORRY})]
    assert list(parts.asked) == ["coordinator"] and web.asked == []
    assert await desk.decisions() == []


async def test_the_plan_and_every_tool_call_are_decisions_on_the_record(desk, parts):
    english(parts)
    await desk.say(await desk.ask(TRENDS), ACCEPTED)
    decided = [(each.decision_type, each.payload.get("tool")) for each in await desk.decisions()]
    assert decided == [
        ("tool_call", "web_search"),
        ("plan", None),
        ("tool_call", "web_search"),
        ("tool_call", "web_search"),
    ]
