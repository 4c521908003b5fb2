"""Workers that run sessions, one at a time, and what they say before they end."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.entry.forked import ROOT, Forge


class Nursery:
    """One worker at a time; `folder` has the pipe it speaks through, and its complaints."""

    def __init__(self, forge: Forge, folder: Path) -> None:
        self._forge, self._folder = forge, folder
        self._pipes: list[int] = []
        self._worker = 0
        self._heard = b""

    async def start(self, settings: dict[str, Any], **order: Any) -> None:
        """Have a worker do as it is told (see there), and return when its desk is open."""
        told = {"settings": settings, "session_id": None, "in_background": 0, "point": "", **order}
        code = f"from tests.chaos.worker import run; run({told!r})"
        given, out, err = Path(os.devnull), self._new_pipe(), self._folder / "complaints"
        self._worker = await asyncio.to_thread(self._forge.fork, ["-c", code], {}, ROOT, given, out, err)
        assert "ready" in await self.heard()

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it may have come to its end by itself
            os.kill(self._worker, number)

    async def end(self) -> dict[str, Any]:
        """What the worker said before it ended, and its `status`: that of its exit, or minus the signal."""
        said: dict[str, Any] = {}
        while "status" not in said:
            said |= await self.heard()
        return said

    def close(self) -> None:
        """A worker that a test which failed has left behind, stopped perhaps, is in nobody's way."""
        if self._worker:
            self.signal(signal.SIGKILL)
            self._forge.wait(self._worker)
        for pipe in self._pipes:
            os.close(pipe)

    async def heard(self) -> dict[str, Any]:
        """The next thing that is said."""
        while b"\n" not in self._heard:
            more = await self._more()
            if not more:
                worker, self._worker = self._worker, 0
                return {"status": await self._forge.ended(worker)}
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def _new_pipe(self) -> Path:
        """One for each worker: one that somebody has hung up on has ended, until somebody else speaks."""
        path = self._folder / f"said-{len(self._pipes)}"
        os.mkfifo(path)
        self._pipes.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        return path

    async def _more(self) -> bytes:
        """Nothing, once the worker has ended. No thread waits for it: whoever does can be cancelled."""
        readable, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(self._pipes[-1], readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._pipes[-1])
        return os.read(self._pipes[-1], 65_536)
