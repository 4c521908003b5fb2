"""Questions to a desk elsewhere: the answers and errors of a desk of one's own."""

from uuid import UUID

import pytest

import moot
from moot import desk as local
from moot.main import create_app
from moot.modules.intake.application.intake_service import Conversation, NoSuchConversation, NotItsTurn
from moot.remote.client import RemoteMoot
from moot.shared.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import new_key
from tests.entry.test_remote_desk import serving
from tests.fakes.clock import TickingClock

NOBODY = UUID("7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d")
QUESTION = "Is 900001.DEMO cheap?"


@pytest.fixture
async def app(home, clock):
    settings = Settings(home=home, log_level="error", locale="en-US")
    return create_app(local.Moot(settings, clock=TickingClock(clock.now())))


@pytest.fixture
async def address(app):
    async with serving(app) as address:
        yield address


@pytest.fixture
async def desk(address):
    async with RemoteMoot(address, locale="en-US") as desk:
        yield desk


async def test_a_conversation_is_the_one_that_is_kept_there(app, desk):
    waiting = await desk.ask(QUESTION, style="brief")
    assert (waiting.status, waiting.last.style, waiting.last.answer) == ("waiting", "brief", None)
    answered = await desk.answer_plan(waiting.id, "accepted")
    assert (answered.status, len(answered.last.sessions)) == ("answered", 1)
    assert answered.last.answer is not None
    assert answered.last.answer.style == "brief"
    there = await app.state.desk.conversation(waiting.id)
    assert there.model_dump() == answered.model_dump()
    assert answered == await desk.conversation(waiting.id)
    assert Conversation.model_validate_json(answered.model_dump_json()) == answered


async def test_a_follow_up_goes_on_with_its_thread_in_its_own_language(desk):
    first = await desk.ask("900001.DEMO 估值高吗？", accept_plan=True)
    second = await desk.ask("and the technical view?", thread=first.id, locale="en-US")
    assert (second.id, [turn.status for turn in second.turns]) == (first.id, ["answered", "waiting"])
    assert (first.last.locale, second.last.locale) == ("zh-CN", "en-US")


@pytest.mark.parametrize("method", ["ask", "answer_plan", "conversation"])
async def test_what_is_not_there_is_the_same_error_from_both(app, desk, method):
    given = {
        "ask": lambda asked: asked.ask(QUESTION, thread=NOBODY),
        "answer_plan": lambda asked: asked.answer_plan(NOBODY, "accepted"),
        "conversation": lambda asked: asked.conversation(NOBODY),
    }[method]
    with pytest.raises(NoSuchConversation) as here:
        await given(app.state.desk)
    with pytest.raises(NoSuchConversation) as there:
        await given(desk)
    assert issubclass(NoSuchConversation, NotFound)
    assert there.value.code == here.value.code == "CONVERSATION_NOT_FOUND"
    assert there.value.in_locale("en-US") == here.value.in_locale("en-US")


async def test_another_turn_is_the_same_error_from_both(app, desk):
    waiting = await desk.ask(QUESTION)
    for asked in (app.state.desk, desk):
        with pytest.raises(NotItsTurn) as busy:
            await asked.ask(QUESTION, thread=waiting.id)
        assert busy.value.details == {"status": "waiting"}
    assert issubclass(NotItsTurn, Conflict)
    await desk.answer_plan(waiting.id, "rejected")
    for asked in (app.state.desk, desk):
        with pytest.raises(NotItsTurn) as over:
            await asked.answer_plan(waiting.id, "accepted")
        assert over.value.details == {"status": "rejected"}


async def test_bad_input_is_the_same_error_from_both(app, desk):
    problems = []
    for asked in (app.state.desk, desk):
        with pytest.raises(InvalidInput) as refused:
            await asked.ask("", style="poem")
        problems.append([(each["field"], each["problem"]) for each in refused.value.details["errors"]])
        with pytest.raises(InvalidInput):
            await asked.answer_plan(NOBODY, "perhaps")
        with pytest.raises(InvalidInput) as wordless:
            await asked.answer_plan(NOBODY, "edit_plan")
        assert [each["field"] for each in wordless.value.details["errors"]] == ["text"]
    assert problems[0] == problems[1] == [("question", "string_too_short"), ("style", "literal_error")]


async def test_asking_takes_a_key_for_research(app, address):
    app.state.open_to_loopback = False
    reading, researching = await new_key(app, "read"), await new_key(app, "read", "research")
    async with moot.Moot(base_url=address, api_key=researching, locale="en-US") as desk:
        replied = await desk.ask("hello")
    async with moot.Moot(base_url=address, api_key=reading, locale="en-US") as desk:
        assert (await desk.conversation(replied.id)).status == "replied"
        with pytest.raises(Forbidden):
            await desk.ask("hello")
