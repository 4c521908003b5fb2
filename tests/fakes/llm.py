"""A model that says what it was told to say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.domain.chat import ChatMessage, ChatResult, ResponseSchema, Tool, Usage

Said = str | Exception | ChatResult
Script = Callable[[Sequence[ChatMessage]], Said]


@dataclass
class Asked:
    messages: Sequence[ChatMessage]
    response_schema: ResponseSchema | None
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def system(self) -> str:
        return next((m.content for m in self.messages if m.role == "system"), "")

    @property
    def prompt(self) -> str:
        return next(m.content for m in reversed(self.messages) if m.role == "user")


class FakeLLM(LLMService):
    """Answers in the order given; the last answer repeats. An exception is raised; a function sees the messages."""

    def __init__(self, *answers: Said | Script, configured: bool = True) -> None:
        self._answers = list(answers)
        self._configured = configured
        self.asked: list[Asked] = []

    @property
    def configured(self) -> bool:
        return self._configured

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        response_schema: ResponseSchema | None = None,
        **given: Any,
    ) -> ChatResult:
        self.asked.append(Asked(messages, response_schema, given))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        said = answer(messages) if callable(answer) else answer
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, ChatResult) else spoken(said)


def spoken(content: str, **also: Any) -> ChatResult:
    usage = Usage(prompt_tokens=100, completion_tokens=50, total_tokens=150)
    return ChatResult(
        **{"content": content, "usage": usage, "model": "fake-1", "alias": "fake", "vendor": "fake", **also}
    )
