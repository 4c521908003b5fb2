"""What every chaos test has in common: a question, a model with some latency, and a desk that asks it."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from moot.modules.market_data.domain.facts import COMPANIES, DATASETS
from moot.modules.market_data.infrastructure.demo import provider
from moot.shared.domain.clock import SystemClock
from moot.shared.infrastructure.settings import Settings
from tests.conftest import BACKENDS
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import LLMServer, Say

SYMBOL = "900001.DEMO"
AS_OF = "2026-06-30"
QUESTION: dict[str, Any] = {"symbol": SYMBOL, "as_of": AS_OF, "locale": "en-US"}
NODES = {
    "technical_analyst",
    "financial_auditor",
    "valuation_modeler",
    "macro_intelligence",
    "catalyst_detective",
    "debate",
    "judge",
}
CALLS = 9
"""Five experts, bull, bear, resolution and verdict: each asks the model once."""
LATENCY = 0.02
A_RUN = 0.5
"""Seconds that a session takes in a worker, or a little less: a moment to kill it is drawn from them."""
KILLS = int(os.environ.get("MOOT_TEST_KILLS", "4"))
"""How often something is killed or stopped at random; `make chaos` wants it much more often."""
IN_FULL = KILLS >= 100


def here_and_there(cases: Iterable[str]) -> list[tuple[str, str]]:
    """Each on one database, by turns; on both when there is time."""
    return [
        (case, backend)
        for turn, case in enumerate(cases)
        for place, backend in enumerate(BACKENDS)
        if IN_FULL or place == turn % len(BACKENDS)
    ]


def write_history() -> None:
    """That of the demo market, which takes longer than a run: all desks of a process look at the same one."""
    world = provider.DemoMarket(1, SystemClock())._all()
    for dataset in DATASETS.values():
        if dataset is not COMPANIES:
            list(world.all_of(dataset, SYMBOL).between(*provider.WHOLE))


def careful_after(seconds: float = LATENCY) -> Callable[[dict[str, Any]], Say]:
    return lambda body: replace(careful(body), delay=seconds)


def settings_of(home: Path, server: LLMServer, database_url: str = "", **more: Any) -> Settings:
    return Settings(
        home=home,
        database_url=database_url,
        llm_base_url=server.url,
        llm_model="careful-1",
        llm_concurrency=16,
        log_level="error",
        **more,
    )
