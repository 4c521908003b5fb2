"""What a model call costs beside the model: our client, budget and audit, against a bare langchain ChatOpenAI."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from bench.line import Line
from moot.cli import server
from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.domain.budget import Budget, Limits
from moot.modules.llm_platform.domain.call_record import CallJournal
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.call_journal import SqlCallJournal
from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel
from moot.shared.domain.clock import SystemClock
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.call_audit import CallAudit
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx

PROMPT = "technical.current_price = 12.34 CNY [demo, 2026-06-30]\n" * 60
SESSION = ExecutionContext(session_id="6f1c2d3e-0000-4000-8000-000000000001")
CALLERS = 50
CALLS = 500
ROUNDS = 5
LATENCY = 0.2
Call = Callable[[], Awaitable[object]]


async def lines() -> list[Line]:
    with RunningServer() as port, tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'bench.db'}")
        await database.prepare()
        token = current_execution_ctx.set(SESSION)
        try:
            return [
                await cpu_per_call(port, database),
                await audit_wall(port, database),
                await in_flight(port, database),
            ]
        finally:
            current_execution_ctx.reset(token)
            await database.close()


async def cpu_per_call(port: int, database: Database) -> Line:
    bare = ChatOpenAI(
        base_url=_url(port, 0), api_key=SecretStr("none"), model="stub-1", max_retries=0, temperature=0.7
    )
    async with service(port, 0, database) as llm:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(await cpu(lambda: llm.generate(PROMPT, caller_agent="bench"), CALLS))
            theirs.append(await cpu(lambda: bare.ainvoke(PROMPT), CALLS))
    moot, langchain = statistics.median(ours), statistics.median(theirs)
    detail = f"{moot * 1e3:.2f} ms with audit against {langchain * 1e3:.2f} ms"
    return Line("CPU per model call / ChatOpenAI", moot / langchain, 0.6, detail)


async def audit_wall(port: int, database: Database) -> Line:
    async with service(port, LATENCY, database) as audited, service(port, LATENCY, None) as plain:
        on, off = [], []
        for _ in range(ROUNDS):
            on.append(await wall(lambda: audited.generate(PROMPT, caller_agent="bench"), CALLERS))
            off.append(await wall(lambda: plain.generate(PROMPT, caller_agent="bench"), CALLERS))
    with_audit, without = statistics.median(on), statistics.median(off)
    detail = f"{with_audit:.3f} s against {without:.3f} s, {CALLERS} callers at {LATENCY} s"
    return Line("audit on / audit off, wall", with_audit / without, 1.10, detail)


async def in_flight(port: int, database: Database) -> Line:
    """200 calls at once against 50: per call they must not cost more. The process has settled, as a server does."""
    at_50, at_200 = [], []
    async with service(port, LATENCY, database) as llm:
        with server.settle():
            for _ in range(ROUNDS):
                at_50.append(
                    await cpu(lambda: llm.generate(PROMPT, caller_agent="bench"), 200, at_once=CALLERS)
                )
                _peak(port)
                at_200.append(await cpu(lambda: llm.generate(PROMPT, caller_agent="bench"), 800, at_once=200))
    few, many = statistics.median(at_50), statistics.median(at_200)
    detail = f"{many * 1e3:.2f} ms against {few * 1e3:.2f} ms, {_peak(port)} in flight at the server"
    return Line("CPU per call, 200 in flight / 50", many / few, 1.25, detail)


async def cpu(call: Call, count: int, at_once: int = CALLERS) -> float:
    await _many(call, at_once, at_once)
    started = time.process_time()
    await _many(call, count, at_once)
    return (time.process_time() - started) / count


async def wall(call: Call, at_once: int) -> float:
    await _many(call, at_once, at_once)
    started = time.perf_counter()
    await _many(call, at_once, at_once)
    return time.perf_counter() - started


async def _many(call: Call, count: int, at_once: int) -> None:
    left = iter(range(count))

    async def caller() -> None:
        for _ in left:
            await call()

    await asyncio.gather(*(caller() for _ in range(at_once)))


@asynccontextmanager
async def service(port: int, latency: float, database: Database | None) -> AsyncIterator[LLMService]:
    config = LLMConfig(alias="stub", base_url=_url(port, latency), model_name="stub-1", concurrency=1000)
    model, journal = OpenAIChatModel(), CallJournal()
    if database is not None:
        trail = AuditTrail(database)
        journal = SqlCallJournal(CallAudit(trail, SystemClock()))
    yield LLMService(ModelRegistry(None, [config]), model.complete, journal, Budget(Limits()))
    await model.aclose()


class RunningServer:
    def __enter__(self) -> int:
        command = [sys.executable, "-m", "bench.model_server"]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._server.communicate()


def _url(port: int, latency: float) -> str:
    return f"http://127.0.0.1:{port}/{latency}/v1"


def _peak(port: int) -> int:
    with urlopen(f"http://127.0.0.1:{port}/peak") as answer:
        return int(answer.read())
