import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from moot.modules.market_data.infrastructure.lake_sql import Children
from tests.market_data.demo import Snapshot, demo_market, snapshot


@pytest.fixture(scope="session")
def demo() -> Snapshot:
    """The demo market of seed 1, read once."""
    return asyncio.run(snapshot(demo_market()))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def children() -> AsyncIterator[Children]:
    """Processes that run SQL, for all tests of a module: starting one takes a while."""
    children = Children(seconds=120.0)
    yield children
    await children.close()
