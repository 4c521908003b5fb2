"""`moot research`: ask the desk, watch it work, show what it found."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from moot.cli.outcome import command, log_file
from moot.cli.progress import progress_for
from moot.cli.texts import environment_locale
from moot.cli.verdict_view import show_result
from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.research_run import Watch
from moot.shared.infrastructure.settings import Settings


class Question(NamedTuple):
    """What was typed. The desk, not the command line, decides whether it makes sense."""

    symbol: str
    experts: str
    as_of: str | None
    skip_debate: bool
    limit: str | None
    locale: str | None

    def arguments(self) -> dict[str, Any]:
        limit = int(self.limit) if self.limit and self.limit.lstrip("-").isdecimal() else self.limit
        return {
            "symbol": self.symbol,
            "experts": [name.strip() for name in self.experts.split(",") if name.strip()],
            "options": {} if limit is None else {"financial_auditor": {"limit": limit}},
            "as_of": self.as_of,
            "skip_debate": self.skip_debate,
            "locale": self.locale or environment_locale(),
        }


def run_research(question: Question, *, as_json: bool) -> None:
    with command(question.locale, as_json=as_json) as settings:
        asked = question.arguments()
        console = Console()
        with progress_for(console, asked, quiet=as_json) as watch:
            result, report = asyncio.run(_ask(settings, asked, watch))
        if as_json:
            body = result.model_dump(mode="json")
            sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")
        else:
            show_result(console, result, report, log_file(settings))


async def _ask(settings: Settings, asked: dict[str, Any], watch: Watch | None) -> tuple[ResearchResult, Path]:
    async with Moot(settings) as desk:
        result = await desk.research(**asked, trigger_source="cli", watch=watch)
        return result, desk.write_report(result)
