"""Measure, tell each ratio, and exit 1 when one is over its budget: `python -m bench [part ...]`."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path

from bench import (
    argument,
    bare_langgraph,
    decisions,
    directory,
    engine,
    history,
    intake,
    lake,
    models,
    pages,
    real_session,
    screen,
    sessions,
    start,
    stored,
)
from bench.desk import QUESTION, TURNS_ON_THE_CRITICAL_PATH, desk_of_stubs
from bench.gateways import TimedResearch
from bench.line import Line
from moot.cli import server
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.shared.infrastructure.database import Database

LATENCY = 0.2
RUNS = 30
TURNS = 30
ROUNDS = 5
WARM = 3


async def critical_path() -> Line:
    """A full run, journal and session on SQLite, against what its calls alone would take."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'bench.db'}")
        await database.prepare()
        service = desk_of_stubs(LATENCY, database)
        for _ in range(WARM):
            await service.execute(QUESTION)
        walls = [await wall(lambda: service.execute(QUESTION)) for _ in range(ROUNDS)]
        await database.close()
    path = TURNS_ON_THE_CRITICAL_PATH * LATENCY
    median = statistics.median(walls)
    return Line(
        "full run / critical path", median / path, 1.05, f"{median:.3f} s of {path:.1f} s, persistence on"
    )


async def experts_in_flight() -> Line:
    research = TimedResearch(0.02)
    engine = LangGraphResearchOrchestrator(research)
    await ResearchOrchestrationService(engine).execute(QUESTION)
    missing = len(ExpertType) / research.most_in_flight
    return Line("experts selected / in flight at once", missing, 1.0, f"{research.most_in_flight} of 5")


async def orchestration() -> Line:
    """CPU of a run in which nothing takes time, against bare LangGraph of the same shape, in a process that has
    settled as a server does. They take short turns: whatever else slows the machine down slows down both."""
    service, bare = desk_of_stubs(0.0), bare_langgraph.compiled()
    ours: list[float] = []
    theirs: list[float] = []
    with server.settle():
        for _ in range(TURNS):
            ours.append(await cpu_per_run(lambda: service.execute(QUESTION)))
            theirs.append(await cpu_per_run(lambda: bare.ainvoke({"query": "q"})))
    moot, langgraph = statistics.median(ours), statistics.median(theirs)
    detail = f"{moot * 1e3:.2f} ms against {langgraph * 1e3:.2f} ms a run, no persistence"
    return Line("orchestration CPU / bare LangGraph", moot / langgraph, 2.0, detail)


def help_text() -> Line:
    """`moot --help` against the import that everything else waits for."""
    ours = statistics.median(
        process("-c", "from moot.cli import main; main()", "--help") for _ in range(ROUNDS)
    )
    theirs = statistics.median(process("-c", "import langgraph.graph") for _ in range(ROUNDS))
    return Line("moot --help / import langgraph", ours / theirs, 0.3, f"{ours:.3f} s against {theirs:.3f} s")


async def wall(run: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await run()
    return time.perf_counter() - started


async def cpu_per_run(run: Callable[[], Awaitable[object]]) -> float:
    started = time.process_time()
    for _ in range(RUNS):
        await run()
    return (time.process_time() - started) / RUNS


def process(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


async def measured() -> list[Line]:
    return [await critical_path(), await experts_in_flight(), await orchestration()]


WIDTH = 48


def tell(line: Line) -> bool:
    mark = "ok" if line.within else "OVER"
    print(
        f"{line.name:{WIDTH}}  {line.ratio:6.3f}  (budget {line.budget:.2f})  {mark:4}  {line.detail}",
        flush=True,
    )
    return line.within


async def command_line() -> list[Line]:
    return [help_text(), *start.lines()]


PARTS: dict[str, Callable[[], Coroutine[None, None, list[Line]]]] = {
    "runs": measured,
    "decisions": decisions.lines,
    "sessions": sessions.lines,
    "history": history.lines,
    "stored": stored.lines,
    "models": models.lines,
    "intake": intake.lines,
    "start": command_line,
    "lake": lake.lines,
    "directory": directory.lines,
    "argument": argument.lines,
    "real": real_session.lines,
    "screen": screen.lines,
    "engine": engine.lines,
    "pages": pages.lines,
}


def main(wanted: Sequence[str]) -> int:
    """All parts, or those that are named; a part that fails is told, and the others are measured."""
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"Unknown: {', '.join(unknown)}; there are {', '.join(PARTS)}.")
    within = []
    for name in wanted or PARTS:
        try:
            within += [tell(line) for line in asyncio.run(PARTS[name]())]
        except Exception:  # noqa: BLE001 - the other parts are measured all the same
            within.append(False)
            print(f"{name}: failed\n{traceback.format_exc()}", flush=True)
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
