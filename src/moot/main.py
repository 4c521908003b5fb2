"""The web application. `moot serve` runs it; any ASGI server can: `moot.main:create_app` is a factory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from moot import __version__
from moot.api.routes import bound_body, register_routes
from moot.desk import Moot
from moot.modules.access.presentation import Guard
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.presentation.errors import install_error_handlers
from moot.shared.presentation.limits import BodyLimit, Streams
from moot.web.site import install_console


def create_app(desk: Moot | None = None) -> FastAPI:
    """An application around `desk`, or around one made from the environment."""
    serving = desk or Moot()
    configure_logging(serving.settings.log_level)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        """What waits in the queue is worked on here, unless others do; what runs at the end may come to its own."""
        async with serving, serving.jobs.delivering():
            loading = asyncio.create_task(serving.coordinator.engine())
            serving.work()
            try:
                yield {"desk": serving}
            finally:
                await serving.rest(grace=serving.settings.shutdown_grace)
                await loading

    app = FastAPI(
        title="Moot",
        version=__version__,
        summary="A governed, audited research desk of agents for equities.",
        description="A field of a body that may be left out may be null too, which says no more.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.desk = serving
    for part in ("access", "coordinator", "market_data", "llm_platform", "governance", "jobs"):
        setattr(app.state, part, getattr(serving, part))
    app.state.open_to_loopback, app.state.open_with_keys = True, serving.settings.open
    app.state.streams = Streams()
    app.state.locale = serving.settings.locale
    app.add_middleware(BodyLimit, most=bound_body)
    app.add_middleware(Guard)
    install_error_handlers(app)
    install_console(app)
    register_routes(app)
    return app


def create_closed_app() -> FastAPI:
    """An application for an address that others can reach: nobody gets in without a key, this machine included."""
    app = create_app()
    app.state.open_to_loopback = False
    return app
