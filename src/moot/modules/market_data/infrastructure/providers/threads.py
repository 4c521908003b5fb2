"""Blocking client libraries, run beside the loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(fn: Callable[[], T]) -> T:
    """What `fn` returns or raises. Its thread is a daemon: one that hangs beyond its deadline holds up no exit."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # no error means that there is a result

    def run() -> None:
        result, error = None, None
        try:
            result = fn()
        except BaseException as e:  # noqa: BLE001 - bulkhead: whatever it is, it goes to the one who waits
            error = e
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True, name="provider call").start()
    return await answer
