"""The way of a question through intake, as the service sees it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypedDict


class IntakeState(TypedDict, total=False):
    """All of it is JSON: it is kept between a question and the answer a person gives to its plan.

    `goto` is where the question goes next. `earlier` are findings of the turns before. `escalation`: the rules want
    somebody to approve the plan first.
    """

    messages: list[dict[str, Any]]
    goto: str
    locale: str
    handed_locale: str | None
    detected_locale: str | None
    task_title: str | None
    understanding: dict[str, Any] | None
    reply: str | None
    error: dict[str, Any] | None
    enable_background_investigation: bool
    auto_accepted_plan: bool
    style: str
    limits: dict[str, Any]
    background: list[dict[str, Any]]
    plan: dict[str, Any] | None
    plan_iterations: int
    escalation: dict[str, Any] | None
    edits: list[str]
    rejected: bool
    findings: list[dict[str, Any]]
    earlier: list[dict[str, Any]]
    answer: dict[str, Any] | None
    warnings: list[str]


class Stand(NamedTuple):
    """`waits`: for a person to accept, edit or reject the plan in `state`."""

    state: IntakeState
    waits: bool


class IntakeGraph(Protocol):
    async def begin(self, thread: str, state: IntakeState) -> Stand: ...

    async def go_on(self, thread: str, feedback: Mapping[str, Any] | None = None) -> Stand:
        """With what a person said to the plan; without, from where a process died."""
