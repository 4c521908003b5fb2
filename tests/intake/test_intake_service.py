"""The one door for questions: whose turn it is, what a person says to a plan, and what a request asks for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

import pytest

from moot.modules.intake.application.intake_service import (
    Conversation,
    Feedback,
    NoSuchConversation,
    NotItsTurn,
    Question,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import validate
from tests.fakes.clock import PATIENCE
from tests.fakes.llm_server import Hang, LLMServer, Say
from tests.intake.whole_desk import (
    ACCEPTED,
    REJECTED,
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

MIRAGE = "900001.DEMO"
BUY = f"Should I buy {MIRAGE} now?"
ALIKE = {"title": "Latest AI trends", "locale": "en-US"}


@pytest.fixture
async def desk(home, database) -> AsyncIterator[Asking]:
    async with asking(settings_of(home, database)) as desk:
        yield desk


@pytest.fixture
async def modelled(home, database, llm_server: LLMServer) -> AsyncIterator[Asking]:
    told = {"llm_base_url": llm_server.url, "llm_model": "fake-1", "analyst": "rubric"}
    async with asking(settings_of(home, database, **told)) as desk:
        yield desk


@pytest.fixture
def parts(llm_server: LLMServer) -> Parts:
    return Parts(llm_server)


async def stored(desk: Asking, conversation: Conversation) -> Conversation:
    return await desk.service.conversation(conversation.id, "default")


async def test_a_plan_waits_is_accepted_and_carried_out(desk):
    heard, later = Heard(), Heard()
    waiting = await desk.ask(BUY, heard)
    assert (waiting.status, waiting.last.ended_at, waiting.last.answer) == ("waiting", None, None)
    assert heard.names == ["plan", "interrupt", "done"]
    assert await stored(desk, waiting) == waiting
    assert await desk.sessions() == 0
    answered = await desk.say(waiting, ACCEPTED, later)
    assert answered.status == "answered" and answered.last.plan == waiting.last.plan
    assert await stored(desk, answered) == answered
    assert [what for what in later.names if what != "message_chunk"] == [
        "step",
        "citation",
        "step",
        "report",
        "done",
    ]
    assert [about["status"] for about in later.of("step")] == ["started", "completed"]
    assert later.of("step")[1]["session_id"] == answered.last.sessions[0]


async def test_a_rejected_plan_is_not_carried_out(desk):
    heard = Heard()
    ended = await desk.say(await desk.ask(BUY), REJECTED, heard)
    assert (ended.status, ended.last.findings, ended.last.answer) == ("rejected", (), None)
    assert heard.names == ["message_chunk", "done"]
    assert await desk.sessions() == 0
    assert (await desk.ask("Hello", thread_id=ended.id)).status == "replied"


@pytest.mark.accepts("W42")
async def test_a_person_may_change_the_plan_but_not_for_ever(modelled, parts):
    parts.play("coordinator", hands_over(**ALIKE))
    first = plans(researching("a", "Latest AI trends"), **ALIKE)
    parts.play("planner", first, *[plans(researching("b", "AI trends in chips"), **ALIKE)] * 50)
    waiting = await modelled.ask("What are the latest AI trends?")
    edit = Feedback(decision="edit_plan", text="Only chips, please.")
    changed = await modelled.say(waiting, edit)
    assert (changed.status, [step.id for step in changed.last.plan.steps]) == ("waiting", ["b"])
    assert "Only chips, please." in parts.told("planner")
    while not changed.last.warnings:
        changed = await modelled.say(changed, edit)
    assert changed.status == "waiting" and len(parts.asked["planner"]) < 20
    plans_made = len(parts.asked["planner"])
    assert (await modelled.say(changed, edit)).last.plan == changed.last.plan
    assert len(parts.asked["planner"]) == plans_made


async def test_without_a_model_a_wish_to_change_the_plan_is_said_to_be_unheard(desk):
    waiting = await desk.ask(BUY)
    again = await desk.say(waiting, Feedback(decision="edit_plan", text="Only its valuation."))
    assert again.status == "waiting" and again.last.plan.steps == waiting.last.plan.steps
    assert any("takes a language model" in warning for warning in again.last.warnings)
    assert (await desk.say(again, ACCEPTED)).status == "answered"


@pytest.mark.accepts("W40")
@pytest.mark.parametrize("said", [{"decision": "perhaps"}, {"decision": "accepted", "why": "so"}, {}])
async def test_feedback_nobody_knows_is_refused(said):
    with pytest.raises(InvalidInput):
        validate(Feedback, said)


@pytest.mark.accepts("W40")
@pytest.mark.parametrize("said", [{}, {"text": ""}, {"text": " \n"}])
async def test_a_wish_to_change_the_plan_says_what_to_change(said):
    with pytest.raises(InvalidInput) as refused:
        validate(Feedback, {"decision": "edit_plan", **said})
    assert [each["field"] for each in refused.value.details["errors"]] == ["text"]
    assert refused.value.in_locale("en-US") == "text: must not be blank."
    assert refused.value.in_locale("zh-CN").startswith("text")
    assert validate(Feedback, {"decision": "accepted", **said}).decision == "accepted"


@pytest.mark.accepts("W40", "A4-27")
@pytest.mark.parametrize(
    "asked",
    [
        {"question": " "},
        {"question": "x" * 4001},
        {"question": "Hello", "max_step_num": 0},
        {"question": "Hello", "max_plan_iterations": 6},
        {"question": "Hello", "style": "poem"},
        {"question": "Hello", "thread_id": "42"},
        {"question": "Hello", "debug": True},
    ],
)
async def test_a_request_that_cannot_be_honoured_is_refused(asked):
    with pytest.raises(InvalidInput):
        validate(Question, asked)


@pytest.mark.accepts("W40")
async def test_what_a_request_says_is_honoured(desk):
    question = f"Compare {MIRAGE}, 900002.DEMO and 900003.DEMO"
    ended = await desk.ask(question, auto_accepted_plan=True, max_step_num=2, style="brief")
    assert ended.status == "answered"
    assert len(ended.last.plan.steps) == 2 and any("900003.DEMO" in w for w in ended.last.warnings)
    assert (ended.last.style, ended.last.answer.style) == ("brief", "brief")


async def test_a_conversation_that_waits_takes_no_other_question(desk):
    waiting = await desk.ask(BUY)
    with pytest.raises(NotItsTurn) as refused:
        await desk.ask("Hello", thread_id=waiting.id)
    assert refused.value.details["status"] == "waiting"
    with pytest.raises(NotItsTurn):
        await desk.resume(waiting)
    assert await stored(desk, waiting) == waiting


async def test_a_conversation_that_has_ended_takes_no_feedback(desk):
    ended = await desk.ask("Hello")
    with pytest.raises(NotItsTurn):
        await desk.say(ended, ACCEPTED)
    with pytest.raises(NotItsTurn):
        await desk.resume(ended)


async def test_of_two_who_answer_at_once_one_wins(desk):
    waiting = await desk.ask(BUY)
    both = await asyncio.gather(
        desk.say(waiting, ACCEPTED), desk.say(waiting, REJECTED), return_exceptions=True
    )
    assert sorted(type(each) for each in both if isinstance(each, Exception)) == [NotItsTurn]
    (won,) = (each for each in both if isinstance(each, Conversation))
    assert await stored(desk, won) == won
    assert await desk.sessions() == len(won.last.sessions)


async def test_of_two_processes_that_answer_at_once_one_wins(home, database):
    settings = settings_of(home, database)
    async with asking(settings) as here, asking(settings) as there:
        waiting = await here.ask(BUY)
        assert await stored(there, waiting) == waiting
        both = await asyncio.gather(
            here.say(waiting, ACCEPTED), there.say(waiting, ACCEPTED), return_exceptions=True
        )
        assert [type(each) for each in both if isinstance(each, Exception)] == [NotItsTurn]
        assert (await stored(there, waiting)).status == "answered"
        assert await here.sessions() == 1


async def test_of_two_questions_at_once_in_one_conversation_one_is_asked(desk):
    begun = await desk.ask("Hello")
    both = await asyncio.gather(
        *(desk.ask(BUY, thread_id=begun.id) for _ in range(2)), return_exceptions=True
    )
    assert [type(each) for each in both if isinstance(each, Exception)] == [NotItsTurn]
    assert len((await stored(desk, begun)).turns) == 2


async def test_another_workspace_knows_nothing_of_a_conversation(desk):
    waiting = await desk.ask(BUY)
    elsewhere = Asking(desk.desk, "other")
    assert await elsewhere.service.conversations("other") == []
    for attempt in (
        elsewhere.say(waiting, ACCEPTED),
        elsewhere.ask("Hello", thread_id=waiting.id),
        elsewhere.resume(waiting),
        elsewhere.service.conversation(waiting.id, "other"),
        elsewhere.service.conversation(uuid4(), "other"),
    ):
        with pytest.raises(NoSuchConversation):
            await attempt
    assert await stored(desk, waiting) == waiting


async def test_what_a_workspace_asks_is_researched_for_that_workspace(desk):
    ended = await Asking(desk.desk, "other").ask(BUY, auto_accepted_plan=True)
    assert ended.status == "answered" and await desk.sessions() == 0
    (plan,) = await Asking(desk.desk, "other").decisions("plan")
    assert plan.workspace_id == "other"


async def test_a_question_that_is_broken_off_can_be_resumed(modelled, parts):
    parts.play("coordinator", hands_over("Research it", "en-US"))
    parts.play("planner", Hang())
    asked = asyncio.create_task(modelled.ask(BUY, auto_accepted_plan=True))
    async with asyncio.timeout(PATIENCE):
        while not parts.asked["planner"]:
            await asyncio.sleep(0.01)
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked
    (left,) = await modelled.service.conversations("default")
    assert (left.status, left.last.left) == ("running", True)
    with pytest.raises(NotItsTurn) as busy:
        await modelled.ask("Hello", thread_id=left.id)
    assert f"moot ask --thread {left.id} --resume" in busy.value.in_locale("en-US")
    step = {"id": "a", "type": "equity", "title": f"Research {MIRAGE}", "symbol": MIRAGE}
    parts.play("planner", plans(step, title=f"Research {MIRAGE}", locale="en-US"))
    parts.play("reporter", writes("An answer", "Nothing speaks for haste [1]."))
    ended = await modelled.resume(left)
    assert (ended.status, ended.last.answer.title) == ("answered", "An answer")
    assert len(parts.asked["coordinator"]) == 1


async def test_a_model_that_is_gone_ends_the_turn_with_an_error_in_the_readers_language(modelled, parts):
    heard = Heard()
    ended = await modelled.ask(f"{MIRAGE} 现在能买吗？", heard)
    assert (ended.status, ended.last.locale, ended.last.answer) == ("failed", "zh-CN", None)
    assert heard.names == ["error", "done"]
    assert heard.of("error")[0]["message"] == ended.last.error
    assert any("一" <= letter <= "鿿" for letter in ended.last.error)
    parts.play("coordinator", Say("您好"))
    assert (await modelled.ask("你好", thread_id=ended.id)).last.reply == "您好"


@pytest.mark.accepts("W46")
async def test_a_conversation_and_its_sessions_spend_from_one_budget(home, database, llm_server, parts):
    """What coordinator and planner have used up is not there for the experts, nor for the reporter."""
    told = {"llm_base_url": llm_server.url, "llm_model": "fake-1", "budget_day_tokens": 40_000}
    step = {"id": "a", "type": "equity", "title": f"Research {MIRAGE}", "symbol": MIRAGE}
    plan = plans(step, title=f"Research {MIRAGE}", locale="en-US").content
    async with asking(settings_of(home, database, **told)) as desk:
        parts.play("coordinator", replace(hands_over("Research it", "en-US"), usage=(19_000, 0)))
        parts.play("planner", Say(plan, usage=(19_000, 0)))
        ended = await desk.ask(BUY, auto_accepted_plan=True)
        assert list(parts.asked) == ["coordinator", "planner"]
        (found,) = ended.last.findings
        assert found.status == "failed" and found.session_id is not None
        assert (ended.status, ended.last.answer.engine) == ("nothing_found", "rules")
        refused = await desk.ask("Hello")
        assert refused.status == "failed" and "MOOT_BUDGET_DAY_TOKENS" in refused.last.error
