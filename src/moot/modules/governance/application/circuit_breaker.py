"""Keeps away from what is broken: after some failures in a row a dependency is left alone, then tried by one call."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

import structlog

from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
)
from moot.shared.domain.guard import Counts, LeftAlone

logger = structlog.get_logger(__name__)

FAILURES = 5
OPEN_SECONDS = 60.0

OF_THE_CALLER = (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
    LookupError,
    TypeError,
    ValueError,
)


class BreakerState(StrEnum):
    """From good to bad."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


BADNESS = {state: place for place, state in enumerate(BreakerState)}


class CircuitBreakerOpenError(LeftAlone):
    """`retry_after` seconds from now a call may be made."""

    code = "CIRCUIT_BREAKER_OPEN"

    def __init__(self, name: str, seconds: int) -> None:
        said = SAY("execution.breaker_open", name=name, seconds=seconds)
        super().__init__(said, dependency=name, retry_after=seconds)


@dataclass(frozen=True, slots=True)
class BreakerReport:
    """`total` are all calls asked for; those cancelled, or failed by their caller's fault, are in no other number."""

    name: str
    state: BreakerState
    consecutive_failures: int
    total: int
    successful: int
    failed: int
    rejected: int


@dataclass(eq=False, slots=True)
class _Turn:
    """A call let through; `era` tells whether the breaker has changed its state since."""

    era: int


def dependency_failed(error: Exception) -> bool:
    """Bad input and missing rights are the caller's: they say nothing about the dependency."""
    return not isinstance(error, OF_THE_CALLER)


class CircuitBreaker:
    """One dependency. `counts` tells which errors are its failures.

    A deadline belongs inside the call: what is cancelled from outside counts neither way.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        failures: int = FAILURES,
        open_seconds: float = OPEN_SECONDS,
        *,
        counts: Callable[[Exception], bool] = dependency_failed,
    ) -> None:
        self.name, self._clock, self._counts = name, clock, counts
        self._failures, self._open_for = failures, timedelta(seconds=open_seconds)
        self._in_a_row, self._era = 0, 0
        self._opened_at: datetime | None = None
        self._probe: _Turn | None = None
        self._total = self._successful = self._failed = self._rejected = 0

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._time_left() > timedelta() else BreakerState.HALF_OPEN

    @asynccontextmanager
    async def call(self, counts: Counts | None = None) -> AsyncIterator[None]:
        """Make the call in this block; `CircuitBreakerOpenError` instead of entering it while it may not be made.

        Whoever knows better than the breaker which errors of this call are its failures says so by `counts`.
        """
        turn = self._admit()
        try:
            yield
        except Exception as e:
            if (counts or self._counts)(e):
                self._note_failure(turn)
            raise
        else:
            self._note_success(turn)
        finally:
            if self._probe is turn:
                self._probe = None

    def report(self) -> BreakerReport:
        return BreakerReport(
            name=self.name,
            state=self.state,
            consecutive_failures=self._in_a_row,
            total=self._total,
            successful=self._successful,
            failed=self._failed,
            rejected=self._rejected,
        )

    def _admit(self) -> _Turn:
        self._total += 1
        state = self.state
        if state is BreakerState.OPEN or self._probe is not None:
            self._rejected += 1
            raise CircuitBreakerOpenError(self.name, max(1, math.ceil(self._time_left().total_seconds())))
        turn = _Turn(self._era)
        if state is BreakerState.HALF_OPEN:
            self._probe = turn
        return turn

    def _note_success(self, turn: _Turn) -> None:
        self._successful += 1
        if turn.era != self._era:  # it began before the breaker opened, and tells of that time
            return
        self._in_a_row = 0
        if self._opened_at is not None:
            self._turn_over(None)
            logger.info("circuit closed", dependency=self.name)

    def _note_failure(self, turn: _Turn) -> None:
        self._failed += 1
        if turn.era != self._era:
            return
        self._in_a_row += 1
        if self._in_a_row >= self._failures:  # so too when the one that tries it fails
            self._turn_over(self._clock.now())
            logger.warning("circuit opened", dependency=self.name, failures=self._in_a_row)

    def _turn_over(self, opened_at: datetime | None) -> None:
        self._opened_at, self._era = opened_at, self._era + 1

    def _time_left(self) -> timedelta:
        if self._opened_at is None:
            return timedelta()
        return self._opened_at + self._open_for - self._clock.now()


class Breakers:
    """The breakers of a desk, one for each dependency, shared by all who call it."""

    def __init__(
        self,
        clock: Clock,
        failures: int = FAILURES,
        open_seconds: float = OPEN_SECONDS,
        *,
        counts: Callable[[Exception], bool] = dependency_failed,
    ) -> None:
        self._new = partial(
            CircuitBreaker, clock=clock, failures=failures, open_seconds=open_seconds, counts=counts
        )
        self._breakers: dict[str, CircuitBreaker] = {}

    def of(self, name: str) -> CircuitBreaker:
        if name not in self._breakers:
            self._breakers[name] = self._new(name)
        return self._breakers[name]

    def guard(self, name: str, counts: Counts) -> AbstractAsyncContextManager[None]:
        """A `Guard`, for those who know nothing of breakers."""
        return self.of(name).call(counts)

    @property
    def worst(self) -> BreakerState:
        states = [breaker.state for breaker in self._breakers.values()]
        return max(states, key=BADNESS.__getitem__, default=BreakerState.CLOSED)

    @property
    def open_names(self) -> list[str]:
        """Dependencies that no call reaches now."""
        return sorted(name for name, b in self._breakers.items() if b.state is BreakerState.OPEN)

    def reports(self) -> list[BreakerReport]:
        return [self._breakers[name].report() for name in sorted(self._breakers)]
