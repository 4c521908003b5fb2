"""A desk for code that does not await: the same methods, run on a loop in a thread of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from inspect import iscoroutinefunction
from threading import Thread
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from moot.modules.coordinator.application.session_history import SessionEvent
from moot.remote.desk import Desk, Id

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound=Desk)
Work = Coroutine[Any, Any, T]


def _wait_for(
    method: Callable[Concatenate[Desk, P], Work[T]],
) -> Callable[Concatenate["BlockingDesk[Any]", P], T]:
    """The same method, which returns when it is done; whoever is interrupted meanwhile interrupts it."""

    def call(self: "BlockingDesk[Any]", /, *given: P.args, **named: P.kwargs) -> T:
        done: T = self.wait(getattr(self.desk, method.__name__)(*given, **named))
        return done

    call.__doc__ = method.__doc__
    return call


class BlockingDesk(Generic[D]):
    """Open it with `with`. What only `desk` itself can do blocks here, too."""

    def __init__(self, desk: D) -> None:
        self.desk = desk
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="moot-desk", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait(self.desk.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.wait(self.desk.__aexit__(*error))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def wait(self, work: Work[T]) -> T:
        """What `work` comes to; raises what it raises."""
        under_way = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return under_way.result()
        except BaseException:
            under_way.cancel()
            raise

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.desk, name)
        if not iscoroutinefunction(found):
            return found
        return lambda *given, **named: self.wait(found(*given, **named))

    def events(self, session_id: Id, *, after: int = 0) -> Iterator[SessionEvent]:
        """As they come, from the event after `after` to `done`."""
        told = aiter(self.desk.events(session_id, after=after))

        async def hear() -> SessionEvent | None:
            return await anext(told, None)

        while (event := self.wait(hear())) is not None:
            yield event

    research = _wait_for(Desk.research)
    start = _wait_for(Desk.start)
    retry = _wait_for(Desk.retry)
    cancel = _wait_for(Desk.cancel)
    result = _wait_for(Desk.result)
    sessions = _wait_for(Desk.sessions)
    session = _wait_for(Desk.session)
    verify = _wait_for(Desk.verify)
    ask = _wait_for(Desk.ask)
    answer_plan = _wait_for(Desk.answer_plan)
    conversation = _wait_for(Desk.conversation)
    query = _wait_for(Desk.query)
