"""The attempts of one call, and the turn that each of them waits for."""

import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from moot.modules.llm_platform.domain.budget import Amount, Budget, Reservation
from moot.modules.llm_platform.domain.exceptions import LLMConnectionError, ModelTrouble, NoAvailableModel
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.rate_limits import Entrance, NotYet, Sleep
from moot.shared.infrastructure.execution_context import current_context, tell_retry
from moot.shared.infrastructure.working_time import strict_seconds_left

logger = structlog.get_logger(__name__)

PATIENCE = 5.0
"""Seconds to wait for a model while another could be asked."""
LIMITS = ("concurrency", "requests_per_minute", "tokens_per_minute")


class Tries:
    """The attempts of one call: the models left to ask, the time left, and what went wrong so far.

    `waiting_counts`: the time is for everything, and not for the models only.
    """

    def __init__(self, deadline: float, *, waiting_counts: bool = False) -> None:
        self._waiting_counts = waiting_counts
        self.others_left = self.attempts = 0
        self._end = time.monotonic() + deadline
        self._troubles: dict[str, ModelTrouble] = {}
        self._last: ModelTrouble | None = None

    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    @property
    def longest_wait(self) -> float:
        """For a turn, in seconds."""
        own = self.seconds_left() if self._waiting_counts else math.inf
        return min(own, strict_seconds_left())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """For a turn, in this block: that takes none of the model's time."""
        came = time.monotonic()
        try:
            yield
        finally:
            if not self._waiting_counts:
                self._end += time.monotonic() - came

    def begin(self) -> None:
        """Another attempt; whoever watches is told when it is not the first, and why."""
        self.attempts += 1
        if self._last is not None:
            tell_retry(self.attempts, self._last.message)

    def note_failure(self, config: LLMConfig, trouble: ModelTrouble) -> None:
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


class ModelTurns:
    """Who may be asked now: a request is made when a model has a place for it, its minute allows it, and money is
    left. A model without limits is asked at once."""

    def __init__(self, budget: Budget, sleep: Sleep) -> None:
        self._budget, self._sleep = budget, sleep
        self._entrances: dict[tuple[UUID, int | None], Entrance] = {}

    @asynccontextmanager
    async def take(self, config: LLMConfig, amount: Amount, tries: Tries) -> AsyncIterator[Reservation]:
        """The request is made in this block; raises `ModelTrouble` when no turn comes in time."""
        reserve = partial(self._budget.reserve, amount, config.rate)
        if config.at_once is None and config.rate is None and current_context().batch_max_cost is None:
            yield await reserve()
            return
        turn = self._entrance(config).enter(
            current_context().priority,
            reserve,
            longest=tries.longest_wait,
            patience=PATIENCE if tries.others_left else math.inf,
        )
        async with AsyncExitStack() as inside:
            try:
                with tries.waiting():
                    reservation = await inside.enter_async_context(turn)
            except NotYet as soon:
                raise _no_turn(config, soon) from None
            yield reservation

    def _entrance(self, config: LLMConfig) -> Entrance:
        key = (config.id, config.at_once)
        if key not in self._entrances:
            self._entrances[key] = Entrance(f"model:{config.alias}", config.at_once, self._sleep)
        return self._entrances[key]


def _no_turn(config: LLMConfig, soon: NotYet) -> ModelTrouble:
    counts = (config.at_once, config.requests_per_minute, config.tokens_per_minute)
    limits = {name: count for name, count in zip(LIMITS, counts, strict=True) if count}
    said = SAY(
        "llm.no_turn",
        model=config.model_name,
        allowed=[SAY(f"llm.{name}", count=count) for name, count in limits.items()],
        options=[f"--{name}".replace("_", "-") for name in limits],
        settings=[f"MOOT_LLM_{name}".upper() for name in limits],
    )
    return ModelTrouble(said, retry_after=soon.seconds or None)
