"""What the coordinator's model may decide: hand a question to the planner, or answer it itself."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from moot.modules.intake.application.ports import ToolSpec
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.errors import UpstreamFailed

HAND_TO_PLANNER = ToolSpec(
    name="hand_to_planner",
    description="Hand a question that can be researched to the planner.",
    parameters={
        "type": "object",
        "properties": {
            "task_title": {
                "type": "string",
                "description": "What is to be found out, as a short title in the user's language.",
            },
            "locale": {
                "type": "string",
                "description": "The language the user writes in: en-US, zh-CN, ja-JP, ko-KR, …",
            },
        },
        "required": ["task_title", "locale"],
        "additionalProperties": False,
    },
)

PARROTED = 20
"""So many characters of the tool's own words in place of a title: a small model has repeated what it was told."""
TITLE_OF: Mapping[str, str] = {
    HAND_TO_PLANNER.name: "task_title",
    "handoff_to_planner": "research_topic",
    "handoff_after_clarification": "research_topic",
}
"""Names under which models know the tool, and the argument that holds the title. Prompts use the first alone."""
MESSAGE_OF: Mapping[str, str] = {"direct_response": "message"}
"""Some models call a tool to answer: the same as answering."""


class MalformedArguments(UpstreamFailed):
    """The model called a tool with arguments nobody can read; `details` name the tool."""

    code = "MALFORMED_TOOL_ARGUMENTS"


class Call(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> str:
        """JSON as the model wrote it."""


class HandOff(NamedTuple):
    """None: the model did not say."""

    title: str | None
    locale: str | None


class Reply(NamedTuple):
    text: str
    locale: str | None = None


def decided_by(calls: Iterable[Call]) -> HandOff | Reply | None:
    """The first call that means something here; what other tools somebody calls is ignored."""
    for call in calls:
        if call.name in TITLE_OF:
            arguments = _arguments(call)
            return HandOff(_title(arguments, call.name), _text(arguments, "locale"))
        if call.name in MESSAGE_OF:
            arguments = _arguments(call)
            return Reply(_text(arguments, MESSAGE_OF[call.name]) or "", _text(arguments, "locale"))
    return None


def _title(arguments: Mapping[str, Any], tool: str) -> str | None:
    title = _text(arguments, TITLE_OF[tool])
    told = HAND_TO_PLANNER.parameters["properties"]["task_title"]["description"]
    return None if title and title[:PARROTED].lower() == told[:PARROTED].lower() else title


def _arguments(call: Call) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError) as e:
        raise _malformed(call) from e
    if not isinstance(arguments, dict):
        raise _malformed(call)
    return arguments


def _malformed(call: Call) -> MalformedArguments:
    return MalformedArguments(SAY("coordinator.malformed_arguments", tool=call.name), tool=call.name)


def _text(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    return value.strip() or None if isinstance(value, str) else None
