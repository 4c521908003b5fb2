"""Who asks over HTTP: whatever lets a request in says for which workspace it is."""

from typing import Annotated

from fastapi import Depends, Request

from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


def workspace_of(request: Request) -> str:
    return getattr(request.state, "workspace", DEFAULT_WORKSPACE)


Workspace = Annotated[str, Depends(workspace_of)]
"""The workspace a route serves; a row of another one does not exist for it."""
