"""Plans that the rules put before somebody else: they wait, go on once approved, and are told when they are not."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from moot.modules.governance.application.escalations import EscalationService
from moot.modules.intake.application.intake_service import Conversation, Feedback, Question
from tests.fakes.llm_server import LLMServer
from tests.intake.whole_desk import (
    ACCEPTED,
    REJECTED,
    Asking,
    Heard,
    Parts,
    about_plans,
    asking,
    hands_over,
    plans,
    researching,
    settings_of,
)

MIRAGE, FOGHARBOUR = "900001.DEMO", "900002.DEMO"
COMPARED = f"Compare {MIRAGE} and {FOGHARBOUR}"
TRENDS = "What are the latest AI trends?"
ALIKE = {"title": "Latest AI trends", "locale": "en-US"}
CAREFUL = about_plans("payload.step_count > 1", requires_human=True)


@pytest.fixture
async def ruled(home, database) -> AsyncIterator[Asking]:
    """A desk without a model, that wants somebody to look at plans of several steps."""
    async with asking(settings_of(home, database)) as desk:
        desk.forbid(CAREFUL)
        yield desk


def queue(desk: Asking) -> EscalationService:
    found = desk.desk.governance.agent.escalations
    assert found is not None
    return found


async def waiting(desk: Asking) -> list[UUID]:
    return [each.id for each in (await queue(desk).list_waiting("default")).items]


async def approve(desk: Asking, by: str = "boss") -> None:
    (asked,) = await waiting(desk)
    await queue(desk).approve(asked, "default", by=by, reason="fine")


def told_how(conversation: Conversation, escalation: UUID) -> bool:
    return any(f"moot escalations approve {escalation}" in warning for warning in conversation.last.warnings)


async def test_a_plan_waits_for_its_approval_and_goes_on_with_it(ruled):
    heard, later = Heard(), Heard()
    asked = await ruled.ask(COMPARED, heard)
    (escalation,) = await waiting(ruled)
    assert (asked.status, asked.last.error, len(asked.last.plan.steps)) == ("waiting", None, 3)
    assert told_how(asked, escalation)
    assert heard.of("plan")[0]["escalation_id"] == str(escalation)
    assert heard.names[-2:] == ["interrupt", "done"]
    assert asked.last.escalation_id == heard.of("interrupt")[0]["escalation_id"] == str(escalation)

    early = await ruled.say(asked, ACCEPTED)
    assert (early.status, early.last.plan, early.last.findings) == ("waiting", asked.last.plan, ())
    assert early.last.warnings == asked.last.warnings and await waiting(ruled) == [escalation]
    assert await ruled.sessions() == 0

    await approve(ruled)
    ended = await ruled.say(early, ACCEPTED, later)
    assert (ended.status, len(ended.last.findings), await ruled.sessions()) == ("answered", 3, 2)
    assert not told_how(ended, escalation) and ended.last.escalation_id is None
    assert not any("escalations" in warning for warning in ended.last.answer.warnings)
    used = await queue(ruled).get(escalation, "default")
    assert used.status == "used"
    decided = [str(each.status) for each in await ruled.decisions("plan")]
    assert decided == ["escalated", "escalated", "approved"]


async def test_nobody_accepts_beforehand_what_has_to_be_approved(ruled):
    asked = await ruled.ask(COMPARED, auto_accepted_plan=True)
    assert (asked.status, asked.last.findings) == ("waiting", ())
    await approve(ruled)
    assert (await ruled.say(asked, ACCEPTED)).status == "answered"


async def test_a_plan_that_somebody_rejects_is_told_as_rejected(ruled):
    asked = await ruled.ask(f"{MIRAGE} 和 {FOGHARBOUR} 比较一下")
    (escalation,) = await waiting(ruled)
    assert asked.last.warnings[-1].startswith("这份计划须先经人工批准")
    await queue(ruled).reject(escalation, "default", by="boss", reason="not now")
    heard = Heard()
    ended = await ruled.say(asked, ACCEPTED, heard)
    assert (ended.status, ended.last.error, ended.last.findings) == ("rejected", None, ())
    assert "未获人工批准" in ended.last.reply and heard.of("message_chunk") == [{"text": ended.last.reply}]
    assert not told_how(ended, escalation) and await ruled.sessions() == 0


async def test_whoever_asked_need_not_wait_for_an_approval(ruled):
    asked = await ruled.ask(COMPARED)
    ended = await ruled.say(asked, REJECTED)
    assert (ended.status, ended.last.reply) == (
        "rejected",
        "The plan was rejected. Nothing was researched.",
    )


async def test_a_colleague_goes_on_with_what_was_approved_for_whoever_asked(ruled):
    asked = await ruled.service.ask(Question(question=COMPARED), workspace="default", requested_by="ana")
    await approve(ruled, by="bob")
    ended = await ruled.service.feedback(asked.id, ACCEPTED, workspace="default", requested_by="bob")
    assert (ended.status, await waiting(ruled)) == ("answered", [])
    assert {each.requester for each in await ruled.decisions("plan")} == {"ana"}


async def test_a_plan_that_was_changed_while_it_was_approved_is_shown_again(ruled):
    asked = await ruled.ask(COMPARED)
    (escalation,) = await waiting(ruled)
    offered = (await queue(ruled).get(escalation, "default")).payload
    fewer = {**offered, "steps": offered["steps"][:1], "step_count": 1, "symbols": [MIRAGE]}
    await queue(ruled).edit(escalation, "default", by="boss", payload=fewer, reason="one will do")
    shown = await ruled.say(asked, ACCEPTED)
    assert (shown.status, [step.symbol for step in shown.last.plan.steps]) == ("waiting", [MIRAGE])
    assert not told_how(shown, escalation)
    ended = await ruled.say(shown, ACCEPTED)
    assert (ended.status, await ruled.sessions()) == ("answered", 1)


async def test_however_often_it_is_edited_an_unapproved_plan_is_not_carried_out(home, llm_server: LLMServer):
    parts = Parts(llm_server)
    two = researching("a", "Latest AI trends"), researching("b", "AI trends of 2025")
    parts.play("coordinator", hands_over(**ALIKE))
    parts.play("planner", *[plans(*two, **ALIKE)] * 9)
    model = {"llm_base_url": llm_server.url, "llm_model": "fake-1"}
    async with asking(settings_of(home, **model)) as desk:
        desk.forbid(CAREFUL)
        asked = await desk.ask(TRENDS, auto_accepted_plan=True)
        for _ in range(7):
            asked = await desk.say(asked, Feedback(decision="edit_plan", text="shorter"))
        (escalation,) = await waiting(desk)
        assert (asked.status, told_how(asked, escalation)) == ("waiting", True)
        assert (await desk.say(asked, ACCEPTED)).status == "waiting"
        assert parts.asked["researcher"] == []


async def test_an_edit_that_the_rules_allow_needs_no_approval(home, llm_server: LLMServer):
    parts = Parts(llm_server)
    two = researching("a", "Latest AI trends"), researching("b", "AI trends of 2025")
    parts.play("coordinator", hands_over(**ALIKE))
    parts.play("planner", plans(*two, **ALIKE), plans(two[0], **ALIKE))
    model = {"llm_base_url": llm_server.url, "llm_model": "fake-1"}
    async with asking(settings_of(home, **model)) as desk:
        desk.forbid(CAREFUL)
        asked = await desk.ask(TRENDS)
        (escalation,) = await waiting(desk)
        edited = await desk.say(asked, Feedback(decision="edit_plan", text="one step"))
        assert (len(edited.last.plan.steps), told_how(edited, escalation)) == (1, False)
        ended = await desk.say(edited, ACCEPTED)
        assert len(ended.last.findings) == 1


async def test_an_approval_given_after_a_restart_counts(home, database):
    async with asking(settings_of(home, database)) as desk:
        desk.forbid(CAREFUL)
        asked = await desk.ask(COMPARED)
    async with asking(settings_of(home, database)) as desk:
        desk.forbid(CAREFUL)
        await approve(desk)
        assert (await desk.say(asked, ACCEPTED)).status == "answered"


async def test_what_was_found_before_is_told_where_the_next_plan_is_not_approved(home, llm_server: LLMServer):
    """A second plan needs approval; whoever does not wait for it still gets what the first one found."""
    parts = Parts(llm_server)
    second = researching("b", "AI trends of 2025"), researching("c", "AI trends in chips")
    share = {"id": "a", "type": "equity", "title": f"Research {MIRAGE}", "symbol": MIRAGE}
    parts.play("coordinator", hands_over(**ALIKE))
    parts.play("planner", plans(share, **ALIKE), plans(*second, **ALIKE))
    model = {"llm_base_url": llm_server.url, "llm_model": "fake-1", "analyst": "rubric"}
    async with asking(settings_of(home, **model)) as desk:
        desk.forbid(CAREFUL)
        asked = await desk.ask(f"{TRENDS} And {MIRAGE}?", auto_accepted_plan=True, max_plan_iterations=2)
        assert (asked.status, [each.step_id for each in asked.last.findings]) == ("waiting", ["a"])
        ended = await desk.say(asked, REJECTED)
        assert (ended.status, [each.step_id for each in ended.last.findings]) == ("answered", ["a"])
        assert not any("escalations" in warning for warning in ended.last.answer.warnings)
