"""A new field of the question is declared once, and goes with it everywhere: shown on a copy of the package."""

from pathlib import Path

from tests.walks import copy_with, read_walks, run

WALK = """
import asyncio, sys
from pathlib import Path
from uuid import UUID

import httpx
import moot
from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.domain.exceptions import KeyReused
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.infrastructure.settings import Settings

configure_logging("critical")
RESEARCH = "/api/v1/coordinator/research"
ASKED = {"symbol": "900001.DEMO", "experts": ["technical_analyst", "macro_intelligence"], "as_of": "2018-01-04"}


async def walk():
    async with Moot(Settings(home=Path(sys.argv[1]), log_level="error")) as desk:
        first = await desk.research(**ASKED, purpose="a review")
        parent = await desk.session(UUID(first.session_id))
        again = await desk.retry(UUID(first.session_id))
        child = await desk.session(UUID(again.session_id))
        print(parent.purpose, child.purpose, (await desk.verify(child.id)).intact)
        await desk.start(**ASKED, purpose="a review", idempotency_key="order")
        try:
            await desk.start(**ASKED, purpose="a sale", idempotency_key="order")
        except KeyReused:
            print("another question")
        app = create_app(desk)
        print("purpose" in app.openapi()["components"]["schemas"]["ResearchOrder"]["properties"])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            answer = (await client.post(RESEARCH, json={**ASKED, "purpose": "a sale"})).json()
            session = (await client.get(f"{RESEARCH}/sessions/{answer['session_id']}")).json()
        print(session["purpose"], moot.__file__)


asyncio.run(walk())
"""


def test_it_reaches_rest_python_the_row_the_retry_the_key_and_the_record(tmp_path: Path) -> None:
    package = copy_with(tmp_path, "A request field")
    told = run(package, tmp_path / "home", "-c", WALK, str(tmp_path / "home"))
    assert told.split("\n") == [
        "a review a review True",
        "another question",
        "True",
        f"a sale {package / 'moot/__init__.py'}",
        "",
    ]


def test_it_is_declared_in_at_most_four_files() -> None:
    edited = {edit["file"] for edit in read_walks()["A request field"].edits}
    assert len([name for name in edited if not name.endswith("zh-CN.toml")]) <= 4
