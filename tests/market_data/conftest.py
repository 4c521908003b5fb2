import asyncio

import pytest

from tests.market_data.demo import Snapshot, demo_market, snapshot


@pytest.fixture(scope="session")
def demo() -> Snapshot:
    """The demo market of seed 1, read once."""
    return asyncio.run(snapshot(demo_market()))
