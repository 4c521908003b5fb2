"""The team: steps in parallel within bounds, in the order they need each other, none able to harm another."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest

from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.error_handler import ErrorHandlingPolicy
from moot.modules.governance.container import GovernanceContainer
from moot.modules.intake.application.intake_state import Errand, Task
from moot.modules.intake.domain.question import Finding, Limits, Plan, Step
from moot.modules.intake.infrastructure.agents.team import OnStep, StepWatch, Team
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, ExecutionContext
from tests.fakes.clock import PATIENCE, leap, settle

GOAL = "Compare them"
Deed = Callable[[], Any]


class FakeTeamMates:
    """Does for each step what it was told to, else finds something at once; keeps what it was asked and given."""

    def __init__(self, deeds: Mapping[str, Deed] | None = None) -> None:
        self._deeds = deeds or {}
        self.ran: list[str] = []
        self.given: dict[str, Any] = {}
        self.at_once = self.most_at_once = self.cancelled = 0

    async def research(self, step: Step, task: Task) -> Finding:
        self.given[step.id] = task.background
        return await self._work(step)

    async def process(self, step: Step, findings: Sequence[Finding], task: Task) -> Finding:
        self.given[step.id] = [finding.step_id for finding in findings]
        return await self._work(step)

    async def _work(self, step: Step) -> Finding:
        self.ran.append(step.id)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            deed = self._deeds.get(step.id)
            if deed is not None:
                await deed()
            return Finding(step_id=step.id, status="completed", text=f"found by {step.id}")
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1


def watching(trail: AuditTrail | None = None, **policy: Any) -> CoordinatorAgent:
    """A desk's governance that waits for next to nothing before it tries again."""
    quick = ErrorHandlingPolicy(retry_delay_seconds=0.001, **policy)
    return GovernanceContainer(trail=trail, clock=SystemClock(), policy=quick).agent


async def fails() -> None:
    raise Unavailable("the service is down")


async def crashes() -> None:
    raise KeyError("a defect")


async def hangs() -> None:
    await asyncio.Event().wait()


async def takes_too_long() -> None:
    """The others have ended meanwhile."""
    await settle()
    leap(60)
    await hangs()


def step(name: str, *after: str, kind: str = "research") -> Step:
    return Step.model_validate({"id": name, "type": kind, "title": f"Step {name}", "after": after})


async def find_symbols(steps: Sequence[Step]) -> list[str]:
    """Words that look like one."""
    return [word for each in steps for word in each.title.split() if word.endswith(".DEMO")]


async def work(
    mates: FakeTeamMates,
    *steps: Step,
    limits: Mapping[str, Any] | None = None,
    background: str = "",
    on_step: OnStep = lambda *_: None,
    watch: StepWatch | None = None,
    turn: str = "",
    **more: Any,
):
    watch = watch or StepWatch(watching())
    plan = Plan(locale="en-US", title="A plan", steps=steps)
    task = Task(GOAL, "en-US", Errand(), Limits(**(limits or {})), background)
    with ExecutionContext(workspace=DEFAULT_WORKSPACE, session_id=turn).active():
        async with watch.turn():
            found = await Team(mates, mates, mates, watch, find_symbols).work(
                plan, task, on_step=on_step, **more
            )
    return {finding.step_id: finding for finding in found}


def statuses(found: Mapping[str, Finding]) -> dict[str, str]:
    return {name: finding.status for name, finding in found.items()}


@pytest.mark.accepts("A4-20")
async def test_independent_steps_are_under_way_at_the_same_time():
    barrier = asyncio.Barrier(3)
    mates = FakeTeamMates(dict.fromkeys("abc", barrier.wait))
    found = await work(mates, step("a"), step("b", kind="equity"), step("c"))
    assert statuses(found) == {"a": "completed", "b": "completed", "c": "completed"}
    assert list(found) == ["a", "b", "c"]


async def test_no_more_than_allowed_are_under_way_at_once():
    mates = FakeTeamMates({name: lambda: asyncio.sleep(0.01) for name in "abcdef"})
    await work(mates, *map(step, "abcdef"), limits={"steps_at_once": 2})
    assert mates.most_at_once == 2


async def test_a_step_starts_as_soon_as_what_it_needs_has_ended():
    slow = asyncio.Event()
    mates = FakeTeamMates({"slow": slow.wait, "after": lambda: asyncio.sleep(0, slow.set())})
    found = await work(
        mates, step("slow"), step("quick"), step("after", "quick"), limits={"step_timeout": PATIENCE}
    )
    assert set(statuses(found).values()) == {"completed"}
    assert mates.given["after"] == "found by quick"


async def test_steps_that_wait_take_no_place():
    mates = FakeTeamMates()
    order = step("c", "b"), step("a"), step("b", "a")
    found = await work(mates, order[1], order[2], order[0], limits={"steps_at_once": 1})
    assert mates.ran == ["a", "b", "c"]
    assert set(statuses(found).values()) == {"completed"}


@pytest.mark.accepts("W45")
async def test_a_failed_step_has_an_error_and_no_text_and_is_nobodys_evidence():
    mates = FakeTeamMates({"a": fails})
    found = await work(
        mates, step("a"), step("b"), step("needs", "a", "b"), step("sums", "a", "b", kind="processing")
    )
    assert statuses(found) == {"a": "failed", "b": "completed", "needs": "skipped", "sums": "completed"}
    assert (found["a"].text, found["a"].error) == ("", "the service is down")
    assert not found["a"].usable
    assert mates.given["sums"] == ["b"]
    assert "needs" not in mates.ran


async def test_processing_with_nothing_to_go_by_is_skipped_and_what_needs_it_too():
    mates = FakeTeamMates({"a": fails})
    found = await work(
        mates, step("a"), step("sums", "a", kind="processing"), step("then", "sums"), step("free")
    )
    assert statuses(found) == {"a": "failed", "sums": "skipped", "then": "skipped", "free": "completed"}
    assert found["sums"].error


async def test_a_defect_in_one_step_does_not_take_the_others_down():
    mates = FakeTeamMates({"a": crashes, "b": lambda: asyncio.sleep(0.01)})
    found = await work(mates, step("a"), step("b"))
    assert statuses(found) == {"a": "failed", "b": "completed"}
    assert "KeyError" in str(found["a"].error)


async def test_a_step_that_takes_too_long_is_stopped():
    mates = FakeTeamMates({"a": takes_too_long})
    found = await work(mates, step("a"), step("b"), limits={"step_timeout": 60})
    assert statuses(found) == {"a": "failed", "b": "completed"}
    assert "60 seconds" in str(found["a"].error)
    assert mates.cancelled == 1


async def test_cancelling_the_work_cancels_every_step():
    mates = FakeTeamMates({"a": hangs, "b": hangs})
    running = asyncio.create_task(work(mates, step("a"), step("b"), step("c", "a")))
    while mates.at_once < 2:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (mates.cancelled, mates.ran) == (2, ["a", "b"])


async def test_what_is_done_is_not_done_again_and_can_be_built_on():
    before = Finding(step_id="a", status="completed", text="found before")
    failed = Finding(step_id="b", status="failed", error="gone")
    mates = FakeTeamMates()
    steps = step("a"), step("c", "a", "earlier"), step("b"), step("d", "b")
    earlier = Finding(step_id="earlier", status="completed", text="of another plan")
    found = await work(mates, *steps, done={"a": before, "b": failed, "earlier": earlier})
    assert mates.ran == ["c"]
    assert "earlier" not in found
    assert found["a"] == before
    assert statuses(found) == {"a": "completed", "b": "failed", "c": "completed", "d": "skipped"}
    assert mates.given["c"] == "found before\n\nof another plan"


async def test_a_need_that_is_not_there_or_comes_later_is_never_waited_for():
    mates = FakeTeamMates()
    found = await work(mates, step("a", "b"), step("b", "a"), step("c", "nobody"))
    assert set(statuses(found).values()) == {"skipped"}


async def test_whoever_watches_is_told_of_beginnings_and_ends():
    told: list[tuple[str, str]] = []
    mates = FakeTeamMates({"a": fails})
    await work(
        mates,
        step("a"),
        step("b", "a"),
        on_step=lambda about, finding: told.append((about.id, finding.status if finding else "begins")),
    )
    assert told == [("a", "begins"), ("a", "failed"), ("b", "skipped")]


async def test_background_reaches_research_steps():
    mates = FakeTeamMates()
    await work(mates, step("a"), background="known already")
    assert mates.given["a"] == "known already"


def fails_with(*errors: Exception) -> Deed:
    left = list(errors)

    async def deed() -> None:
        if left:
            raise left.pop(0)

    return deed


class TestUnderWatch:
    async def test_steps_stand_where_they_stand_with_what_they_were_given_and_found(self):
        agent = watching()
        before = Finding(step_id="a", status="completed", text="found before")
        mates = FakeTeamMates({"c": crashes})
        await work(
            mates,
            step("a"),
            step("b", "a"),
            step("c"),
            step("d", "c"),
            watch=StepWatch(agent),
            done={"a": before},
        )
        (turn,) = agent.monitor.get_all_workflows()
        assert (turn.executed_nodes, turn.failed_nodes, turn.skipped_nodes) == (["a", "b"], ["c"], ["d"])
        assert turn.node_inputs["b"]["title"] == "Step b"
        assert [turn.node_outputs[name]["text"] for name in "ab"] == ["found before", "found by b"]
        assert [(entry.node_id, entry.action_taken) for entry in turn.error_log] == [("c", "abort")]
        assert (turn.status, agent.monitor.count_active()) == ("partial", 0)

    async def test_what_passes_is_tried_again_and_then_the_agent_is_told(self):
        errors = [TimeoutError("slow"), ConnectionResetError("gone")]
        mates = FakeTeamMates({"a": fails_with(*errors), "b": fails_with(*errors * 2)})
        found = await work(mates, step("a"), step("b"))
        assert statuses(found) == {"a": "completed", "b": "completed"}
        assert (mates.ran.count("a"), mates.ran.count("b")) == (3, 5)
        assert (mates.given["a"], "cached data" in mates.given["b"]) == ("", True)

    async def test_what_no_retry_mends_is_put_before_a_person(self, database: Database):
        agent, turn = watching(AuditTrail(database)), uuid4()
        mates = FakeTeamMates({"a": fails_with(PermissionError("no right to read it"))})
        found = await work(mates, step("a"), step("b"), watch=StepWatch(agent), turn=str(turn))
        assert statuses(found) == {"a": "failed", "b": "completed"}
        (asked,) = (await agent.escalations.list_waiting(DEFAULT_WORKSPACE)).items
        assert (asked.session_id, asked.why, asked.payload["node"]) == (turn, ["no right to read it"], "a")

    async def test_a_step_that_is_optional_is_left_out(self):
        mates = FakeTeamMates({"a": crashes})
        watch = StepWatch(watching(skippable_node_types=("research",)))
        found = await work(mates, step("a"), step("b"), watch=watch)
        assert statuses(found) == {"a": "skipped", "b": "completed"}
        assert "optional" in str(found["a"].error)
