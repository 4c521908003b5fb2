"""What a research step has asked and been told: for the model's next turn, and for whoever reads what it found."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from moot.modules.intake.application.errand import Task
from moot.modules.intake.application.ports import ToolOutcome
from moot.modules.intake.domain.findings import Citation
from moot.modules.intake.domain.texts import SAY
from moot.modules.llm_platform.application.llm_service import ChatMessage, ChatResult
from moot.shared.domain.messages import Locale

MOST_CHARACTERS = 50_000
"""Of all messages after the first ones; the oldest words go first."""


@dataclass
class Notebook:
    """`calls` counts those that failed too. `passages` are what the tools said, as a reader may see it."""

    opening: Sequence[ChatMessage]
    task: Task
    began: float = field(default_factory=time.monotonic)
    turns: list[ChatMessage] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0
    read: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    passages: list[str] = field(default_factory=list)
    sources: dict[tuple[str, str], Citation] = field(default_factory=dict)
    limit: str | None = None
    """Why nothing more is looked up."""

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self.sources.values())

    @property
    def calls_left(self) -> int:
        return self.task.limits.max_tool_calls - self.calls

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def asks_anew(self, reply: ChatResult) -> bool:
        """Whether any of its calls is one that has not been made before."""
        calls = {f"{call.name} {call.arguments}" for call in reply.tool_calls}
        new = calls - self.asked
        self.asked |= calls
        return bool(new)

    def told(self, reply: ChatResult, outcomes: Sequence[ToolOutcome]) -> None:
        """A whole turn, in the order of its calls; services refuse a call that nothing answers."""
        self.turns.append(
            ChatMessage(role="assistant", content=reply.content, tool_calls=list(reply.tool_calls))
        )
        for call, outcome in zip(reply.tool_calls, outcomes, strict=True):
            content = as_data(outcome.text, self.task.reader) if outcome.tainted else outcome.text
            self.turns.append(ChatMessage(role="tool", content=content, tool_call_id=call.id))
            self._keep(outcome)

    def messages(self) -> list[ChatMessage]:
        kept = list(_clipped(self.turns, self.task.say("steps.left_out")))
        return [*self.opening, *reversed(kept)]

    def _keep(self, outcome: ToolOutcome) -> None:
        if outcome.ends:
            self.limit = outcome.text
        if outcome.failed:
            return
        self.passages.append(outcome.text)
        for citation in outcome.citations:
            self.sources.setdefault((citation.url or citation.title, citation.source), citation)
        if outcome.tainted:
            self.read.append(outcome.text)


def as_data(text: str, locale: Locale) -> str:
    """Words of strangers between marks that they cannot write themselves."""
    quoted = text.replace("<", "&lt;")
    return f"{SAY('steps.outside').in_locale(locale)}\n<outside_text>\n{quoted}\n</outside_text>"


def _clipped(turns: Sequence[ChatMessage], left_out: str) -> Iterator[ChatMessage]:
    """From the last to the first, each as long as there is room; a message stays, only its words go."""
    room = MOST_CHARACTERS
    for message in reversed(turns):
        words = message.content
        if len(words) > room:
            words = words[:room] + left_out
        room = max(0, room - len(message.content))
        yield message if words == message.content else message.model_copy(update={"content": words})
