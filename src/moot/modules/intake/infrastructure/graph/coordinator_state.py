"""The state of the coordinator's sub-graph: JSON throughout, so that any checkpointer can keep it."""

from typing import Any, Literal, TypedDict


class Turn(TypedDict):
    role: Literal["user", "assistant"]
    content: str


class LimitsGiven(TypedDict, total=False):
    """What is left out has the value `Limits` means."""

    max_step_num: int
    max_plan_iterations: int


class Failure(TypedDict):
    code: str
    message: str
    """In the reader's language."""


class CoordinatorState(TypedDict, total=False):
    """What comes in and what goes out: the last of `messages` by a user is the question."""

    messages: list[Turn]
    locale: str
    """In: of the conversation or the request, if known. Out: what everybody after the coordinator writes in."""
    limits: LimitsGiven
    enable_background_investigation: bool
    understanding: dict[str, Any] | None
    """An `Understanding`. In: of the turn before. Out: of this one, or unchanged where nothing is to be found out."""

    goto: str
    task_title: str | None
    reply: str | None
    error: Failure | None
    detected_locale: str
    handed_locale: str | None
    """As the model wrote it."""


class WorkingState(CoordinatorState, total=False):
    """Passed from node to node and gone at the end. `said` is an assistant's message, whoever speaks it."""

    prompt: list[dict[str, Any]]
    said: dict[str, Any]
    understood: dict[str, Any]
    by_model: bool


def question_of(state: CoordinatorState) -> str:
    return next((turn["content"] for turn in reversed(state["messages"]) if turn["role"] == "user"), "")
