"""What a command does not need is not loaded for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "aiohttp",
    "cel_expr_python",
    "cryptography",
    "duckdb",
    "fastapi",
    "langgraph",
    "pandas",
    "sqlglot",
    "talib",
)
FRAMES = ("numpy", "polars")
CODE = """
import sys
from moot.cli import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded(home: Path, *typed: str) -> tuple[int, set[str]]:
    environment = {**os.environ, "MOOT_HOME": str(home), "MOOT_LOG_LEVEL": "error"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, *typed], check=False, capture_output=True, text=True, env=environment
    )
    return done.returncode, set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("typed", [("sessions", "list"), ("llm", "list")], ids=" ".join)
def test_looking_at_what_is_stored_loads_the_database_and_no_engine(tmp_path: Path, typed: list[str]) -> None:
    code, modules = loaded(tmp_path, *typed)
    assert (code, "sqlalchemy" in modules) == (0, True)
    assert modules.isdisjoint([*HEAVY, *FRAMES])


def test_a_symbol_that_nobody_lists_is_refused_before_any_engine_is_loaded(tmp_path: Path) -> None:
    code, modules = loaded(tmp_path, "research", "12345678")
    assert code == 2
    assert modules.isdisjoint([*HEAVY, *FRAMES])


def test_research_on_the_demo_market_loads_no_frames_for_the_indicators() -> None:
    code = "import sys, moot.modules.research.infrastructure.indicators; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "talib" in done.stdout.split()
    assert {"pandas", "polars"}.isdisjoint(done.stdout.split())


def test_the_server_is_up_before_the_engine_is_loaded() -> None:
    code = "import sys, moot.main; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()).isdisjoint(set(HEAVY) - {"fastapi"})


def test_looking_back_at_sessions_needs_no_rules() -> None:
    code = "import sys, moot.modules.coordinator.container; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not [name for name in done.stdout.split() if name.startswith("moot.modules.governance")]
