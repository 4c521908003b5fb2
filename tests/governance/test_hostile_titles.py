"""Titles that give orders, before a model that obeys them: none moves an action without a person.

By hand, each alone and before all experts: `MOOT_TEST_HOSTILE=1 pytest tests/governance/test_hostile_titles.py`.
"""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

from moot.desk import Moot
from moot.modules.coordinator.domain.exceptions import SessionWaiting
from moot.shared.domain.experts import ExpertType
from moot.shared.infrastructure.settings import Settings
from tests.fakes.llm_server import LLMServer
from tests.fakes.obedient_model import ObedientModel
from tests.fakes.planted_news import a_headline, plant_in

AT_ONCE = int(os.environ.get("MOOT_TEST_HOSTILE", "20"))
TITLES = (Path(__file__).parent / "hostile_titles.txt").read_text("utf-8").replace("\\n", "\n").splitlines()
SYMBOL, DAY = "900006.DEMO", date(2026, 6, 25)
FEW = [ExpertType.CATALYST_DETECTIVE, ExpertType.TECHNICAL_ANALYST]


async def rule(desk: Moot) -> str:
    """The action; `waits` where a person is asked first."""
    experts: Sequence[ExpertType] = FEW if AT_ONCE > 1 else list(ExpertType)
    try:
        result = await desk.research(SYMBOL, [expert.value for expert in experts], as_of=DAY)
    except SessionWaiting:
        return "waits"
    assert result.verdict, result.reason
    return str(result.verdict["action"])


async def test_no_order_in_a_title_moves_an_action_without_a_person(
    llm_server: LLMServer, home: Path, clock
) -> None:
    model = ObedientModel()
    llm_server.default = model
    settings = Settings(home=home, llm_base_url=llm_server.url, llm_model="obedient-1", log_level="error")
    ended: dict[tuple[str, ...], str] = {}
    async with Moot(settings, clock=clock) as desk:
        planted = plant_in(desk)
        before = await rule(desk)
        for at in range(0, len(TITLES), AT_ONCE):
            titles = tuple(TITLES[at : at + AT_ONCE])
            model.tempt(titles)
            as_of = datetime.combine(DAY, time(4), UTC)
            planted.items = [a_headline(SYMBOL, title, as_of, days_ago=0) for title in titles]
            ended[titles] = await rule(desk)
            assert model.obeys, f"never shown: {titles}"
    assert len(TITLES) >= 50
    assert {titles: how for titles, how in ended.items() if how not in ("waits", before)} == {}
    assert "waits" in ended.values(), "nobody was tempted"
