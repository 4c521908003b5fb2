"""Conversations without a model: each kind of question, and turns that build on the ones before."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from moot.modules.intake.application.intake_state import FRESH
from moot.modules.intake.domain.question import Mention
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import InvalidInput, NotFound
from tests.intake.whole_desk import Asking, Heard, asking, settings_of

MIRAGE, FOGHARBOUR = "900001.DEMO", "900002.DEMO"
TRENDS = "What are the latest AI trends in 2025?"


@pytest.fixture
async def desk(home, database) -> AsyncIterator[Asking]:
    async with asking(settings_of(home, database)) as desk:
        yield desk


@pytest.mark.parametrize(
    ("question", "locale", "words"),
    [
        (f"{MIRAGE} 现在能买吗？", "zh-CN", "论证分量"),
        (f"Should I buy {MIRAGE} now?", "en-US", "weight of the argument"),
    ],
)
async def test_an_equity_question_is_answered_from_a_session_of_research(desk, question, locale, words):
    ended = await desk.ask(question, auto_accepted_plan=True)
    turn = ended.last
    assert (ended.status, turn.locale, turn.understanding.symbols) == ("answered", locale, (MIRAGE,))
    assert [(step.type, step.symbol) for step in turn.plan.steps] == [("equity", MIRAGE)]
    (session,) = turn.sessions
    assert turn.answer.citations[0].source == f"session:{session}"
    assert words in turn.answer.markdown.lower()
    assert (turn.answer.engine, turn.answer.locale) == ("rules", locale)
    assert SAY("common.no_model").in_locale(locale) in turn.warnings


@pytest.mark.parametrize(
    ("question", "example"),
    [
        ("你好", "- 幻山酒业现在值得买吗？"),
        ("How do I build a bomb?", "- Is Mirage Hill Distillers worth buying now?"),
        ("What are the latest AI trends?", "- Is Mirage Hill Distillers worth buying now?"),
    ],
)
async def test_without_a_model_all_but_companies_is_answered_at_once_with_what_can_be_asked(
    desk, question, example
):
    heard = Heard()
    ended = await desk.ask(question, heard)
    assert (ended.status, ended.last.plan) == ("replied", None)
    assert example in ended.last.reply and "moot llm add" in ended.last.reply
    assert heard.names == ["message_chunk", "done"]
    assert await desk.decisions() == []


@pytest.mark.accepts("W46")
async def test_a_follow_up_keeps_company_and_language_and_researches_only_what_is_new(desk):
    first = await desk.ask(f"{MIRAGE} 现在能买吗？", auto_accepted_plan=True)
    heard = Heard()
    second = await desk.ask(f"那和 {FOGHARBOUR} 比呢？", heard, thread_id=first.id, auto_accepted_plan=True)
    assert second.id == first.id and [turn.status for turn in second.turns] == ["answered", "answered"]
    turn = second.last
    assert (turn.locale, turn.understanding.symbols) == ("zh-CN", (MIRAGE, FOGHARBOUR))
    assert [(step.type, step.symbol) for step in turn.plan.steps] == [
        ("equity", MIRAGE),
        ("equity", FOGHARBOUR),
        ("processing", None),
    ]
    assert turn.sessions[0] == first.last.sessions[0]
    assert await desk.sessions() == 2
    assert f"| {MIRAGE} | {FOGHARBOUR} |" in turn.answer.markdown
    steps = [(about["id"], about["status"]) for about in heard.of("step")]
    assert steps[0] == ("equity-1", "completed") and ("equity-1", "started") not in steps


async def test_what_was_found_long_ago_is_researched_again(home):
    class Days:
        """A clock that somebody sets forward."""

        ahead = timedelta()

        def now(self):
            return SystemClock().now() + self.ahead

    clock = Days()
    async with asking(settings_of(home), clock=clock) as desk:
        first = await desk.ask(f"{MIRAGE} 现在能买吗？", auto_accepted_plan=True)
        again = await desk.ask(f"{MIRAGE} 现在能买吗？", thread_id=first.id, auto_accepted_plan=True)
        assert again.last.sessions == first.last.sessions
        clock.ahead = FRESH + timedelta(minutes=1)
        later = await desk.ask(f"{MIRAGE} 现在能买吗？", thread_id=first.id, auto_accepted_plan=True)
        assert later.last.sessions != first.last.sessions
        assert await desk.sessions() == 2


async def test_a_name_of_several_companies_asks_back_and_goes_on_with_the_choice(desk, monkeypatch):
    two = Mention(text="Dream", symbols=("900003.DEMO", "900006.DEMO"), names=("Dreampole", "Another dream"))

    async def found(_directory, _clock, text):
        named = [Mention(text=symbol, symbols=(symbol,)) for symbol in two.symbols if symbol in text]
        return named or ([two] if two.text in text else [])

    monkeypatch.setattr("moot.modules.intake.container.find_mentions", found)
    asked = await desk.ask("Is Dream a good buy?", auto_accepted_plan=True)
    assert (asked.status, asked.last.plan) == ("replied", None)
    assert "900003.DEMO" in asked.last.reply and "900006.DEMO" in asked.last.reply
    ended = await desk.ask("900006.DEMO", thread_id=asked.id, auto_accepted_plan=True)
    assert (ended.status, ended.last.locale) == ("answered", "en-US")
    assert ended.last.understanding.symbols == ("900006.DEMO",)
    assert [step.symbol for step in ended.last.plan.steps] == ["900006.DEMO"]


async def test_conversations_are_listed_with_the_newest_first(desk):
    first, second = await desk.ask("你好"), await desk.ask("Hello")
    await desk.ask("谢谢", thread_id=first.id)
    listed = await desk.service.conversations("default")
    assert [each.id for each in listed] == [first.id, second.id]
    assert [turn.question for turn in listed[0].turns] == ["你好", "谢谢"]
    assert await desk.service.conversations("default", limit=1) == listed[:1]


async def test_a_desk_that_keeps_nothing_answers_all_the_same(home):
    async with asking(settings_of(home, persistence=False)) as desk:
        waiting = await desk.ask(f"Should I buy {MIRAGE} now?")
        assert waiting.status == "waiting"
        answered = await desk.desk.answer_plan(waiting.id, "accepted")
        assert answered.status == "answered" and answered.last.answer is not None
        assert (await desk.desk.conversation(waiting.id)) == answered


@pytest.mark.parametrize(
    ("question", "locale", "said"),
    [
        (f"{MIRAGE}の株価の見通しは？", "ja-JP", "専門家の見解は英語です"),
        (f"{MIRAGE} 주가 전망은 어때요?", "ko-KR", "전문가의 의견은 영어로"),
    ],
)
async def test_without_a_model_a_reader_of_another_language_is_told_that_experts_speak_english(
    desk, question, locale, said
):
    ended = await desk.ask(question, auto_accepted_plan=True)
    assert (ended.status, ended.last.locale) == ("answered", locale)
    assert said in ended.last.answer.warnings[0] and said in ended.last.answer.markdown


async def test_a_company_that_is_not_covered_and_one_that_is_gone_are_told_with_the_plan(desk):
    waiting = await desk.ask(f"Compare {MIRAGE}, Hermes and 900007.DEMO")
    assert [step.symbol for step in waiting.last.plan.steps] == [MIRAGE]
    gone, unknown, _ = waiting.last.warnings
    assert "900007.DEMO" in gone and "was delisted on 2022-07-15" in gone
    assert unknown.startswith("“Hermes” is no company that this desk covers")
    alone = await desk.ask("Is 900007.DEMO cheap?")
    assert (alone.status, alone.last.plan) == ("replied", None) and "delisted" in alone.last.reply


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "in memory"])
async def test_a_conversation_is_found_by_the_beginning_of_its_id_or_as_the_last(home, database, kept):
    async with asking(settings_of(home, database, persistence=kept)) as desk:
        asked = [await desk.ask("hi") for _ in range(17)]  # of sixteen digits, two ids begin with the same
        find, workspace = desk.service.find, desk.workspace
        assert (await find("last", workspace)).id == asked[-1].id
        assert (await find(str(asked[3].id)[:18].upper(), workspace)).id == asked[3].id
        firsts = [str(each.id)[0] for each in asked]
        shared = next(first for first in firsts if firsts.count(first) > 1)
        with pytest.raises(InvalidInput, match="Write more of it"):
            await find(shared, workspace)
        for name, where in (("last", "elsewhere"), ("f" * 32, workspace)):
            with pytest.raises(NotFound):
                await find(name, where)
