"""`moot research`: ask the desk, watch it work, show what it found."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from moot.cli.money import amount
from moot.cli.on_desk import report_of
from moot.cli.outcome import command, log_file
from moot.cli.progress import known_locale, progress_for
from moot.cli.texts import SAY, environment_locale
from moot.cli.verdict_view import show_result
from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, ResearchResult
from moot.modules.coordinator.application.run import Watch
from moot.modules.llm_platform.application.spending import Estimate
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import Message
from moot.shared.infrastructure.settings import Settings

AFTER_THE_EXPERTS = [["bull_advocate", "bear_advocate"], ["resolution"], ["verdict"]]
"""Who speaks next, and who at the same time, unless the debate is skipped."""


class Question(NamedTuple):
    """What was typed. The desk, not the command line, decides whether it makes sense."""

    symbol: str
    experts: str
    as_of: str | None
    skip_debate: bool
    limit: str | None
    locale: str | None
    max_cost: str | None = None

    def arguments(self) -> dict[str, Any]:
        limit = int(self.limit) if self.limit and self.limit.lstrip("-").isdecimal() else self.limit
        return {
            "symbol": self.symbol,
            "experts": [name.strip() for name in self.experts.split(",") if name.strip()],
            "options": {} if limit is None else {"financial_auditor": {"limit": limit}},
            "as_of": self.as_of,
            "skip_debate": self.skip_debate,
            "locale": self.locale or environment_locale(),
            "max_cost": _number(self.max_cost),
        }


def run_research(question: Question, *, as_json: bool) -> None:
    with command(question.locale, as_json=as_json) as settings:
        asked = question.arguments()
        console = Console()
        announce = Console(stderr=True) if as_json else console
        with progress_for(console, asked, quiet=as_json) as watch:
            result, report = asyncio.run(_ask(settings, asked, announce, watch))
        if as_json:
            body = result.model_dump(mode="json")
            sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")
        else:
            show_result(console, result, report, log_file(settings))


async def _ask(
    settings: Settings, asked: dict[str, Any], announce: Console, watch: Watch | None
) -> tuple[ResearchResult, Path | OSError]:
    async with Moot(settings, trigger_source="cli") as desk:
        estimate = await estimate_of(desk, asked["experts"], skip_debate=asked["skip_debate"])
        if estimate is not None:
            text = _announced(estimate).in_locale(known_locale(asked["locale"]))
            announce.print(text, soft_wrap=True, markup=False, highlight=False)
            _refuse_too_dear(estimate, asked["max_cost"])
        result = await desk.research(**asked, watch=watch)
        return result, report_of(desk, result)


async def estimate_of(desk: Moot, experts: Sequence[str], *, skip_debate: bool) -> Estimate | None:
    """What the models are likely to take; None when no model is asked, or nobody can tell."""
    if not desk.llm_platform.engine_choice().by_model:
        return None
    asked = [name for name in experts if name in EXPERTS]
    stages = [asked] if skip_debate else [asked, *AFTER_THE_EXPERTS]
    try:
        model = desk.llm_platform.llm_service().candidates()[0]
        agents = [agent for stage in stages for agent in stage]
        return await desk.llm_platform.usage_service().estimate(agents, model, stages)
    except Unavailable:  # the run itself will say what is missing, or do without
        return None


def _announced(estimate: Estimate) -> Message:
    known = estimate.cost is not None
    return SAY(
        "research.estimate",
        calls=estimate.calls,
        tokens=estimate.tokens,
        cost=f"{amount(estimate.cost or 0.0)} {estimate.currency}"
        if known
        else SAY("research.price_unknown"),
        seconds=round(estimate.seconds),
        basis=SAY("research.measured" if estimate.measured else "research.typical"),
    )


def _refuse_too_dear(estimate: Estimate, limit: Any) -> None:
    """A limit that is no number is refused by the desk, a model without a price by the budget."""
    if estimate.cost is not None and isinstance(limit, float) and estimate.cost > limit > 0:
        said = SAY(
            "research.too_dear", cost=amount(estimate.cost), limit=f"{limit:g}", currency=estimate.currency
        )
        raise InvalidInput(said, code="ESTIMATE_EXCEEDS_MAX_COST", estimate=estimate.cost, max_cost=limit)


def _number(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
