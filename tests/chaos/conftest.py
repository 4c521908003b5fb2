"""Fixtures of the chaos tests."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.shared.infrastructure.database import Database
from tests.chaos.desks import CALLS, QUESTION, careful_after, settings_of
from tests.chaos.nursery import Nursery
from tests.chaos.outages import Outages
from tests.chaos.scene import Scene
from tests.chaos.worker import quiet
from tests.entry.forked import Forge
from tests.fakes.llm_server import LLMServer, running_llm_server
from tests.postgres import Postgres


@pytest.fixture(autouse=True)
def quiet_here_too(logging_as_it_was: None) -> None:
    quiet()


@pytest.fixture
def nursery(forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    nursery = Nursery(forge, tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture
def scene(home: Path, database: Database, llm_server: LLMServer, nursery: Nursery) -> Scene:
    return Scene(home, database, llm_server, nursery)


@pytest.fixture
def outages(postgres: Postgres) -> Outages:
    return Outages(postgres)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> ResearchResult:
    """What the question is answered with when nothing goes wrong."""
    return asyncio.run(_undisturbed(tmp_path_factory.mktemp("undisturbed")))


async def _undisturbed(home: Path) -> ResearchResult:
    async with running_llm_server() as server, Moot(settings_of(home, server)) as desk:
        server.default = careful_after()
        result = await desk.research(**QUESTION)
        assert len(server.requests) == CALLS
        return result
