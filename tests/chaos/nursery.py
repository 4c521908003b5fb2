"""Workers are forked from one process that has done once what takes every process seconds."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]


def without_settings() -> dict[str, str]:
    """The environment, without what whoever runs the tests may have told Moot."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MOOT_")}


class Nursery:
    """One worker at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.nursery"],
            cwd=ROOT,
            env=without_settings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._worker = 0
        self._heard = b""

    async def start(self, settings: dict[str, Any], **order: Any) -> None:
        """Have a worker do as it is told (see there), and return when its desk is open."""
        await self._clear()
        told = {"settings": settings, "session_id": None, "in_background": 0, "point": "", **order}
        self._send(json.dumps(told))
        self._worker = (await self.heard())["pid"]
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
        if self._worker:
            self.signal(signal.SIGKILL)
        self._process.communicate()

    async def heard(self) -> dict[str, Any]:
        """The next thing that is said."""
        while b"\n" not in self._heard:
            self._heard += await self._more()
        line, _, self._heard = self._heard.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        if "status" in said:
            self._worker = 0
        return said

    async def _clear(self) -> None:
        """A worker that a test which failed has left behind, stopped perhaps, is in nobody's way."""
        if self._worker:
            self.signal(signal.SIGKILL)
            await self.end()

    async def _more(self) -> bytes:
        """No thread waits for it: whoever does can be cancelled."""
        assert self._process.stdout is not None
        pipe, readable = self._process.stdout.fileno(), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(pipe, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(pipe)
        read = os.read(pipe, 65_536)
        assert read, "the nursery is gone"
        return read

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())


def main() -> None:
    from tests.chaos.worker import run, say, warm_up

    warm_up()
    for line in sys.stdin:
        worker = os.fork()
        if worker == 0:
            say(pid=os.getpid())
            _be(run, line)
        say(status=os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))


def _be(run: Callable[[dict[str, Any]], None], line: str) -> NoReturn:
    """Whatever happens, a worker never returns to the loop it was forked from."""
    try:
        run(json.loads(line))
    except BaseException:  # noqa: BLE001 - bulkhead: as above
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
