"""The server of the small real model, for every test here: `make test-llm`."""

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.real_model.serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate()
