"""A desk that decides nothing loads neither CEL nor the SQL parser, and reads no rules."""

import subprocess
import sys
from pathlib import Path

OPENS_A_DESK = """
import asyncio, sys
from pathlib import Path
from moot.desk import Moot
from moot.modules.governance import container
from moot.shared.infrastructure.settings import Settings

async def main():
    container.FOLDER = Path("nowhere")
    async with Moot(Settings(home=Path(sys.argv[1]), log_level="error")) as desk:
        print((await desk.sessions()).total, [name for name in ("cel_expr_python", "sqlglot") if name in sys.modules])

asyncio.run(main())
"""


def test_listing_sessions_needs_no_rules(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", OPENS_A_DESK, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (told.stdout, told.stderr) == ("0 []\n", "")
