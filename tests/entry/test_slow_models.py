"""Models that take their time, as local ones do: whole sessions end, with nothing set. The time is moved by hand."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.infrastructure.settings import Settings
from tests.fakes.careful_model import careful
from tests.fakes.clock import leap
from tests.fakes.llm_server import LLMServer, Say

AT_THE_MODEL = {5, 7, 8, 9}
"""How many have asked when nobody else is about to: the experts, bull and bear, the resolution, the verdict."""
PUBLIC = {"llm_timeout": 120, "llm_concurrency": 16}
"""As a model elsewhere has them by default; that of the tests is always near by."""
ONE_SLOT: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    configure_logging("error")
    yield
    structlog.reset_defaults()


def taking(seconds: float) -> Any:
    return lambda body: replace(careful(body), delay=seconds)


async def research(server: LLMServer, home: Path, seconds: float, **given: Any) -> ResearchResult:
    """By a model that takes so long for every answer."""
    server.default = taking(seconds)
    settings = Settings(home=home, llm_base_url=server.url, llm_model="careful-1", log_level="error", **given)
    async with Moot(settings) as desk:
        asking = asyncio.create_task(desk.research("900001.DEMO", as_of="2026-06-30", locale="en-US"))
        while not asking.done():
            await asyncio.sleep(0.02)
            entrances = desk.llm_platform.llm_service()._turns._entrances.values()
            doors = [door for each in entrances for door in (*each._first.values(), *each._places["batch"])]
            waiting = sum(len(door._waiters or ()) for door in doors)
            if server.in_flight and len(server.requests) + waiting in AT_THE_MODEL:
                leap(seconds)
        return await asking


@pytest.mark.parametrize(("seconds", "limits"), [(35, PUBLIC), (35, ONE_SLOT), (400, ONE_SLOT)])
async def test_a_session_with_a_slow_model_ends_by_default(llm_server, home, seconds, limits):
    result = await research(llm_server, home, seconds, **limits)
    assert (result.overall_status, result.verdict_status) == ("completed", "judged")
    assert llm_server.most_in_flight == (5 if limits else 1)


async def test_a_limit_that_was_set_holds(llm_server, home):
    result = await research(llm_server, home, 35, **PUBLIC, node_timeout=60)
    assert (result.overall_status, result.verdict_status) == ("completed", "failed")
    assert result.reason == (
        "Debate failed: Debate gave no answer within 60 s. To give it more time: MOOT_NODE_TIMEOUT."
    )


async def test_a_model_that_falls_silent_is_given_up_by_name(llm_server, home):
    def silent_judge(body: dict[str, Any]) -> Say:
        asked = body["response_format"]["json_schema"]["name"]
        return replace(careful(body), delay=10_000 if asked == "Ruling" else 35)

    llm_server.default = silent_judge
    settings = Settings(home=home, llm_base_url=llm_server.url, llm_model="careful-1", **PUBLIC)
    async with Moot(settings) as desk:
        asking = asyncio.create_task(desk.research("900001.DEMO", as_of="2026-06-30", locale="en-US"))
        while not asking.done():
            await asyncio.sleep(0.02)
            if llm_server.in_flight and len(llm_server.requests) in AT_THE_MODEL:
                leap(120 if len(llm_server.requests) == max(AT_THE_MODEL) else 35)
        result = await asking
    assert (result.verdict_status, result.reason) == (
        "failed",
        "Judge failed: The model default gave no answer: careful-1 timed out: no answer within 120 seconds. "
        "To give it more time: MOOT_LLM_TIMEOUT.",
    )
