"""Work that goes on only as long as somebody waits for its answer."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response

T = TypeVar("T")
CLIENT_GONE = 499


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T | Response:
    """The answer; `work` is cancelled when the client hangs up first, or the server gives up on the request."""
    answer, gone = asyncio.create_task(work), asyncio.create_task(_hang_up(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        await asyncio.wait({answer})
        return Response(status_code=CLIENT_GONE)
    finally:
        answer.cancel()
        gone.cancel()


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
