"""Who asks over HTTP, for which workspace, in which language; and whether they still wait for the answer."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response

from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, reading_language
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


def caller_of(request: Request) -> str | None:
    return getattr(request.state, "caller", None)


Caller = Annotated[str | None, Depends(caller_of)]
"""The name of the key a request came with; None: from this machine, which needs none."""


def workspace_of(request: Request) -> str:
    return getattr(request.state, "workspace", DEFAULT_WORKSPACE)


def is_api(path: str) -> bool:
    """For programs, in JSON. All else is for people, in pages and forms."""
    return path.startswith("/api/") or path in {"/healthz", "/readyz"}


def wants_page(request: Request) -> bool:
    """A browser asks, for a page or for a part of one."""
    asks = "text/html" in request.headers.get("accept", "") or "hx-request" in request.headers
    return asks and not is_api(request.url.path)


QUALITY = re.compile(r";\s*q\s*=\s*([^;\s]*)")


def read_wishes(header: str | None) -> dict[str, float]:
    """What a header names that may be wanted more or less, each with how much, from 0 to 1."""
    parts = [part.strip() for part in (header or "").lower().split(",")]
    return {part.partition(";")[0].strip(): _quality(part) for part in parts if part}


def _quality(part: str) -> float:
    stated = QUALITY.search(part)
    try:
        return min(max(float(stated[1]), 0.0), 1.0) if stated else 1.0
    except ValueError:
        return 0.0


def preferred_by(request: Request) -> Locale | None:
    """The language asked for most: every kind of Chinese is Chinese, everything else English. None: no word of it."""
    wishes = read_wishes(request.headers.get("accept-language"))
    wanted = {name: weight for name, weight in wishes.items() if weight > 0 and name != "*"}
    if not wanted:
        return None
    return reading_language(max(wanted, key=wanted.__getitem__))


def reader_of(request: Request) -> Locale:
    """The language the reader prefers, else the desk's, else ours."""
    return preferred_by(request) or getattr(request.app.state, "locale", None) or DEFAULT_LOCALE


Preferred = Annotated[Locale | None, Depends(preferred_by)]
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
