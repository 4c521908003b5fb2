"""Who asks over HTTP, for which workspace, in which language; and whether they still wait for the answer."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response

from moot.shared.domain.messages import DEFAULT_LOCALE, LOCALES, Locale
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


def caller_of(request: Request) -> str | None:
    return getattr(request.state, "caller", None)


Caller = Annotated[str | None, Depends(caller_of)]
"""The name of the key a request came with; None: from this machine, which needs none."""


def workspace_of(request: Request) -> str:
    return getattr(request.state, "workspace", DEFAULT_WORKSPACE)


def reader_of(request: Request) -> Locale:
    """The language the reader prefers, or ours."""
    preferred = request.headers.get("accept-language", "")[:2].lower()
    return next((locale for locale in LOCALES if locale[:2] == preferred), DEFAULT_LOCALE)


Reader = Annotated[Locale, Depends(reader_of)]

Workspace = Annotated[str, Depends(workspace_of)]
"""The workspace a route serves; a row of another one does not exist for it."""


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
