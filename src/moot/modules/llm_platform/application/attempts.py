"""The attempts of one call to a model: whom to ask next, what is left of the time, what each request came to."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import structlog

from moot.modules.llm_platform.domain.budget import Amount, Reservation
from moot.modules.llm_platform.domain.call_record import CallOutcome
from moot.modules.llm_platform.domain.chat import ChatResult, ModelReply, Usage
from moot.modules.llm_platform.domain.exceptions import LLMConnectionError, ModelTrouble, NoAvailableModel
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.guard import Dependency, LeftAlone
from moot.shared.infrastructure.execution_context import current_execution_ctx, tell_retry

logger = structlog.get_logger(__name__)


class Tries:
    """The attempts of one call: the models to ask, the time left, and what went wrong so far."""

    def __init__(self, candidates: Sequence[LLMConfig], deadline: float) -> None:
        self._candidates = candidates
        self.others_left = len(candidates)
        self.attempts = 0
        self._end = time.monotonic() + deadline
        self._troubles: dict[str, ModelTrouble] = {}
        self._last: ModelTrouble | None = None

    def each(self) -> Iterator[LLMConfig]:
        for config in self._candidates:
            self.others_left -= 1
            yield config

    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    def begin(self) -> None:
        """Another attempt; whoever watches is told when it is not the first, and why."""
        self.attempts += 1
        if self._last is not None:
            tell_retry(self.attempts, self._last.message)

    def failed(self, config: LLMConfig, trouble: ModelTrouble) -> None:
        self._troubles[config.alias] = self._last = trouble
        logger.warning("model call failed", alias=config.alias, model=config.model_name, error=str(trouble))

    def gave_up(self) -> LLMConnectionError | NoAvailableModel:
        waits = [trouble.retry_after for trouble in self._troubles.values() if trouble.retry_after]
        later: dict[str, Any] = {"retry_after": math.ceil(min(waits))} if waits else {}
        if len(self._troubles) == 1:
            name, trouble = next(iter(self._troubles.items()))
            return LLMConnectionError(
                SAY("llm.one_failed", alias=name, why=trouble.message), alias=name, **later
            )
        failures = [SAY("llm.failure", alias=name, why=t.message) for name, t in self._troubles.items()]
        said = SAY("llm.all_failed", failures=failures)
        return NoAvailableModel(said, aliases=list(self._troubles), **later)


class Request:
    """One request under way: what it may use, and what became of it."""

    def __init__(self, config: LLMConfig, reservation: Reservation) -> None:
        self._config, self._reserved = config, reservation.amount
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
        return ChatResult(
            **self.reply.model_dump(),
            alias=self._config.alias,
            vendor=self._config.vendor,
            cost=self.cost,
            knowledge_cutoff=self._config.knowledge_cutoff,
            call_id=self.id,
        )

    def outcome(self) -> CallOutcome:
        took = round((time.perf_counter() - self._started) * 1000)
        if self.reply is not None:
            return CallOutcome(status="success", latency_ms=took, reply=self.reply, cost=self.cost)
        if self.trouble is not None:
            return CallOutcome(status="failed", latency_ms=took, error_message=str(self.trouble))
        return CallOutcome(status="unknown", latency_ms=took, error_message="broken off before an answer")

    def count(self) -> None:
        """For the session under way, so that its report can say what it took."""
        context = current_execution_ctx.get()
        if context is None:
            return
        usage = self.reply.usage if self.reply else Usage(total_tokens=0)
        context.tally.requests += 1
        context.tally.tokens += usage.total_tokens or 0
        context.tally.cost += self.cost or 0.0
        context.tally.unpriced += self.reply is not None and self.cost is None

    def used(self) -> Amount:
        """Where nobody can say what the vendor charges, all that was set aside counts as spent."""
        if not self.sent or (self.trouble is not None and not self.trouble.billed):
            return Amount()
        total = self.reply.usage.total_tokens if self.reply else None
        if total is None:
            return self._reserved
        return Amount(tokens=total, cost=self.cost if self.cost is not None else self._reserved.cost)


def too_slow(config: LLMConfig, deadline: float, silent: float) -> ModelTrouble:
    """`silent`: seconds that this model itself took; after others there may have been little left for it."""
    said = SAY("llm.too_slow", model=config.model_name, seconds=f"{deadline:g}")
    return ModelTrouble(said, billed=True, outage=silent >= deadline / 2)


def left_alone(alone: LeftAlone) -> ModelTrouble:
    return ModelTrouble(alone.message, retry_after=alone.retry_after)


def service_failed(error: Exception) -> bool:
    return isinstance(error, ModelTrouble) and error.outage


def dependency(config: LLMConfig) -> Dependency:
    """What a model is guarded as. Each workspace has models of its own."""
    return Dependency(f"model:{config.alias}", config.workspace_id)
