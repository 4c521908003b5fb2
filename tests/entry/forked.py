"""Processes of their own, forked from one that has imported everything and done what takes every process seconds."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from signal import SIGKILL, Signals
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, NoReturn

import httpx

from tests.entry.serving import IN_TIME, Client, calling, free_port

ROOT = Path(__file__).parents[2]
NEEDED_LATER = (
    *(
        "moot.main",
        "moot.cli.ask",
        "moot.cli.data",
        "moot.cli.research",
        "moot.cli.server",
        "moot.cli.sessions",
        "moot.cli.worker",
    ),
    *("moot.modules.governance.infrastructure.sql.guard", "moot.modules.market_data.infrastructure.lake_sql"),
    *(
        "moot.modules.intake.infrastructure.graph.main_graph",
        "markdown_it",
        "polars",
        "rich.markdown",
        "dbos",
    ),
)
"""Imported once for all processes; whether a command needs them shows elsewhere, in processes that are not forked."""
A_COMMAND = 2 * IN_TIME
"""Seconds after which a command that has not ended is taken never to end."""


class Forge:
    """Starts processes and says how they ended. Each is `moot` with some arguments, or Python with `-c` and code."""

    def __init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MOOT_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.entry.forked"],
            cwd=ROOT,
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._alive: set[int] = set()

    async def start(self, *arguments: str, log: Path, **env: str) -> int:
        """The id of a new process; what it prints is in `log`."""
        return await asyncio.to_thread(self.fork, arguments, env, ROOT, Path(os.devnull), log, log)

    async def ended(self, pid: int, *, within: float = IN_TIME) -> int:
        """Its exit code, or minus the signal it died of; one that takes too long is killed."""
        return await asyncio.to_thread(self.wait, pid, within=within)

    def wait(self, pid: int, *, within: float = IN_TIME) -> int:
        """As `ended`, for those who need not do anything else meanwhile."""
        too_late = Timer(within, os.kill, (pid, SIGKILL))
        too_late.start()
        code: int = self._ask(wait=pid)
        too_late.cancel()
        self._alive.discard(pid)
        return code

    def run(
        self, *arguments: str, home: Path, typed: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """What somebody sees who calls `moot` in the folder `home`, in English unless told."""
        with TemporaryDirectory() as folder:
            given, out, err = (Path(folder, name) for name in ("in", "out", "err"))
            given.write_text(typed, encoding="utf-8")
            here = {"MOOT_HOME": str(home), "LANG": "en_US.UTF-8", "COLUMNS": "100", **env}
            code = self.wait(self.fork(arguments, here, home, given, out, err), within=A_COMMAND)
            told = (file.read_text(encoding="utf-8") for file in (out, err))
            return subprocess.CompletedProcess(arguments, code, *told)

    def close(self) -> None:
        for pid in self._alive:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        self._process.communicate()

    def fork(self, arguments: Sequence[str], env: dict[str, str], folder: Path, *streams: Path) -> int:
        """`streams` are the files to read from, to print to and to complain to."""
        files = [str(stream) for stream in streams]
        pid: int = self._ask(arguments=arguments, env=env, folder=str(folder), files=files)
        self._alive.add(pid)
        return pid

    def _ask(self, **order: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@dataclass(frozen=True)
class Server(Client):
    """A `moot serve` that runs."""

    pid: int
    forge: Forge

    def signal(self, number: Signals) -> None:
        os.kill(self.pid, number)

    async def exit_code(self, *, within: float = IN_TIME) -> int:
        return await self.forge.ended(self.pid, within=within)


@asynccontextmanager
async def server(forge: Forge, home: Path, *options: str, **env: str) -> AsyncIterator[Server]:
    """`moot serve` on `home`, once it answers. Whoever starts it sees to it that it ends."""
    port = free_port()
    log = home / f"serve-{port}.txt"
    given = {"MOOT_HOME": str(home), "MOOT_LOG_LEVEL": "error", "LANG": "en_US.UTF-8", **env}
    pid = await forge.start("serve", "--port", str(port), *options, log=log, **given)
    async with calling(port) as http:
        await _answers(http)
        yield Server(http, pid, forge)


async def _answers(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(IN_TIME):
        while True:
            try:
                answer = await http.get("/readyz")
            except httpx.TransportError:
                await asyncio.sleep(0.02)
            else:
                assert answer.status_code == 200, answer.text
                return


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")
    gc.disable()
    for name in NEEDED_LATER:
        import_module(name)
    from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
    from tests.chaos.worker import warm_up
    from tests.fakes.rules import share_shipped_rules

    PromptTemplates()
    share_shipped_rules()
    warm_up()
    gc.freeze()  # so that no process looks through all of it, and gets a copy of its own of what it looks at
    gc.enable()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            said = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        else:
            said = os.fork()
            if said == 0:
                _become(**order)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


def _become(arguments: list[str], env: dict[str, str], folder: str, files: list[str]) -> NoReturn:
    """Whatever happens, a child never returns to the loop it was forked from."""
    code = 1
    try:
        for name in [name for name in os.environ if name.startswith(("MOOT_", "LC_", "LANG", "COLUMNS"))]:
            del os.environ[name]
        os.environ.update(env)
        os.chdir(folder)
        os.setsid()  # so that a terminal among the streams becomes its own
        for stream, file in enumerate(files):
            how = os.O_WRONLY | os.O_CREAT | os.O_APPEND if stream else os.O_RDONLY
            os.dup2(os.open(file, how), stream)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=stream.isatty())
        _run(*arguments)
        code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0
    except BaseException:  # noqa: BLE001 - bulkhead: as above
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(*arguments: str) -> None:
    if arguments[0] == "-c":
        exec(arguments[1], {"__name__": "__main__"})
    else:
        from moot.cli import app

        app(arguments)


if __name__ == "__main__":
    main()
