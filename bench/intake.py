"""A question's plan and its steps: what they take beside the calls themselves, as a bare client makes them."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from bench.line import Line
from bench.models import PROMPT, RunningServer
from moot.cli import server
from moot.desk import Moot
from moot.modules.intake.application.intake_state import Errand, IntakeState, Task
from moot.modules.intake.domain.question import Understanding
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.shared.infrastructure.settings import Settings

LATENCY = 0.2
ROUNDS = 7
QUESTION = "What do one, two and three say about batteries?"
UNDERSTOOD = Understanding(intent="research", locale="en-US", title=QUESTION, by="model")
TURNS_ON_THE_CRITICAL_PATH = 2  # the planner, then three steps at once


async def lines() -> list[Line]:
    with RunningServer() as port, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            home=Path(folder),
            log_level="error",
            llm_base_url=f"http://127.0.0.1:{port}/{LATENCY}/v1",
            llm_model="stub-1",
            llm_concurrency=1000,
            llm_api_key="none",
        )
        bare = ChatOpenAI(
            base_url=settings.llm_base_url, api_key=SecretStr("none"), model="stub-1", max_retries=0
        )
        async with Moot(settings) as desk:
            await planned_and_researched(desk)
            await the_calls_alone(bare)
            with server.settle():
                rounds = [
                    (await planned_and_researched(desk), await the_calls_alone(bare)) for _ in range(ROUNDS)
                ]
    ours, path = (statistics.median(walls) for walls in zip(*rounds, strict=True))
    silent = ours / (TURNS_ON_THE_CRITICAL_PATH * LATENCY)
    detail = f"{ours:.3f} s against {path:.3f} s bare, all on the record; {silent:.3f} x the models' latency"
    return [Line("planner and three steps / critical path", ours / path, 1.05, detail)]


async def the_calls_alone(bare: ChatOpenAI) -> float:
    """One call, then three at once, and nothing kept of them."""
    started = time.perf_counter()
    await bare.ainvoke(PROMPT)
    await asyncio.gather(*(bare.ainvoke(PROMPT) for _ in range(3)))
    return time.perf_counter() - started


async def planned_and_researched(desk: Moot) -> float:
    """On the record of a turn of its own, as every question is."""
    parts, errand = desk.intake.parts, Errand(record=str(uuid4()))
    here = ExecutionContext(workspace=errand.workspace, session_id=errand.record, tally=errand.tally)
    with here.active():
        started = time.perf_counter()
        asked = IntakeState(messages=[{"role": "user", "content": QUESTION}], understanding=UNDERSTOOD)
        planned = await parts.planner.plan(asked, errand)
        assert planned.plan is not None, planned.reason
        task = Task(QUESTION, "en-US", errand, background="What the stub says of batteries.")
        found = await parts.team.work(planned.plan, task, on_step=lambda *_: None)
        took = time.perf_counter() - started
    assert [finding.status for finding in found] == ["completed"] * 3, found
    return took
