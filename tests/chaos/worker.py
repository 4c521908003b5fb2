"""A process that runs one session, and may be told to die on the way. What it says are lines of JSON."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import aiohttp  # noqa: F401 - imported here, once for all workers: it takes a second
import structlog

from moot.desk import Moot
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.settings import Settings
from tests.chaos.crash_points import POINTS, die_at
from tests.chaos.desks import QUESTION, write_history


def warm_up() -> None:
    """What every process does the first time it runs a session, done once for all that are forked from this one."""
    quiet()
    write_history()
    with TemporaryDirectory() as home:
        asyncio.run(_ask_rules(Path(home)))
    structlog.reset_defaults()


def quiet() -> None:
    """What breaks here is meant to; thousands of tracebacks say no more than one assertion, and take longer."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


async def _ask_rules(home: Path) -> None:
    async with Moot(Settings(home=home)) as desk:
        await desk.research(**QUESTION)


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def run(order: dict[str, Any]) -> None:
    """`point` is where to die, or empty; for the rest see `_work`."""
    quiet()
    if order["point"]:
        die_at(POINTS[order["point"]])
    try:
        asyncio.run(_work(Settings(**order["settings"]), order["session_id"], order["in_background"]))
    except AppError as e:
        say(raised=e.code)


async def _work(settings: Settings, session_id: str | None, in_background: int) -> None:
    """Start so many sessions and wait for ever, or resume that one, or else ask and wait for the answer."""
    async with Moot(settings) as desk:
        say(ready=True)
        if in_background:
            started = [str((await desk.start(**QUESTION)).id) for _ in range(in_background)]
            say(started=started)
            await asyncio.Event().wait()
        result = await (desk.resume(UUID(session_id)) if session_id else desk.research(**QUESTION))
        say(session_id=result.session_id)
