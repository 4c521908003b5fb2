"""Keeps away from what is broken: after some failures in a row a dependency is left alone, then tried by one call."""

import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from logging import INFO, WARNING
from operator import attrgetter
from typing import Literal

import structlog

from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import ErrorKind
from moot.shared.domain.guard import Dependency, LeftAlone, is_outage

logger = structlog.get_logger(__name__)

FAILURES = 5
OPEN_FOR = timedelta(seconds=60)


class BreakerState(StrEnum):
    """From good to bad."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class CircuitBreakerOpenError(LeftAlone, code="CIRCUIT_BREAKER_OPEN", kind=ErrorKind.BREAKER, passing=False):
    """`retry_after` seconds from now a call may be made."""

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


class CircuitBreaker:
    """One dependency, of a workspace or (None) of the desk.

    A deadline belongs inside the call: what is cancelled from outside counts neither way.
    """

    def __init__(self, name: str, clock: Clock, *, workspace: str | None = None) -> None:
        self.name, self.workspace, self._clock = name, workspace, clock
        self._in_a_row, self._era = 0, 0
        self._opened_at: datetime | None = None
        self._is_probed = False
        self._counted = {"total": 0, "successful": 0, "failed": 0, "rejected": 0}

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._time_left() > timedelta() else BreakerState.HALF_OPEN

    @asynccontextmanager
    async def call(self, counts: Callable[[Exception], bool] = is_outage) -> AsyncIterator[None]:
        """Make the call in this block; `CircuitBreakerOpenError` instead of entering it while it may not be made.

        `counts` tells which errors are failures of the dependency.
        """
        era, probes = self._era, self._admit()
        try:
            yield
        except Exception as e:
            if counts(e):
                self._note("failed", era)
            raise
        else:
            self._note("successful", era)
        finally:
            self._is_probed = self._is_probed and not probes

    def report(self) -> BreakerReport:
        return BreakerReport(self.name, self.state, self._in_a_row, **self._counted)

    def _admit(self) -> bool:
        """Whether this is the one call that tries it."""
        self._counted["total"] += 1
        state = self.state
        if state is BreakerState.OPEN or self._is_probed:
            self._counted["rejected"] += 1
            raise CircuitBreakerOpenError(self.name, max(1, math.ceil(self._time_left().total_seconds())))
        self._is_probed = state is BreakerState.HALF_OPEN
        return self._is_probed

    def _note(self, ending: Literal["successful", "failed"], era: int) -> None:
        self._counted[ending] += 1
        if era != self._era:  # it began before the breaker opened, and tells of that time
            return
        self._in_a_row = self._in_a_row + 1 if ending == "failed" else 0
        opens = self._in_a_row >= FAILURES  # so too when the one that tries it fails
        if opens or (ending == "successful" and self._opened_at is not None):
            self._opened_at, self._era = self._clock.now() if opens else None, self._era + 1
            told = {"dependency": self.name, "workspace": self.workspace, "failures": self._in_a_row}
            logger.log(WARNING if opens else INFO, "circuit opened" if opens else "circuit closed", **told)

    def _time_left(self) -> timedelta:
        if self._opened_at is None:
            return timedelta()
        return self._opened_at + OPEN_FOR - self._clock.now()


class Breakers:
    """The breakers of a desk, one for each dependency, shared by all who call it.

    Who asks for a workspace sees its own, and those of the desk.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._all: dict[Dependency, CircuitBreaker] = {}

    def of(self, name: str, workspace: str | None = None) -> CircuitBreaker:
        called = Dependency(name, workspace)
        if called not in self._all:
            self._all[called] = CircuitBreaker(name, self._clock, workspace=workspace)
        return self._all[called]

    def guard(self, called: Dependency) -> AbstractAsyncContextManager[None]:
        """A `Guard`, for those who know nothing of breakers."""
        return self.of(*called).call()

    def worst(self, workspace: str | None = None) -> BreakerState:
        states = [breaker.state for breaker in self._select(workspace)]
        return max(states, key=list(BreakerState).index, default=BreakerState.CLOSED)

    def open_names(self, workspace: str | None = None) -> list[str]:
        """Dependencies that no call reaches now."""
        return sorted(b.name for b in self._select(workspace) if b.state is BreakerState.OPEN)

    def reports(self, workspace: str | None = None) -> list[BreakerReport]:
        return sorted((breaker.report() for breaker in self._select(workspace)), key=attrgetter("name"))

    def _select(self, workspace: str | None) -> Iterator[CircuitBreaker]:
        return (b for b in self._all.values() if workspace is None or b.workspace in (None, workspace))
