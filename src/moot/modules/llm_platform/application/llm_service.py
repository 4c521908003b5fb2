"""The one door to language models: every call is routed, budgeted, recorded, and tried again where that helps.

Whatever asks a model asks here, so what is true of one call is true of all: no other place retries or fails over.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from moot.modules.llm_platform.application.attempts import (
    Request,
    Tries,
    dependency,
    left_alone,
    service_failed,
    too_slow,
)
from moot.modules.llm_platform.application.model_registry import ModelRegistry
from moot.modules.llm_platform.domain.budget import Budget, most
from moot.modules.llm_platform.domain.call_record import (
    CallJournal,
    CallKey,
    CallLogItem,
    CallOutcome,
    mismatch,
)
from moot.modules.llm_platform.domain.chat import (
    ChatMessage,
    ChatModel,
    ChatRequest,
    ChatResult,
    ResponseSchema,
    Tool,
)
from moot.modules.llm_platform.domain.exceptions import ModelTrouble
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.shared.domain.guard import Guard, LeftAlone, unguarded
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, current_execution_ctx

__all__ = ["ChatMessage", "ChatResult", "LLMService", "ResponseSchema", "Tool"]

PAUSES = (1.0, 2.0)
"""Seconds before the second and third attempt with the same model, unless its vendor asks for more."""
JITTER = 0.25
PATIENCE = 5.0
"""Seconds to wait for a model while another could be asked."""

Sleep = Callable[[float], Awaitable[None]]


class LLMService:
    """`deadline` is for a whole call with all its attempts, in seconds; each attempt passes `guard`."""

    def __init__(
        self,
        registry: ModelRegistry,
        model: ChatModel,
        journal: CallJournal,
        budget: Budget,
        *,
        deadline: float = 50.0,
        max_tokens: int = 4096,
        sleep: Sleep = asyncio.sleep,
        guard: Guard = unguarded,
    ) -> None:
        self._registry, self._model, self._max_tokens = registry, model, max_tokens
        self._journal, self._budget = journal, budget
        self._deadline, self._sleep, self._guard = deadline, sleep, guard

    @property
    def configured(self) -> bool:
        """Whether there is any active model for the workspace under way."""
        return self._registry.any_active(_workspace())

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        response_schema: ResponseSchema | None = None,
        *,
        tool_choice: str = "auto",
        temperature: float = 0.7,
        max_tokens: int | None = None,
        alias: str | None = None,
        tags: Sequence[str] | None = None,
        caller_module: str = "",
        caller_agent: str | None = None,
    ) -> ChatResult:
        """Ask the model chosen by `alias`, by `tags`, or else the first by priority; fail over to the next.

        `max_tokens` may ask for less than what the desk allows an answer to have.
        """
        request = ChatRequest(
            messages=list(messages),
            tools=list(tools or []),
            tool_choice=tool_choice,
            response_schema=response_schema,
            temperature=temperature,
            max_tokens=min(max_tokens or self._max_tokens, self._max_tokens),
        )
        key = CallKey.next(caller_module, caller_agent)
        recorded = await self._from_record(key, request)
        return recorded or await self._live(key, request, alias, tags)

    async def generate(
        self,
        prompt: str,
        system_message: str | None = None,
        temperature: float = 0.7,
        alias: str | None = None,
        tags: Sequence[str] | None = None,
        caller_module: str = "",
        caller_agent: str | None = None,
    ) -> str:
        """The plain text a model answers `prompt` with."""
        system = [ChatMessage(role="system", content=system_message)] if system_message else []
        result = await self.chat(
            [*system, ChatMessage(role="user", content=prompt)],
            temperature=temperature,
            alias=alias,
            tags=tags,
            caller_module=caller_module,
            caller_agent=caller_agent,
        )
        return result.content

    def candidates(self, alias: str | None = None, tags: Sequence[str] | None = None) -> list[LLMConfig]:
        """The models such a call would ask, in order."""
        return self._registry.candidates(alias=alias, tags=tags, workspace=_workspace())

    async def _live(
        self, key: CallKey, request: ChatRequest, alias: str | None, tags: Sequence[str] | None
    ) -> ChatResult:
        tries = Tries(self.candidates(alias, tags), self._deadline)
        for candidate in tries.each():
            config, pauses = candidate, [*PAUSES, None]
            while pauses:
                tries.begin()
                try:
                    return await self._attempt(key, config, request, tries)
                except ModelTrouble as trouble:
                    tries.failed(config, trouble)
                    if simpler := self._without(trouble.unsupported, config):
                        config = simpler
                        continue
                    pause = pauses.pop(0)
                    if pause is None or not trouble.passing or not await self._wait(pause, trouble, tries):
                        break
            if tries.seconds_left() <= 0:
                break
        raise tries.gave_up()

    async def _attempt(
        self, key: CallKey, config: LLMConfig, request: ChatRequest, tries: Tries
    ) -> ChatResult:
        async with self._guarded(config), self._on_record(key, config, request, tries.attempts) as call:
            seconds = tries.seconds_left()
            try:
                async with asyncio.timeout(seconds):
                    call.reply = await self._model.complete(config, request)
            except TimeoutError:
                raise too_slow(config, self._deadline, seconds) from None
        return call.result()

    async def _wait(self, pause: float, trouble: ModelTrouble, tries: Tries) -> bool:
        """Wait and say yes, if another attempt with the same model is worth it."""
        seconds = max(trouble.retry_after or 0.0, pause * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311
        if seconds >= tries.seconds_left() or (seconds > PATIENCE and tries.others_left):
            return False
        await self._sleep(seconds)
        return True

    def _without(self, unsupported: str | None, config: LLMConfig) -> LLMConfig | None:
        """The same model, to be asked without what it refused, once each; None when that would not help."""
        known = config.capabilities
        if unsupported is None or unsupported == "tools" or getattr(known, unsupported) is False:
            return None
        self._registry.note_capability(config.alias, unsupported, False, _workspace())
        return config.model_copy(update={"capabilities": known.model_copy(update={unsupported: False})})

    @asynccontextmanager
    async def _guarded(self, config: LLMConfig) -> AsyncIterator[None]:
        """One attempt with the model; while its service is left alone, trouble that no other attempt changes."""
        try:
            async with self._guard(dependency(config), service_failed):
                yield
        except LeftAlone as alone:
            raise left_alone(alone) from None

    @asynccontextmanager
    async def _on_record(
        self, key: CallKey, config: LLMConfig, request: ChatRequest, attempt: int
    ) -> AsyncIterator[Request]:
        """Reserve and record before; record and settle after, however the request ends."""
        reservation = await self._budget.reserve(most(request, config))
        call = Request(config, reservation)
        try:
            call.id = await self._journal.begin(key.intent(config, request, attempt))
            call.sent = True
            try:
                yield call
            except ModelTrouble as trouble:
                call.trouble = trouble
                raise
            finally:
                await self._journal.end(call.id, call.outcome())
                call.count()
        finally:
            await self._budget.settle(reservation, call.used())

    async def _from_record(self, key: CallKey, request: ChatRequest) -> ChatResult | None:
        """The recorded answer to this very question, when the session goes on, or is replayed, from its record."""
        if key.answers == "live":
            return None
        answered = await self._journal.answered(key.session_id, key.agent, key.ordinal)
        for recorded in answered:
            if recorded.request_digest == key.digest(recorded.model_name, request):
                if key.answers == "resume":
                    await self._note(key, recorded, request)
                return self._as_recorded(recorded)
        if key.answers == "replay":
            raise mismatch(key, request, answered)
        return None

    async def _note(self, key: CallKey, recorded: CallLogItem, request: ChatRequest) -> None:
        """On the record too: that this answer was not asked for again."""
        intent = key.intent_of(recorded, request)
        call_id = await self._journal.begin(intent)
        await self._journal.end(call_id, CallOutcome(status="success", latency_ms=0, reply=recorded.reply))

    def _as_recorded(self, recorded: CallLogItem) -> ChatResult:
        alias = recorded.alias or ""
        return ChatResult(
            **recorded.reply.model_dump(),
            alias=alias,
            vendor=recorded.vendor,
            cost=recorded.cost,
            origin="record",
            knowledge_cutoff=self._registry.knowledge_cutoff(alias, _workspace()),
            call_id=recorded.id,
        )


def _workspace() -> str:
    context = current_execution_ctx.get()
    return context.workspace if context else DEFAULT_WORKSPACE
