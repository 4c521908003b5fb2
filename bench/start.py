"""What a command costs before it does its work: CPU against that of importing the libraries it cannot do without."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.line import Line

ROUNDS = 3
STORED = "import asyncio, sqlalchemy.ext.asyncio, pydantic_settings, rich.console, structlog, typer"
WHOLE = f"{STORED}, langgraph.graph, numpy"
COMMANDS = {
    "moot sessions list": (STORED, ("sessions", "list"), 2.5),
    "moot llm list": (STORED, ("llm", "list"), 2.5),
    "moot research 12345678": (STORED, ("research", "12345678"), 3.5),
    "moot research 900001.DEMO": (WHOLE, ("research", "900001.DEMO"), 2.5),
}
"""The libraries, what is typed, and how many times their CPU it may take."""


def lines() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as home:
        spent(home, *MOOT, "sessions", "list")  # makes the database
        for name, (libraries, typed, budget) in COMMANDS.items():
            ours = min(spent(home, *MOOT, *typed) for _ in range(ROUNDS))
            theirs = min(spent(home, libraries) for _ in range(ROUNDS))
            detail = f"{ours:.2f} s against {theirs:.2f} s of CPU"
            yield Line(f"{name} / its libraries", ours / theirs, budget, detail)


MOOT = ("from moot.cli import main; main()",)


def spent(home: str, *code_and_arguments: str) -> float:
    """CPU seconds of a process, however it ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {
        **os.environ,
        "MOOT_HOME": home,
        "PYTHONDONTWRITEBYTECODE": "",
    }  # compiled once, as for its users
    subprocess.run(
        [sys.executable, "-c", *code_and_arguments], check=False, capture_output=True, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
