"""Wires the engine to the desk's sessions."""

import os
import socket
from collections.abc import Callable
from uuid import uuid4

from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.jobs.application.worker import Worker
from moot.modules.jobs.infrastructure.engine import Engine
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings


class JobsContainer:
    """`sessions`: the desk's, which stand in this engine's queue."""

    def __init__(self, database: Database, sessions: Callable[[], Sessions], settings: Settings) -> None:
        self.engine = Engine(database)
        self._sessions, self._settings = sessions, settings

    def worker(self, *, name: str | None = None, at_once: int | None = None) -> Worker:
        return Worker(
            self.engine,
            self._sessions(),
            name=name or f"{socket.gethostname()[:60]}-{os.getpid()}-{uuid4().hex[:8]}",
            at_once=at_once or self._settings.worker_sessions,
            lease_seconds=self._settings.lease_seconds,
        )
