"""`moot serve`: a web server that lets its sessions come to their end before it goes."""

import asyncio
import gc
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import uvicorn
from pydantic.warnings import UnsupportedFieldAttributeWarning

from moot.cli import SELDOM
from moot.cli.command import at_desk, command
from moot.cli.options import option
from moot.cli.printing import tell
from moot.cli.texts import SAY
from moot.cli.worker import WorkerBeside
from moot.modules.access.presentation import is_loopback
from moot.shared.domain.errors import InvalidInput
from moot.shared.presentation.limits import BOUNDS

if TYPE_CHECKING:
    from moot.desk import Moot

CONNECTIONS_CLOSE_IN = 5
"""Seconds for answers under way and for listeners, once all sessions have ended or were interrupted."""


class DrainingServer(uvicorn.Server):
    """On the first signal it takes on nothing more, says so at `/readyz`, and goes when its sessions have ended.

    What has not ended within the grace period is interrupted, and resumed by the next server; at a second signal,
    at once.
    """

    def __init__(self, config: uvicorn.Config, *, worker: bool) -> None:
        super().__init__(config)
        self._wants_worker = worker

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._draining = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        await super().startup(sockets)
        self._beside = WorkerBeside() if self._wants_worker else None
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        tell("serve.listening", host=host, port=self.config.port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        opened = self.started and "desk" in self.lifespan.state
        if opened and not self.should_exit:
            self._loop.call_soon_threadsafe(self._drain)
        else:
            super().handle_exit(sig, frame)

    def _drain(self) -> None:
        desk: Moot = self.lifespan.state["desk"]

        async def drain(grace: float) -> None:
            await asyncio.gather(desk.rest(grace=grace), *([self._beside.stop()] if self._beside else []))
            self.should_exit = True

        grace = 0.0 if self._draining else desk.settings.shutdown_grace
        self._draining.append(asyncio.create_task(drain(grace)))


def serve(
    host: Annotated[str, option("help.host")] = "127.0.0.1",
    port: Annotated[int, option("help.port", min=1, max=65535)] = 8000,
    open_: Annotated[bool, option("help.open", "--open")] = False,
    no_worker: Annotated[bool, option("help.no_worker", "--no-worker")] = False,
) -> None:
    with command() as settings:
        private = is_loopback(host)
        if open_ and not private:
            raise InvalidInput(SAY("serve.open_elsewhere", host=host))
        if not private and not at_desk(settings, lambda desk: desk.access.has_keys()):
            raise InvalidInput(SAY("serve.not_loopback", host=host))
        _refuse_taken(host, port)
        if private and (open_ or settings.open):
            os.environ["MOOT_OPEN"] = "on"  # the application is made from the environment
            tell("serve.open")
        worker = settings.worker and settings.persistence and not no_worker
        # Pages and answers come from this process, sessions from the one beside it.
        os.environ["MOOT_WORKER"] = "off"
        # FastAPI hides it, for one thread at a time: the engine may be loading in another.
        warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
        config = uvicorn.Config(
            f"moot.main:{'create_app' if private else 'create_closed_app'}",
            factory=True,
            host=host,
            port=port,
            log_level="warning",
            timeout_graceful_shutdown=CONNECTIONS_CLOSE_IN,
            **BOUNDS,
        )
        config.load()
        with settle():
            DrainingServer(config, worker=worker).run()


@contextmanager
def settle() -> Iterator[None]:
    """What is loaded by now stays: looking through all of it again and again would cost more than the sessions.

    Of what comes and goes with a session little refers back to itself: it is looked at less often than Python would.
    """
    gc.collect()
    gc.freeze()
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _refuse_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as e:
            raise InvalidInput(SAY("serve.port_taken", host=host, port=port, reason=e.strerror)) from e
