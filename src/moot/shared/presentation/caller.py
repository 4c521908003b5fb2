"""Who asks over HTTP: whatever lets a request in says whose it is, and for which workspace."""

from typing import Annotated

from fastapi import Depends, Request

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
