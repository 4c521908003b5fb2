"""What every call to a service outside has in common: its pace, guard and deadline, another attempt, its record."""

import asyncio
import heapq
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from moot.modules.market_data.domain.call_record import CallRecorder, cut
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.guard import Dependency, Guard, unguarded
from moot.shared.infrastructure.call_audit import ExternalCalls

T = TypeVar("T")
Now = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]

NOT_RECORDED = ExternalCalls(None)
PAUSES = (3.0, 6.0, 12.0)
"""Seconds before the second, third and fourth attempt."""


@dataclass(frozen=True)
class Pace:
    """What a service allows: so many calls in any span of so many seconds, and so many of them at once."""

    calls: int
    per_seconds: float
    concurrency: int


@dataclass(frozen=True)
class HttpAnswer:
    """An answer as it came, for the record; a provider adds what it read in it."""

    status_code: int
    text: str


class Trouble(Exception):
    """An attempt failed: `error` is what the caller hears if no other attempt follows.

    `passing` trouble may be gone in a moment and is worth another attempt; a bad token never is.
    """

    def __init__(self, error: AppError, *, passing: bool = False, answer: HttpAnswer | None = None) -> None:
        super().__init__(str(error))
        self.error, self.passing, self.answer = error, passing, answer

    @property
    def outage(self) -> bool:
        """The service itself failed; one that answers that it is asked too often, or wrongly, works."""
        return self.passing and (self.answer is None or self.answer.status_code >= 500)


class Outside:
    """The way to one service. All its callers share one pace, and each attempt is recorded once and passes `guard`.

    `passing` are the errors of the client library that mean the network, not the request. A deadline cannot stop
    a thread: a blocking function needs a time-out of its own, shorter than `deadline`.
    """

    def __init__(
        self,
        service: str,
        pace: Pace,
        *,
        recorder: CallRecorder = NOT_RECORDED,
        guard: Guard = unguarded,
        deadline: float = 30.0,
        pauses: tuple[float, ...] = PAUSES,
        passing: tuple[type[Exception], ...] = (),
        now: Now = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._service, self._recorder, self._guard = service, recorder, guard
        self._called = Dependency(f"data:{service}")
        self._deadline, self._pauses = deadline, pauses
        self._passing: tuple[type[Exception], ...] = (ConnectionError, *passing)
        self._now, self._sleep = now, sleep
        self._gate = _Gate(pace, now, sleep)

    async def call(self, operation: str, params: Mapping[str, Any], fn: Callable[[], Awaitable[T]]) -> T:
        """What `fn` returns, after as many attempts as it takes and the pace allows; `LeftAlone` while none is made.

        `params` go on record as they are: no secrets. `fn` raises `Trouble`, or an `AppError` that no further
        attempt would change; anything else it raises is a defect.
        """
        pauses = [*self._pauses, None]
        for attempt, pause in enumerate(pauses, 1):
            try:
                async with self._gate.slot(), self._guard(self._called, _outage):
                    call_id = await self._recorder.begin(self._service, operation, params, attempt=attempt)
                    return await self._attempt(call_id, operation, fn)
            except Trouble as trouble:
                if pause is None or not trouble.passing:
                    raise trouble.error from None
            await self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, call_id: UUID | None, operation: str, fn: Callable[[], Awaitable[T]]) -> T:
        started = self._now()
        outcome: T | Trouble = Trouble(Unavailable("broken off before an answer"))
        try:
            outcome = await self._outcome(operation, fn)
        finally:
            await self._record(call_id, self._now() - started, outcome)
        if isinstance(outcome, Trouble):
            raise outcome
        return outcome

    async def _outcome(self, operation: str, fn: Callable[[], Awaitable[T]]) -> T | Trouble:
        said = {"source": self._service, "operation": operation}
        try:
            async with asyncio.timeout(self._deadline):
                return await fn()
        except Trouble as trouble:
            return trouble
        except AppError as error:
            return Trouble(error)
        except TimeoutError:
            return Trouble(Unavailable(SAY("outside.timeout", **said, seconds=self._deadline)), passing=True)
        except self._passing as e:  # named by its kind only: its text may quote the request
            unreachable = SAY("outside.unreachable", **said, error=type(e).__name__)
            return Trouble(Unavailable(unreachable), passing=True)

    async def _record(self, call_id: UUID | None, took: float, outcome: object) -> None:
        failed = outcome if isinstance(outcome, Trouble) else None
        answer = failed.answer if failed else outcome
        http = answer if isinstance(answer, HttpAnswer) else None
        await self._recorder.end(
            call_id,
            status="failed" if failed else "success",
            latency_ms=round(took * 1000),
            status_code=http.status_code if http else None,
            response_data=cut(http.text if http else (None if answer is None else str(answer))),
            error_message=str(failed) if failed else None,
        )


def _outage(error: Exception) -> bool:
    return isinstance(error, Trouble) and error.outage


class _Gate:
    """Lets calls through at a pace that holds on the service's own clock too.

    A call is seen there at some moment between its start and its end. So a place is free again `per_seconds` after
    the call that held it *ended*, and however long requests travel, no span there sees more than `calls` of them.
    """

    def __init__(self, pace: Pace, now: Now, sleep: Sleep) -> None:
        self._pace, self._now, self._sleep = pace, now, sleep
        self._running = asyncio.Semaphore(min(pace.concurrency, pace.calls))
        self._free_from = [-math.inf] * pace.calls  # a heap: one moment for each place not held now

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        async with self._running:
            free_from = heapq.heappop(self._free_from)
            try:
                while (wait := free_from - self._now()) > 0:
                    await self._sleep(wait)
                try:
                    yield
                finally:
                    free_from = self._now() + self._pace.per_seconds
            finally:
                heapq.heappush(self._free_from, free_from)
