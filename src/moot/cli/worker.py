"""`moot worker`: a process that runs what waits in the queue; and how `moot serve` keeps one beside it."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Annotated

from moot.cli.command import command
from moot.cli.options import option
from moot.cli.printing import tell
from moot.cli.texts import SAY
from moot.desk import Moot
from moot.modules.jobs.application.worker import Worker
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.settings import Settings

AGAIN_AFTER = (0.5, 1, 2, 4, 8, 15)
"""Seconds before a worker that ended is started once more, the last for as often as it takes."""
LIVED = 60
"""Seconds after which a worker that ends is taken to have been well."""


def worker(
    concurrency: Annotated[int | None, option("help.concurrency", min=1, max=1000)] = None,
    name: Annotated[str | None, option("help.worker_id", "--id")] = None,
    health: Annotated[int | None, option("help.health", "--health-port", min=1, max=65535)] = None,
    attached: Annotated[bool, option("help.attached", "--attached", hidden=True)] = False,
) -> None:
    with command() as settings:
        asyncio.run(_work(settings, concurrency, name, health, attached=attached))


async def _work(
    settings: Settings, concurrency: int | None, name: str | None, health: int | None, *, attached: bool
) -> None:
    stops: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(stop, stops.put_nowait, None)
    if attached:
        loop.add_reader(sys.stdin.fileno(), _stop_when_closed, stops)
    async with Moot(settings) as desk, desk.jobs.delivering():
        working = desk.jobs.worker(name=name, at_once=concurrency)
        loading = asyncio.create_task(desk.coordinator.engine())
        working.start()
        listening = await _tell_health(desk, working, health) if health else None
        if not attached:
            tell("worker.working", name=working.name)
        await stops.get()
        stopping = asyncio.create_task(working.stop(grace=settings.shutdown_grace))
        hurried = asyncio.create_task(stops.get())
        await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if not stopping.done():  # told twice: at once
            await desk.coordinator.sessions.close()
        await asyncio.gather(stopping, loading)
        if listening is not None:
            listening.close()


def _stop_when_closed(stops: asyncio.Queue[None]) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stops.put_nowait(None)


async def _tell_health(desk: Moot, working: Worker, port: int) -> asyncio.Server:
    """`/healthz`: the process lives. `/readyz`: it takes sessions from the queue."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(5):
                path = (await reader.readline()).decode("latin-1").split(" ")[1:2]
                told = await desk.readiness() | {"worker": {"ok": working.working, "detail": working.name}}
                ready = path != ["/readyz"] or all(part["ok"] for part in told.values())
                status = (
                    "200 OK" if ready and path[0] in ("/healthz", "/readyz") else "503 Service Unavailable"
                )
                body = json.dumps({"status": "ok" if ready else "not ready", "checks": told}).encode()
                head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
                writer.write(f"{head}\r\nconnection: close\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, "127.0.0.1", port)
    except OSError as e:
        raise Unavailable(SAY("serve.port_taken", host="127.0.0.1", port=port, reason=e.strerror)) from e


class WorkerBeside:
    """A worker in a process of its own, started again when it dies, and stopped with this one: however this process
    ends, the pipe to the worker's standard input closes."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._ending = asyncio.Event()
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Tell it to stop, and return when it has."""
        self._ending.set()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
        await self._keeping

    async def _keep(self) -> None:
        failures = 0
        while not self._ending.is_set():
            began = asyncio.get_running_loop().time()
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "moot", "worker", "--attached"),
                stdin=asyncio.subprocess.PIPE,
                env=os.environ | {"MOOT_WORKER": "on"},
                start_new_session=True,  # Ctrl+C is for the server, which tells its worker
            )
            if self._ending.is_set():
                self._process.send_signal(signal.SIGTERM)
            await self._process.wait()
            failures = 0 if asyncio.get_running_loop().time() - began > LIVED else failures + 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), AGAIN_AFTER[min(failures, len(AGAIN_AFTER) - 1)])
