"""A process that asks a question and says where it stands; it is there to be killed."""

import asyncio
import json
import sys
from typing import Any

from moot.desk import Moot
from moot.modules.judge.application.judge_service import JudgeService
from moot.shared.infrastructure.settings import Settings


def never_ruled_on(symbol: str) -> None:
    """The judge takes for ever over one company."""
    at_once = JudgeService.run

    async def ruling(self: JudgeService, judge_input: Any) -> Any:
        if judge_input.symbol == symbol:
            await asyncio.Event().wait()
        return await at_once(self, judge_input)

    JudgeService.run = ruling  # type: ignore[method-assign]


def run(order: dict[str, Any]) -> None:
    asyncio.run(_ask(order))


async def _ask(order: dict[str, Any]) -> None:
    if order["hangs_on"]:
        never_ruled_on(order["hangs_on"])
    async with Moot(Settings(**order["settings"])) as desk:
        asked = await desk.ask(order["question"], accept_plan=order["accept_plan"])
        sys.stdout.write(json.dumps({"id": str(asked.id), "status": asked.status}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
