"""A desk behind its guard, and clients that call it from elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from moot.desk import Moot
from moot.main import create_app
from moot.modules.access.domain import Scope
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.settings import Settings

HERE = "127.0.0.1"
ELSEWHERE = "203.0.113.9"


@asynccontextmanager
async def open_app(home: Path, clock: Clock, **settings: Any) -> AsyncIterator[FastAPI]:
    """Whoever is here needs no key, unless `open` says so, whichever keys a test makes for others."""
    given = {"open": True, **settings}
    app = create_app(Moot(Settings(home=home, log_level="info", **given), clock=clock))
    async with app.router.lifespan_context(app):
        yield app


async def new_key(app: FastAPI, *scopes: Scope, workspace: str = "default") -> str:
    issued = await app.state.access.create("test", scopes, workspace)
    return issued.secret


def calling(app: FastAPI, key: str | None = None, *, address: str = ELSEWHERE) -> httpx.AsyncClient:
    """Whoever calls from `address`, in English. The server's own name is localhost."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=(address, 50_000))
    headers = {"Accept-Language": "en", **({"Authorization": f"Bearer {key}"} if key else {})}
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
