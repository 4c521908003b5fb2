from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from tests.access.desk import open_app
from tests.fakes.clock import FixedClock, TickingClock


@pytest.fixture
async def app(home: Path, clock: FixedClock) -> AsyncIterator[FastAPI]:
    async with open_app(home, TickingClock(clock.now()), open=False) as app:
        yield app
