"""How far workers and one PostgreSQL go: what a session takes is measured and put into a queueing model, which is
held against what one, two and four workers did. `python -m bench.scale docs/scale.md` writes the tables of that page.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from sqlalchemy import select, text
from tests.chaos.crew import count_going_on, query
from tests.chaos.desks import careful_after
from tests.fakes.llm_server import LLMServer, running_llm_server
from tests.postgres import Postgres, running_postgres

from moot.desk import Moot
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.modules.jobs.infrastructure.engine import POLLING
from moot.shared.infrastructure.settings import Settings

WORKERS = (1, 2, 4)
PLACES = 8
SESSIONS, EACH = 32, 40
"""How many a point is measured with, and how many more for each worker: all places have to be taken for a while."""
SETTLES, PROBED = 2, 3
LATENCY = 0.5
TURNS = 4
"""Model calls after one another: the experts, bull and bear, the resolution, the verdict."""
CALLS = 9
SYMBOLS = [f"9000{n:02}.DEMO" for n in range(1, 7)]
A_DAY = 86_400
CORES = os.cpu_count() or 1
A_TICK = os.sysconf("SC_CLK_TCK")
SIZE = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
SIZE += "AND relnamespace = 'public'::regnamespace"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


@dataclass(frozen=True)
class Session:
    """What one takes: seconds of CPU in a worker, in PostgreSQL and `beside` them, in the process that asks and plays
    the model; seconds of waiting for models; and what it leaves in the database; `text` are the characters that
    models were asked."""

    worker: float
    store: float
    beside: float
    waits: float
    rows: float
    room: float
    text: float = 0.0


class Point(NamedTuple):
    """`cores`: what as many busy processes as there are workers, and one for PostgreSQL, got of the machine."""

    workers: int
    rate: float
    cores: float
    session: Session


def throughput(customers: int, demands: Sequence[float], servers: Sequence[float], delay: float) -> float:
    """Sessions a second of so many that are always under way, by mean value analysis: a station with several servers
    is one that is as many times as fast, and a delay (Seidmann)."""
    seconds, count = np.array(demands), np.array(servers)
    quick, spent = seconds / count, delay + float((seconds * np.maximum(count - 1, 0) / count).sum())
    queue, rate = np.zeros(len(quick)), 0.0
    for under_way in range(1, customers + 1):
        response = quick * (1 + queue)
        rate = under_way / (spent + float(response.sum()))
        queue = rate * response
    return rate


def predict(session: Session, workers: int, cores: float) -> float:
    """Of workers and PostgreSQL on one machine. A worker has one core at most, as one process of Python has."""
    waits = session.waits + POLLING / 2  # half a look at the queue until a place that is free is taken
    demands = (session.worker, session.store, session.beside)
    free = throughput(workers * PLACES, demands, (min(workers, cores), cores, min(1, cores)), waits)
    return min(free, cores / sum(demands))


def _cpu_of(pids: Iterable[int], *, with_children: bool = False) -> float:
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        ticks += sum(map(int, stat[11 : 15 if with_children else 13]))
    return ticks / A_TICK


def probe(processes: int) -> float:
    """How many cores so many busy processes have among whatever else runs."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    time.sleep(1)
    before, at = _cpu_of(one.pid for one in spinning), time.perf_counter()
    time.sleep(PROBED)
    got = (_cpu_of(one.pid for one in spinning) - before) / (time.perf_counter() - at)
    for one in spinning:
        one.kill()
        one.wait()
    return got


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "--ppid", str(parent), "-o", "pid="], capture_output=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


class Site:
    """A desk on a PostgreSQL of its own, and workers as they are."""

    def __init__(self, postgres: Postgres, home: Path, server: LLMServer | None) -> None:
        self._postgres, self._home, self._server = postgres, home, server
        self._workers: list[subprocess.Popen[bytes]] = []

    async def measure(self, workers: int) -> Point:
        url = await self._postgres.create(migrated=True)
        given = {"home": self._home, "database_url": url, "log_level": "error", "worker_sessions": PLACES}
        if self._server is not None:
            given |= {"llm_base_url": self._server.url, "llm_model": "careful-1", "llm_concurrency": 256}
        settings = Settings(**given, worker=False)
        env = os.environ | {f"MOOT_{name.upper()}": str(value) for name, value in given.items()}
        async with Moot(settings) as desk:
            command = [sys.executable, "-m", "moot", "worker"]
            self._workers = [
                subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)  # noqa: ASYNC220
                for _ in range(workers)
            ]
            try:
                await self._run(desk, PLACES * workers)  # until all of them have worked
                return await self._count(desk, workers)
            finally:
                for process in self._workers:
                    process.terminate()
                for process in self._workers:
                    process.wait(60)

    async def _run(self, desk: Moot, count: int) -> datetime:
        """When the last of them was asked for."""
        for n in range(count):
            await desk.start(SYMBOLS[n % len(SYMBOLS)], locale="en-US")
        asked = datetime.now(UTC)
        while await count_going_on(desk):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return asked

    async def _count(self, desk: Moot, workers: int) -> Point:
        sent = len(self._server.requests) if self._server else 0
        rows, room = await self._stored(desk)
        cores, count = probe(workers + 1), SESSIONS + EACH * workers
        before = self._cpu()
        asked = await self._run(desk, count)
        after = self._cpu()
        cores = (cores + probe(workers + 1)) / 2
        more, larger = await self._stored(desk)
        prompts = [seen.body["messages"] for seen in self._server.requests[sent:]] if self._server else []
        characters = sum(len(message["content"] or "") for prompt in prompts for message in prompt)
        waits = TURNS * LATENCY if self._server else 0.0
        worker, store, beside = ((now - then) / count for now, then in zip(after, before, strict=True))
        left = ((more - rows) / count, (larger - room) / count, characters / count)
        rate = await self._rate(desk, asked, workers * PLACES)
        return Point(workers, rate, cores, Session(worker, store, beside, waits, *left))

    async def _rate(self, desk: Moot, asked: datetime, places: int) -> float:
        """Sessions a second from then on, for as long as all places were taken."""
        ended = await query(
            desk, select(ResearchSessionRow.completed_at).where(ResearchSessionRow.completed_at > asked)
        )
        moments: list[datetime] = sorted(at for (at,) in ended)[:-places]
        return len(moments) / (moments[-1] - asked).total_seconds()

    def _cpu(self) -> tuple[float, float, float]:
        postmaster = int((self._postgres._server.pgdata / "postmaster.pid").read_text().split()[0])
        store = _cpu_of([postmaster], with_children=True) + _cpu_of(_children(postmaster))
        return _cpu_of(process.pid for process in self._workers), store, time.process_time()

    async def _stored(self, desk: Moot) -> tuple[int, int]:
        """When what ended is packed, and the room it had before is given back."""
        assert desk.database is not None
        await asyncio.sleep(SETTLES)
        connection = await asyncpg.connect(desk.settings.database_url)
        await connection.execute("VACUUM FULL")
        await connection.close()
        async with desk.database.session() as db:
            tables = list(await db.scalars(text(TABLES)))
            counts = [await db.scalar(text(f"SELECT count(*) FROM {table}")) for table in tables]
            return sum(map(int, filter(None, counts))), int(await db.scalar(text(SIZE)) or 0)


async def measure() -> dict[str, list[Point]]:
    """By the rules alone, and by models that take half a second a turn."""
    with running_postgres() as postgres, tempfile.TemporaryDirectory() as home:
        async with running_llm_server() as server:
            server.default = careful_after(LATENCY)
            sites = {
                "rules": Site(postgres, Path(home, "rules"), None),
                "models": Site(postgres, Path(home, "models"), server),
            }
            return {kind: [await site.measure(n) for n in WORKERS] for kind, site in sites.items()}


CHARACTERS_A_TOKEN = 3.5
ANSWER_TOKENS = 500
A_TURN = 10.0
"""Seconds a real model takes to answer."""
BUSY = 0.6
"""Of a core, at most, so that queues stay short."""
DAILY = (10_000, 100_000, 300_000, 1_000_000)


def tell_session(points: dict[str, list[Point]]) -> Iterable[str]:
    yield "| a session | worker, ms of CPU | PostgreSQL, ms of CPU | rows | kB kept | tokens |"
    yield "|---|---|---|---|---|---|"
    for kind, measured in points.items():
        one = measured[0].session
        tokens = f"{_tokens(one):,.0f}" if one.text else "none"
        cells = (
            f"{1e3 * one.worker:.0f}",
            f"{1e3 * one.store:.0f}",
            f"{one.rows:.0f}",
            f"{one.room / 1e3:.0f}",
        )
        yield f"| by {kind} | {' | '.join(cells)} | {tokens} |"


def tell_check(points: dict[str, list[Point]]) -> Iterable[str]:
    yield f"| | workers | of {CORES} cores, to be had | measured, sessions a second | model | error |"
    yield "|---|---|---|---|---|---|"
    for kind, measured in points.items():
        for point in measured:
            said = predict(measured[0].session, point.workers, point.cores)
            error = f"{said / point.rate - 1:+.0%}"
            told = (point.workers, f"{point.cores:.1f}", f"{point.rate:.2f}", f"{said:.2f}", error)
            yield f"| by {kind} | {' | '.join(map(str, told))} |"


def tell_days(points: dict[str, list[Point]]) -> Iterable[str]:
    yield (
        "| sessions a day | a second | workers by rules | workers by models | places by models "
        "| cores of PostgreSQL | tokens a minute | GB a day |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    rules, models = points["rules"][0].session, points["models"][0].session
    for daily in DAILY:
        rate = daily / A_DAY
        places = rate * (TURNS * A_TURN + models.worker + models.store)
        cells = (
            f"{rate:.1f}",
            f"{_whole(rate * rules.worker / BUSY)}",
            f"{_whole(rate * models.worker / BUSY)}",
            f"{_whole(places / BUSY)}",
            f"{rate * models.store / BUSY:.1f}",
            f"{60 * rate * _tokens(models):,.0f}",
            f"{daily * models.room / 1e9:.1f}",
        )
        yield f"| {daily:,} | {' | '.join(cells)} |"


def _tokens(session: Session) -> float:
    return session.text / CHARACTERS_A_TOKEN + CALLS * ANSWER_TOKENS


def _whole(number: float) -> int:
    return max(1, int(np.ceil(number)))


def write(page: Path, points: dict[str, list[Point]]) -> None:
    """Each table between the marks that name it."""
    told = page.read_text(encoding="utf-8")
    tables = {"session": tell_session(points), "check": tell_check(points), "days": tell_days(points)}
    for name, lines in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        table = "\n".join((marks[0], *lines, marks[1]))
        before, rest = told.split(marks[0])
        told = before + table + rest.split(marks[1])[1]
    page.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), asyncio.run(measure()))
