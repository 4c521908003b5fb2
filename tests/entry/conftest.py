from collections.abc import Iterator

import pytest

from tests.entry.forked import Forge


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    """Starts with the first test that needs it: to import everything takes as long as a dozen commands."""
    forge = Forge()
    yield forge
    forge.close()
