"""A process that stores bars without end: `versions` rewrites all days again and again, `days` adds one at a time."""

import io
import itertools
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import polars as pl

from moot.modules.market_data.domain.facts import BARS
from moot.modules.market_data.infrastructure.lake import Lake
from tests.fakes.market_data import SYMBOL, a_bar

FIRST = date(2010, 1, 1)
ROWS = 300
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


def on_a_slow_disk() -> None:
    """Half of a file, a pause, the other half: so that a kill mostly finds the writer in the middle."""
    write = pl.DataFrame.write_parquet

    def slowly(frame: pl.DataFrame, file: IO[bytes], **options: Any) -> None:
        whole = io.BytesIO()
        write(frame, whole, **options)
        half = len(whole.getvalue()) // 2
        file.write(whole.getvalue()[:half])
        file.flush()
        time.sleep(0.02)
        file.write(whole.getvalue()[half:])

    pl.DataFrame.write_parquet = slowly  # type: ignore[method-assign, assignment]


def versions(lake: Lake, first: int) -> Iterator[int]:
    """In version n every price is n and the moment of storing n seconds after the beginning."""
    for n in itertools.count(first):
        bars = [a_bar(FIRST + timedelta(days=day), price=float(n)) for day in range(ROWS)]
        lake.store(BARS, SYMBOL, bars, covered=None, at=BEGAN + timedelta(seconds=n))
        yield n


def days(lake: Lake, first: int, count: int) -> None:
    for n in range(first, first + count):
        day = FIRST + timedelta(days=n)
        lake.store(BARS, SYMBOL, [a_bar(day)], covered=(day, day), at=BEGAN)


def main(folder: str, what: str, *numbers: str) -> None:
    lake = Lake(Path(folder))
    if what == "days":
        days(lake, *map(int, numbers))
        return
    on_a_slow_disk()
    for n in versions(lake, *map(int, numbers)):
        sys.stdout.write(f"{n}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
