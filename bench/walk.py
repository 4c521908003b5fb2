"""What the experts are worth on real tables: `python -m bench.walk FOLDER [PAGE [JSON]]` measures, and writes PAGE.

The tables are imported into an empty lake the way a user imports files; then `moot evaluate walk` goes through them.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from bench.real_data import AS_THEY_ARE, DAILY, bring_in, prepare


async def fill(home: Path, folder: Path) -> None:
    symbols = pl.read_csv(folder / DAILY, columns=["ts_code"])["ts_code"].unique().sort().to_list()
    with tempfile.TemporaryDirectory() as prepared:
        for choices in (
            *((folder / name,) for name in AS_THEY_ARE),
            *prepare(folder, Path(prepared), symbols),
        ):
            print(await bring_in(home, choices), file=sys.stderr)


def main(folder: str, page: str = "", observations: str = "") -> int:
    started = time.process_time()
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(fill(Path(home), Path(folder)))
        os.environ |= {"MOOT_HOME": home, "MOOT_PERSISTENCE": "off", "MOOT_LOCALE": "en-US"}
        from moot.cli import app

        written = [*(("--out", page) if page else ()), *(("--json", observations) if observations else ())]
        app(["evaluate", "walk", *written], standalone_mode=False)
    print(f"{time.process_time() - started:.0f} s CPU", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
