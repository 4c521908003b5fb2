"""SQL over the lake's files, for looking around: one SELECT, nothing outside the lake, nothing from the future.

It runs in processes of its own: few at once for each workspace, kept for the next statement, killed when one goes
wrong.
"""

import asyncio
import io
import json
import os
import pickle
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from moot.modules.market_data.application.columns import frame_of
from moot.modules.market_data.application.sql import ReadRows
from moot.modules.market_data.domain.facts import COMPANIES, DATASETS, Dataset
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure import lake
from moot.shared.domain.errors import AppError, InvalidInput, TooManyRequests, Unavailable
from moot.shared.infrastructure.working_time import Stopwatch, WorkingTime, off_the_clock

WORKER = Path(__file__).with_name("sql_worker.py")
LENGTH = 8
MOST_SECONDS = 10.0
MOST_MEMORY, MOST_OF_DUCKDB, LONGEST_ANSWER = 640, 384, 8
"""Megabytes: of a process, of what DuckDB takes knowingly, and of an answer."""
AT_ONCE, MOST_WAITING, MOST_IN_ALL, MOST_IDLE = 2, 8, 8, 4
"""The first two are those of a workspace. A process that waits has about 60 MB."""
ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH")
"""All that a process is told about the world; keys are in the rest."""
VALUES = {
    *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
    ("decimal", "Decimal"),
    ("uuid", "UUID"),
}


class ChildGone(Exception):
    """It has ended before it answered."""


class Child:
    """A process that answers one statement at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout
        self.process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._killed = False

    @classmethod
    async def start(cls, seconds: float) -> Self:
        limits = MOST_MEMORY, MOST_OF_DUCKDB, LONGEST_ANSWER, int(seconds) + 2
        command = (sys.executable, "-P", str(WORKER), *map(str, limits))
        known = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        start = asyncio.create_subprocess_exec
        return cls(await start(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=known))

    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(question).encode()
        try:
            self._stdin.write(len(data).to_bytes(LENGTH) + data)
            await self._stdin.drain()
            length = int.from_bytes(await self._stdout.readexactly(LENGTH))
            reply: dict[str, Any] = Values(io.BytesIO(await self._stdout.readexactly(length))).load()
        except (asyncio.IncompleteReadError, ConnectionError) as e:
            raise ChildGone from e
        return reply

    def kill(self) -> None:
        """Once: a second signal would look for its end itself, and asyncio would never learn how it came."""
        if not self._killed:
            self._killed = True
            with suppress(ProcessLookupError):
                self.process.kill()

    async def end(self) -> None:
        self.kill()
        await self.process.communicate()
        if (code := self.process.returncode or 0) > 0:
            raise _unavailable(f"exit code {code}")


class Values(pickle.Unpickler):
    """Values and nothing else: a process that runs statements of strangers is not believed in more."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in VALUES:
            raise pickle.UnpicklingError(f"{module}.{name} is no value")
        return super().find_class(module, name)


class Children:
    """A process runs statements of one workspace only, and has so many seconds for each."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self.seconds = seconds
        self._here = Counter[str]()
        self._turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(AT_ONCE))
        self._in_all = asyncio.Semaphore(MOST_IN_ALL)
        self._idle: list[tuple[str, Child]] = []
        self._at_work: set[Child] = set()
        self.closed = False

    @asynccontextmanager
    async def lend(self, workspace: str) -> AsyncIterator[Child]:
        """In its turn. Whoever leaves with an error, or is cancelled, leaves it dead."""
        if self._here[workspace] >= AT_ONCE + MOST_WAITING:
            raise busy(self.seconds)
        self._here[workspace] += 1
        try:
            async with self._turns[workspace], self._in_all:
                child = await self._take(workspace)
                try:
                    yield child
                except BaseException:
                    await child.end()
                    raise
                finally:
                    self._at_work.discard(child)
                await self._keep(workspace, child)
        finally:
            self._here[workspace] -= 1

    async def close(self) -> None:
        self.closed = True
        for child in self._at_work:
            child.kill()
        while self._idle:
            await self._idle.pop()[1].end()

    async def _take(self, workspace: str) -> Child:
        mine = next(
            (each for each in self._idle if each[0] == workspace and each[1].process.returncode is None), None
        )
        if mine:
            self._idle.remove(mine)
        try:
            child = mine[1] if mine else await Child.start(self.seconds)
        except OSError as e:
            raise _unavailable(str(e)) from e
        if self.closed:  # while it was starting
            await child.end()
            raise ChildGone
        self._at_work.add(child)
        return child

    async def _keep(self, workspace: str, child: Child) -> None:
        self._idle.append((workspace, child))
        while len(self._idle) > (0 if self.closed else MOST_IDLE):
            await self._idle.pop(0)[1].end()


def busy(seconds: float) -> TooManyRequests:
    return TooManyRequests(SAY("database.busy"), code="SQL_BUSY", retry_after=round(seconds))


def _unavailable(why: str) -> Unavailable:
    return Unavailable(SAY("database.no_process", why=why), code="SQL_UNAVAILABLE")


class LakeDatabase:
    """DuckDB over the lake's files, with rows from elsewhere beside them, in processes of its own."""

    def __init__(self, folder: Path, children: Children) -> None:
        self._folder, self.children = folder, children

    @property
    def empty(self) -> bool:
        return not any(self._folder.glob(f"*/*{lake.SUFFIX}"))

    async def answer(
        self, sql: str, read: ReadRows, *, as_of: datetime, most: int, workspace: str
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows, one more than `most` when there are more. The wait for a turn counts as time; what a
        process needs to begin, and what is laid out for it, does not."""
        began: float | None = None
        try:
            async with WorkingTime(self.children.seconds), self.children.lend(workspace) as child:
                began = time.monotonic()
                reply = await self._converse(child, sql, read, as_of, most)
                if reply.get("refused") == "database.too_big":
                    raise ChildGone  # what is left of its memory is in pieces
        except TimeoutError as e:
            raise self._explain_delay(began) from e
        except ChildGone as e:
            if self.children.closed:
                raise Unavailable(SAY("database.closing"), code="SQL_UNAVAILABLE") from e
            raise _refuse("database.too_big", megabytes=MOST_MEMORY) from e
        if "refused" in reply:
            raise await asyncio.to_thread(self._explain, **reply)
        return reply["columns"], reply["rows"]

    async def _converse(
        self, child: Child, sql: str, read: ReadRows, as_of: datetime, most: int
    ) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as elsewhere:
            with off_the_clock(Stopwatch()):
                reply = await child.ask({"sql": sql})
                if "refused" in reply:
                    return reply
                tables = [DATASETS[name] for name in reply["tables"] if name in DATASETS]
                added = {dataset: await read(dataset) for dataset in tables}
                views = await asyncio.to_thread(self._views, added, Path(elsewhere))
            return await child.ask(
                {
                    "views": views,
                    "folder": str(self._folder.resolve()),
                    "as_of": as_of.astimezone(UTC).isoformat(),
                    "most": most,
                }
            )

    def _views(
        self, added: Mapping[Dataset[Any], Sequence[BaseModel]], elsewhere: Path
    ) -> dict[str, dict[str, str]]:
        """The files that each table is made of. Of companies, which tell no moment, `added` has all."""
        views = {}
        for dataset, facts in added.items():
            file = elsewhere / f"{dataset}{lake.SUFFIX}"
            frame_of(dataset.model, facts).write_parquet(file)
            views[dataset.name] = {"added": str(file)}
            files = [] if dataset is COMPANIES else lake.files_of(self._folder.resolve(), dataset)
            for path in files:  # in a read of them all, one without the right columns would go unnoticed
                lake.coverage_of(path)
            if files:
                views[dataset.name]["kept"] = str(files[0].parent / f"*{lake.SUFFIX}")
        return views

    def _explain(self, refused: str, *, attached: bool = True, **values: Any) -> AppError:
        if not attached:
            for dataset in DATASETS.values():
                for path in lake.files_of(self._folder, dataset):  # raises for the one that is to blame
                    lake.frame_in(path, dataset)
        return _refuse(refused, **values)

    def _explain_delay(self, began: float | None) -> AppError:
        """A statement that has waited more than it has run may do well another time."""
        seconds = self.children.seconds
        if began is None or time.monotonic() - began < seconds / 2:
            return busy(seconds)
        return _refuse("database.too_slow", seconds=seconds)


def _refuse(key: str, **values: Any) -> InvalidInput:
    return InvalidInput(SAY(key, tables=list(DATASETS), **values), code="SQL_REFUSED", field="query")
