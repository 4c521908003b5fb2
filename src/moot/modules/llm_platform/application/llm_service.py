"""The one door to language models: every call is routed, budgeted, recorded, and tried again where that helps.

Whatever asks a model asks here, so what is true of one call is true of all: no other place retries or fails over.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.application.tries import PATIENCE, ModelTurns, Tries
from moot.modules.llm_platform.domain.budget import Amount, Budget, most
from moot.modules.llm_platform.domain.call_record import CallJournal, CallKey, mismatch, reply_row
from moot.modules.llm_platform.domain.chat import (
    ChatMessage,
    ChatRequest,
    ChatResult,
    Complete,
    ModelReply,
    ResponseSchema,
    Tool,
    compose,
)
from moot.modules.llm_platform.domain.exceptions import ModelTrouble
from moot.modules.llm_platform.domain.model_config import DEFAULT_ALIAS, ENVIRONMENT, LLMConfig
from moot.modules.llm_platform.domain.parsing import parse_llm_json_output
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.guard import Dependency, Guard, LeftAlone, let_through
from moot.shared.domain.messages import Message
from moot.shared.domain.rate_limits import Sleep
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.working_time import off_the_clock

__all__ = ["ChatMessage", "ChatResult", "LLMService", "ResponseSchema", "Tool", "parse_llm_json_output"]

PAUSES = (1.0, 2.0)
"""Seconds before the second and third attempt with the same model, unless its vendor asks for more."""
JITTER = 0.25
LONGEST_PAUSE = 50.0
"""Whoever asks for a longer one is not asked again."""


class Request:
    """One request under way: what it may use, and what became of it."""

    def __init__(self, config: LLMConfig, reserved: Amount) -> None:
        self._config, self._reserved = config, reserved
        self._started = time.perf_counter()
        self.reply: ModelReply | None = None
        self.trouble: ModelTrouble | None = None
        self.id: UUID | None = None
        self.sent = False

    @property
    def cost(self) -> float | None:
        usage = self.reply.usage if self.reply else None
        return self._config.cost(usage.prompt_tokens, usage.completion_tokens) if usage else None

    def result(self) -> ChatResult:
        assert self.reply is not None
        whose = {name: getattr(self._config, name) for name in ("alias", "vendor", "knowledge_cutoff")}
        return ChatResult(**self.reply.model_dump(), **whose, cost=self.cost, call_id=self.id)

    def outcome(self) -> dict[str, Any]:
        took = {"latency_ms": round((time.perf_counter() - self._started) * 1000)}
        if self.reply is not None:
            return took | {"status": "success", "cost": self.cost} | reply_row(self.reply)
        if self.trouble is not None:
            return took | {"status": "failed", "error_message": str(self.trouble)}
        return took | {"status": "unknown", "error_message": "broken off before an answer"}

    def count(self) -> None:
        """For the session under way, so that its report can say what it took."""
        tally = current_context().tally
        tokens = self.reply.usage.total_tokens if self.reply else 0
        tally.requests += 1
        tally.tokens += tokens or 0
        tally.cost += self.cost or 0.0
        tally.unpriced += self.reply is not None and self.cost is None
        tally.uncounted += tokens is None

    def count_spent(self) -> Amount:
        """Where nobody can say what the vendor charges, all that was set aside counts as spent."""
        if not self.sent or (self.trouble is not None and not self.trouble.billed):
            return Amount()
        total = self.reply.usage.total_tokens if self.reply else None
        if total is None:
            return self._reserved
        return Amount(tokens=total, cost=self.cost if self.cost is not None else self._reserved.cost)


class LLMService:
    """`deadline` is for a whole call with all its attempts and all waiting, in seconds; without one, the time-outs of
    the models that are asked hold. Each attempt passes `guard`."""

    def __init__(
        self,
        registry: ModelRegistry,
        complete: Complete,
        journal: CallJournal,
        budget: Budget,
        *,
        deadline: float | None = None,
        max_tokens: int = 4096,
        sleep: Sleep = asyncio.sleep,
        guard: Guard = let_through,
    ) -> None:
        self._registry, self._complete, self._max_tokens = registry, complete, max_tokens
        self._journal, self._budget, self._turns = journal, budget, ModelTurns(budget, sleep)
        self._deadline, self._sleep, self._guard = deadline, sleep, guard

    @property
    def configured(self) -> bool:
        """Whether there is any active model for the workspace under way."""
        return bool(self._registry.usable(current_context().workspace))

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        response_schema: ResponseSchema | None = None,
        *,
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
            response_schema=response_schema,
            temperature=temperature,
            max_tokens=min(max_tokens or self._max_tokens, self._max_tokens),
        )
        key = CallKey.next(caller_module, caller_agent)
        if recorded := await self._from_record(key, request):
            return recorded
        with off_the_clock(current_context().tally.waiting):
            return await self._live(key, request, alias, tags)

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
        result = await self.chat(
            compose(prompt, system_message),
            temperature=temperature,
            alias=alias,
            tags=tags,
            caller_module=caller_module,
            caller_agent=caller_agent,
        )
        return result.content

    def candidates(self, alias: str | None = None, tags: Sequence[str] | None = None) -> list[LLMConfig]:
        """The models such a call would ask, in order."""
        return self._registry.candidates(alias=alias, tags=tags, workspace=current_context().workspace)

    async def _live(
        self, key: CallKey, request: ChatRequest, alias: str | None, tags: Sequence[str] | None
    ) -> ChatResult:
        candidates = self.candidates(alias, tags)
        each = sum(config.seconds for config in candidates)
        tries = Tries(self._deadline or each, waiting_counts=self._deadline is not None)
        for place, candidate in enumerate(candidates, 1):
            tries.others_left = len(candidates) - place
            config, pauses = candidate, [*PAUSES, None]
            while pauses:
                tries.begin()
                try:
                    return await self._attempt(key, config, request, tries)
                except ModelTrouble as trouble:
                    tries.note_failure(config, trouble)
                    lacks = trouble.unsupported
                    if lacks not in (None, "tools") and getattr(config.capabilities, lacks) is not False:
                        config = self._registry.note_refusal(config, lacks)  # asked without, once each
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
        """While the model's service is left alone, that is trouble which no other attempt changes."""
        called = Dependency(f"model:{config.alias}", config.workspace_id)
        try:
            async with (
                self._in_turn(config, request, tries) as call,
                self._guard(called),
                self._on_record(key, config, request, call, tries.attempts),
            ):
                call.reply = await self._reply(config, request, tries)
        except LeftAlone as alone:
            raise ModelTrouble(alone.message, retry_after=alone.retry_after) from None
        return call.result()

    async def _reply(self, config: LLMConfig, request: ChatRequest, tries: Tries) -> ModelReply:
        """After others there may be little time left for this model: its silence is then no outage."""
        left = tries.seconds_left()
        seconds = min(left, config.seconds)
        try:
            async with asyncio.timeout(seconds):
                return await self._complete(config, request)
        except TimeoutError:
            how: Message | str
            whole, how = config.seconds, SAY("llm.timeout_of", alias=config.alias)
            if self._deadline is not None and left < config.seconds:
                whole, how = self._deadline, "MOOT_LLM_DEADLINE"
            elif (config.alias, config.vendor) == (DEFAULT_ALIAS, ENVIRONMENT):
                how = "MOOT_LLM_TIMEOUT"
            said = SAY("llm.too_slow", model=config.model_name, seconds=f"{whole:g}", how=how)
            raise ModelTrouble(said, billed=True, outage=seconds >= whole / 2) from None

    async def _wait(self, pause: float, trouble: ModelTrouble, tries: Tries) -> bool:
        """Wait and say yes, if another attempt with the same model is worth it."""
        seconds = max(trouble.retry_after or 0.0, pause * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311
        longest = min(tries.seconds_left(), PATIENCE if tries.others_left else LONGEST_PAUSE)
        if seconds > longest:
            return False
        await self._sleep(seconds)
        return True

    @asynccontextmanager
    async def _in_turn(self, config: LLMConfig, request: ChatRequest, tries: Tries) -> AsyncIterator[Request]:
        """Reserve before; settle after, however the request ends."""
        reserved = most(request, config)
        async with self._turns.take(config, reserved, tries) as reservation:
            call = Request(config, reserved)
            try:
                yield call
            finally:
                await self._budget.settle(reservation, reserved, call.count_spent(), made=call.sent)

    @asynccontextmanager
    async def _on_record(
        self, key: CallKey, config: LLMConfig, request: ChatRequest, call: Request, attempt: int
    ) -> AsyncIterator[None]:
        """Record before and after, however the request ends."""
        call.id = await self._journal.begin(key.intent(config, request, attempt=attempt))
        call.sent = True
        try:
            yield
        except ModelTrouble as trouble:
            call.trouble = trouble
            raise
        finally:
            await self._journal.end(call.id, call.outcome())
            call.count()

    async def _from_record(self, key: CallKey, request: ChatRequest) -> ChatResult | None:
        """The recorded answer to this very question, when the session goes on, or is replayed, from its record."""
        if key.answers == "live":
            return None
        answered = await self._journal.find_answered(key.session_id, key.agent, key.ordinal)
        for recorded in answered:
            if recorded.request_digest == key.digest(recorded.model_name, request):
                if key.answers == "resume":  # on the record too: that this answer was not asked for again
                    call_id = await self._journal.begin(key.intent(recorded, request, origin="record"))
                    again = {"status": "success", "latency_ms": 0, **reply_row(recorded.reply)}
                    await self._journal.end(call_id, again)
                cutoff = self._registry.knowledge_cutoff(recorded.alias, current_context().workspace)
                return recorded.result(knowledge_cutoff=cutoff)
        if key.answers == "replay":
            raise mismatch(key, request, answered)
        return None
