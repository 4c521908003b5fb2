"""What the OpenAPI document says is what is answered, and nothing that anybody sends is a defect: by Schemathesis."""

import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from moot.modules.access import domain
from moot.shared.infrastructure.settings import Settings
from tests.entry.serving import serving

EXAMPLES = os.environ.get("MOOT_TEST_EXAMPLES")
CONFIG = Path(__file__).with_name("schemathesis.toml")
MOST = 30
"""Of each of nearly ninety routes."""
ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(EXAMPLES is None, reason="takes minutes: make fuzz")
async def test_nothing_sent_is_a_defect_and_every_answer_is_as_described(tmp_path, monkeypatch):
    for limit in ("REQUESTS_A_MINUTE", "ATTEMPTS_A_MINUTE"):
        monkeypatch.setattr(domain, limit, 10**9)
    async with serving(Settings(home=tmp_path, log_level="error"), keyless=False) as served:
        key = (await served.desk.access.create("fuzz", domain.SCOPES, "default")).secret
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"]
        command += [f"{served.http.base_url}/openapi.json", "-H", f"Authorization: Bearer {key}"]
        command += ["--max-examples", str(min(int(EXAMPLES or 0), MOST))]
        started = partial(subprocess.run, command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
        told = await asyncio.to_thread(started, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout
