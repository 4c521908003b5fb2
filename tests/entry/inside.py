"""The command line inside the test's own process: far quicker where a process of its own proves nothing more."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from typer.testing import CliRunner

from moot.cli import app
from tests.entry.test_cli import environment

Run = Callable[..., Awaitable[CompletedProcess[str]]]


def inside(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs beside the test, whose servers have to answer meanwhile. The log is left out: it belongs to a process."""
    monkeypatch.setattr("moot.cli.command.configure_logging", lambda level, file: None)

    async def run(*arguments: str, typed: str = "", **more: str) -> CompletedProcess[str]:
        wanted = environment(home, **more)
        gone = dict.fromkeys(os.environ.keys() - wanted.keys())
        env = {**gone, **wanted}
        seen = await asyncio.to_thread(CliRunner().invoke, app, arguments, input=typed, env=env)
        logging.getLogger("dbos").handlers.clear()  # they write to what the command wrote to, which is closed
        return CompletedProcess(arguments, seen.exit_code, seen.stdout, seen.stderr)

    return run
