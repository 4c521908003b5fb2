"""So many requests, and so many tokens, in any minute: what has been used of late, and when the next may be made.

The arithmetic is the same wherever the uses are kept: in this process, or in a database that others share.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, NamedTuple, TypeVar, get_args

import structlog

logger = structlog.get_logger(__name__)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

Priority = Literal["interactive", "batch"]
BATCH_PERCENT = 80
"""What a batch may use of a limit. The rest is for those who ask while somebody waits."""
PARTS = 120
"""Of a span: what is used within one of them counts as used at its end, so that few numbers tell of many uses."""
LOOK_AGAIN = 1.0
"""Seconds until a turn that may come sooner than it must is asked for again."""
MANY = 1_000_000
WORTH_TELLING = 1.0
"""Seconds of waiting."""


class Rate(NamedTuple):
    """What `name` may be asked for in any span of so many seconds. None: without a limit.

    `lasting`: the service may see a call at any moment until it ends, in so many seconds at the latest, so its place
    is free again a span after its end. 0: a call is seen when it is made.
    """

    name: str
    requests: int | None = None
    tokens: int | None = None
    seconds: float = 60.0
    lasting: float = 0.0


class Use(NamedTuple):
    """Times are in milliseconds, of whichever clock the uses are counted by."""

    at: int
    requests: int
    tokens: int


class Turn(NamedTuple):
    """A place that was taken, to be settled when it is known what was used."""

    rate: Rate
    at: int
    tokens: int


class NotYet(Exception):
    """Nothing was taken; in so many seconds it may be.

    `again`: when to ask next; earlier than that, where others may use less than they set aside, or end before they
    must.
    """

    def __init__(self, seconds: float, again: float | None = None) -> None:
        super().__init__(f"in {seconds:.3f} s")
        self.seconds, self.again = seconds, seconds if again is None else min(again, seconds)


Uses = list[Use]


def share(most: int, priority: Priority) -> int:
    """What may be used of `most`; of one, a batch may use it all."""
    return most if priority == "interactive" else max(1, most * BATCH_PERCENT // 100)


def take(uses: Iterable[Use], rate: Rate, tokens: int, priority: Priority, now: int) -> tuple[Uses, Turn]:
    """One more request of so many tokens, and what is in use with it; raises `NotYet`.

    One that may use more than the limit altogether waits until nothing else is in use.
    """
    span, step = _span(rate)
    ahead = span + round(rate.lasting * 1000)  # a use farther ahead is of a clock that was set back since
    counted = sorted(use for use in uses if -ahead <= now - use.at < span)
    most_requests, most_tokens = _most(rate.requests, priority), _most(rate.tokens, priority)
    tokens = int(min(tokens, most_tokens))
    requests_left = most_requests - 1 - sum(use.requests for use in counted)
    tokens_left = most_tokens - tokens - sum(use.tokens for use in counted)
    free, perhaps_sooner = now, tokens_left < 0
    for use in counted:
        if requests_left >= 0 and tokens_left >= 0:
            break
        requests_left, tokens_left = requests_left + use.requests, tokens_left + use.tokens
        free, perhaps_sooner = use.at + span, perhaps_sooner or use.at > now + step
    if free > now:
        raise NotYet((free - now) / 1000, min(rate.seconds, LOOK_AGAIN) if perhaps_sooner else None)
    turn = Turn(rate, _stamp(now + round(rate.lasting * 1000), step), tokens)
    return _add(counted, Use(turn.at, 1, tokens)), turn


def settle(uses: Uses, turn: Turn, used: tuple[int, int], now: int) -> Uses:
    """What was taken is replaced by what was used: requests, none if it was not made, and tokens."""
    at = _stamp(now, _span(turn.rate)[1]) if turn.rate.lasting else turn.at
    if any(use.at == turn.at for use in uses):  # else it is out of date by now
        uses = _add(uses, Use(turn.at, -1, -turn.tokens))
    return _add(uses, Use(at, *used))


def _span(rate: Rate) -> tuple[int, int]:
    span = round(rate.seconds * 1000)
    return span, max(1, span // PARTS)


def _stamp(now: int, step: int) -> int:
    """Later than now: whoever is let in when it is out of date comes a whole span after."""
    return (now // step + 1) * step


def _most(limit: int | None, priority: Priority) -> float:
    return math.inf if limit is None else share(limit, priority)


def _add(uses: Uses, more: Use) -> Uses:
    same = [use for use in uses if use.at == more.at]
    requests, tokens = (max(0, sum(counts)) for counts in zip(*(u[1:] for u in [*same, more]), strict=True))
    rest = [use for use in uses if use.at != more.at]
    return [*rest, Use(more.at, requests, tokens)] if requests or tokens else rest


def read_clock() -> float:
    """The event loop's, in seconds."""
    return asyncio.get_running_loop().time()


class Turns:
    """Kept in this process."""

    def __init__(self, now: Callable[[], float] = read_clock) -> None:
        self._now = now
        self._uses: dict[str, Uses] = {}

    async def take(self, rate: Rate, tokens: int = 0, priority: Priority = "interactive") -> Turn:
        """Raises `NotYet`."""
        now = int(self._now() * 1000)
        self._uses[rate.name], turn = take(self._uses.get(rate.name, ()), rate, tokens, priority, now)
        return turn

    async def settle(self, turn: Turn, *, made: bool, tokens: int = 0) -> None:
        """`made`: the request was; one that was not leaves its place to others."""
        name, used = turn.rate.name, (int(made), tokens)
        self._uses[name] = settle(self._uses.get(name, []), turn, used, int(self._now() * 1000))


class Entrance:
    """Where the calls of this process stand in line for the same: so many are inside at once, and each comes in when
    its turn is there. A batch leaves some places free.

    Interactive calls and those of a batch have a line each. Only the first in a line asks for its turn, so it is
    the first to get it, and a limit that many wait for is not asked by all of them.
    """

    def __init__(self, name: str, at_once: int | None, sleep: Sleep = asyncio.sleep) -> None:
        self._name, self._sleep = name, sleep
        self._first = {priority: asyncio.Lock() for priority in get_args(Priority)}
        places = {p: asyncio.Semaphore(share(at_once or MANY, p)) for p in get_args(Priority)}
        self._places = {"interactive": [places["interactive"]], "batch": list(reversed(places.values()))}

    @asynccontextmanager
    async def enter(
        self,
        priority: Priority,
        take: Callable[[], Awaitable[T]],
        *,
        longest: float = math.inf,
        patience: float = math.inf,
    ) -> AsyncIterator[T]:
        """What `take` gave, once it raised no `NotYet`; that is raised here if it would take too long.

        `longest` is for all the waiting, `patience` for what `take` asks for at once; both in seconds.
        """
        end = read_clock() + longest
        async with AsyncExitStack() as inside:
            async with _held(self._first[priority], end):
                told = False
                while True:
                    try:
                        taken = await self._try(priority, take, inside, end)
                        break
                    except NotYet as soon:
                        if soon.seconds > patience or soon.again > end - read_clock():
                            raise
                        told = told or self._tell(soon, priority)
                        await self._sleep(soon.again)
            yield taken

    async def _try(
        self, priority: Priority, take: Callable[[], Awaitable[T]], inside: AsyncExitStack, end: float
    ) -> T:
        """Whoever has to wait for a turn holds no place meanwhile."""
        async with AsyncExitStack() as place:
            for places in self._places[priority]:
                await place.enter_async_context(_held(places, end))
            taken = await take()
            inside.push_async_exit(place.pop_all())
            return taken

    def _tell(self, soon: NotYet, priority: Priority) -> bool:
        if worth_it := soon.seconds >= WORTH_TELLING:
            at_most = round(soon.seconds, 1)
            logger.info("waiting for a turn", limit=self._name, seconds=at_most, priority=priority)
        return worth_it


@asynccontextmanager
async def _held(places: asyncio.Lock | asyncio.Semaphore, end: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(None if math.isinf(end) else end):
            await places.acquire()
    except TimeoutError:
        raise NotYet(0.0) from None
    try:
        yield
    finally:
        places.release()
