"""What every source outside has in common: its pace, guard and deadline, another attempt, its record.

A source is a table: for each dataset it has, a reader that fetches rows and tells them in our words.
"""

import asyncio
import importlib
import json
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from http import HTTPStatus
from types import ModuleType
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from pydantic import BaseModel

from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered, home_of, screen
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import AppError, ErrorKind, Unavailable
from moot.shared.domain.guard import Dependency, Guard, LeftAlone, let_through
from moot.shared.domain.rate_limits import Entrance, NotYet, Rate, Sleep, Turn, Turns
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.call_audit import ExternalCalls
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.working_time import off_the_clock, strict_seconds_left

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Row = Mapping[str, Any]
"""What a service tells, or a fact before it is checked."""
Reader = Callable[[str, date, date], Awaitable[Iterable[Row]]]
"""The rows of a subject, in our words, for a range of days: more of them does no harm."""
Kinds = tuple[type[Exception], ...]
Errors = tuple[Kinds, Kinds]
Now = Callable[[], float]

NOT_RECORDED = ExternalCalls(None)
LONGEST_RESPONSE = 16_000
"""Characters of an answer that are kept; enough to see what it was, small enough to keep for every call."""
MISREAD = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What a client library raises over an answer it did not expect."""
REQUEST_SECONDS = 15.0
"""The time-out of one request by a client library."""
PAUSES = (3.0, 6.0, 12.0)
"""Seconds before the second, third and fourth attempt."""


@dataclass(frozen=True)
class Pace:
    """What a service allows: so many calls in any span of so many seconds, and so many of them at once."""

    calls: int
    per_seconds: float
    concurrency: int

    def at(self, per_minute: int) -> "Pace":
        """So many a minute; who is to be asked one by one still is."""
        calls, seconds = (1, 60 / per_minute) if self.calls == 1 else (per_minute, 60.0)
        return Pace(calls, seconds, self.concurrency)


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


class OutsideSource(ABC):
    """A provider made of `readers`; each names its service, its market and what it is allowed there.

    All its callers share one pace for each host it asks, `hosts` where one has its own, and each attempt is recorded
    once and passes the `guard` of that host; "" is the main one. With a number of calls `per_minute`, that is what
    all its hosts are asked together, counted by `turns`: those of other processes too, if it is kept where they keep
    theirs. `passing` are the errors of the client library that mean the network, not the request. `deadline`, in
    seconds, is for one question, which may take many pages; it cannot stop a thread: a blocking function needs a
    time-out of its own, shorter than that.
    """

    name: ClassVar[str]
    market: ClassVar[Market]
    pace: ClassVar[Pace]
    hosts: ClassVar[Mapping[str, Pace]] = {}
    lacks: ClassVar[Collection[Dataset[Any]]] = ()
    """Of what it does not have: that of which its texts say why, and what to do."""
    deadline: float = 90.0
    passing: ClassVar[Kinds] = (OSError,)

    def __init__(
        self,
        *,
        recorder: ExternalCalls = NOT_RECORDED,
        guard: Guard = let_through,
        pace: Pace | None = None,
        per_minute: int | None = None,
        turns: Turns | None = None,
        deadline: float | None = None,
        pauses: tuple[float, ...] = PAUSES,
        now: Now = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._recorder, self._guard = recorder, guard
        self.deadline, self._pauses = deadline or self.deadline, pauses
        self._failures: Kinds = (Trouble, AppError, TimeoutError, ConnectionError, *self.passing)
        self._now, self._sleep = now, sleep
        self._given_pace, self._per_minute = pace, per_minute
        self._turns = (turns if per_minute else None) or Turns(now)
        self._gates = dict[str, _Gate]()
        self._readers = self.readers()

    @abstractmethod
    def readers(self) -> dict[Dataset[Any], Reader]:
        """One for each dataset it has."""

    async def aclose(self) -> None:  # noqa: B027 - most have nothing open
        """Let go of what is open."""

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        if dataset not in self._readers:
            why = f"{self.name}.lacks_{dataset}" if dataset in self.lacks else "outside.not_offered"
            raise NotOffered(SAY(why, source=self.name, dataset=dataset.label))
        self._require_market(subject)
        told = await self._readers[dataset](subject, start, end)
        days = (start, end, self.market)
        batch = screen(dataset, [row for row in told if dataset.covers(row.get(dataset.day), *days)])
        if not isinstance(told, Batch):
            return batch
        return Batch(batch, (*batch.refused, *told.refused), partial=told.partial)

    def _require_market(self, subject: str) -> None:
        if home_of(subject) != self.market:
            raise NotOffered(
                SAY("outside.market", source=self.name, market=self.market.value, symbol=subject)
            )

    async def call(
        self, operation: str, params: Mapping[str, Any], fn: Callable[[], Awaitable[T]], host: str = ""
    ) -> T:
        """What `fn` returns, after as many attempts as it takes and the pace allows; `LeftAlone` while none is made.

        `params` go on record as they are: no secrets. `fn` raises `Trouble`, or an `AppError` that no further
        attempt would change; anything else it raises is a defect.
        """
        called = Dependency(":".join(("data", self.name, host)).rstrip(":"))
        for attempt, pause in enumerate([*self._pauses, None], 1):
            try:
                async with self._gate(host).slot(), self._guard(called):
                    call_id = await self._recorder.begin(self.name, operation, params, attempt=attempt)
                    return await self._attempt(call_id, operation, fn)
            except Trouble as trouble:
                if pause is None or not trouble.passing:
                    raise trouble.error from None
            await self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _gate(self, host: str) -> "_Gate":
        if host not in self._gates:
            pace, name = self._given_pace or self.hosts.get(host, self.pace), ["data", self.name, host]
            if self._per_minute:
                pace, name = pace.at(self._per_minute), name[:2]
            rate = Rate(
                ":".join(name).rstrip(":"), pace.calls, seconds=pace.per_seconds, lasting=self.deadline
            )
            at_once = min(pace.concurrency, pace.calls)
            self._gates[host] = _Gate(self.name, rate, self._turns, Entrance(rate.name, at_once, self._sleep))
        return self._gates[host]

    async def _attempt(self, call_id: UUID | None, operation: str, fn: Callable[[], Awaitable[T]]) -> T:
        """What `fn` returns, or `Trouble`; on record whichever it is."""
        started, answer = self._now(), None
        trouble: Trouble | None = Trouble(Unavailable("broken off before an answer"))
        try:
            async with asyncio.timeout(self.deadline):
                answer = await fn()
            trouble = None
            return answer
        except self._failures as e:
            trouble = e if isinstance(e, Trouble) else self._explain(operation, e)
            raise trouble from None
        finally:
            await self._record(call_id, self._now() - started, trouble, trouble.answer if trouble else answer)

    def _explain(self, operation: str, error: Exception) -> Trouble:
        said = {"source": self.name, "operation": operation}
        if isinstance(error, AppError):
            return Trouble(error)
        if isinstance(error, TimeoutError):
            return Trouble(Unavailable(SAY("outside.timeout", **said, seconds=self.deadline)), passing=True)
        named = type(error).__name__  # by its kind only: its text may quote the request
        return Trouble(Unavailable(SAY("outside.unreachable", **said, error=named)), passing=True)

    async def _record(self, call_id: UUID | None, took: float, trouble: Trouble | None, answer: Any) -> None:
        http = answer if isinstance(answer, HttpAnswer) else None
        text = http.text if http else None if answer is None else str(answer)
        if text and len(text) > LONGEST_RESPONSE:
            text = f"{text[:LONGEST_RESPONSE]}… ({len(text)} characters)"
        await self._recorder.end(
            call_id,
            status="failed" if trouble else "success",
            latency_ms=round(took * 1000),
            status_code=http.status_code if http else None,
            response_data=text,
            error_message=str(trouble) if trouble else None,
        )


class LibrarySource(OutsideSource):
    """A source behind the client library of its own name, which is loaded when somebody first asks."""

    @abstractmethod
    def errors(self) -> Errors:
        """Of the library: those that pass, and those that say nothing certain."""

    def library(self) -> ModuleType:
        try:
            return importlib.import_module(self.name)
        except ImportError as e:
            raise NotOffered(SAY(f"{self.name}.not_installed")) from e

    async def ask(
        self,
        operation: str,
        params: Mapping[str, Any],
        read: Callable[[], T],
        has_nothing: Callable[[], bool] = lambda: False,
        host: str = "",
    ) -> T | None:
        """What `read` gets; nothing where the library stumbles over an answer and `has_nothing` knows why."""
        await in_thread(self.library)  # loading it takes seconds
        passing, uncertain = self.errors()
        unreadable = Unavailable(SAY(f"{self.name}.unreadable", operation=operation))

        async def attempt() -> T | None:
            try:
                return await in_thread(read)
            except json.JSONDecodeError as e:
                raise Trouble(unreadable, passing=True) from e
            except passing as e:
                said = SAY(f"{self.name}.refused", operation=operation, why=str(e))
                raise Trouble(Unavailable(said), passing=True) from e
            except uncertain as e:
                if await in_thread(has_nothing):
                    return None
                raise Trouble(unreadable) from e

        return await self.call(operation, params, attempt, host)


async def in_thread(fn: Callable[[], T]) -> T:
    """What `fn` returns or raises. Its thread is a daemon: one that hangs beyond its deadline holds up no exit."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(fn())
        except BaseException as e:  # noqa: BLE001 - bulkhead: whatever it is, it goes to the one who waits
            answer.set_exception(e)

    answer.set_running_or_notify_cancel()  # from here on nobody can cancel it, only stop waiting
    threading.Thread(target=run, daemon=True, name="provider call").start()
    return await asyncio.wrap_future(answer)


def refuse_status(source: str, operation: str, answer: HttpAnswer) -> None:
    """Whatever is not 200 is trouble; it passes where the service failed or is asked too often."""
    status = answer.status_code
    if status != HTTPStatus.OK:
        said = SAY("outside.status", source=source, operation=operation, status=status)
        passing = status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
        raise Trouble(Unavailable(said), passing=passing, answer=answer)


class TooOften(Unavailable, code="RATE_LIMITED", kind=ErrorKind.RATE_LIMIT):
    """The call was not made: its turn would not have come in time."""


class _Gate:
    """Lets calls through at a pace that holds on the service's own clock too.

    A call is seen there at some moment between its start and its end. So a place is free again a span after the call
    that held it *ended*, and however long requests travel, no span there sees more of them than it may. One that was
    not made holds none.
    """

    def __init__(self, source: str, rate: Rate, turns: Turns, entrance: Entrance) -> None:
        self._source, self._rate, self._turns, self._entrance = source, rate, turns, entrance

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as inside:
            turn = await self._wait(inside)
            made = True
            try:
                yield
            except LeftAlone:
                made = False
                raise
            finally:
                await self._turns.settle(turn, made=made)

    async def _wait(self, inside: AsyncExitStack) -> Turn:
        """For whom others are kept waiting is no concern of the node's own time."""
        context = current_context()
        take = partial(self._turns.take, self._rate, priority=context.priority)
        entered = self._entrance.enter(context.priority, take, longest=strict_seconds_left())
        try:
            with off_the_clock(context.tally.waiting):
                return await inside.enter_async_context(entered)
        except NotYet as soon:
            rate = self._rate
            allowed = {"calls": rate.requests, "seconds": rate.seconds}
            said = SAY("outside.no_turn", source=self._source, **allowed)
            raise TooOften(said, retry_after=math.ceil(soon.seconds)) from None
