"""DuckDB behind the `database` tool: the lake's files with rows from elsewhere beside them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from moot.modules.market_data.domain.datasets import SHAPES, Dataset
from moot.modules.market_data.infrastructure.lake_frames import frame_of
from moot.modules.market_data.infrastructure.lake_sql import fetched, named, opened

MOST_SECONDS = 10.0


class LakeDatabase:
    def __init__(self, folder: Path, most_seconds: float = MOST_SECONDS) -> None:
        self._folder = folder
        self._most_seconds = most_seconds

    def named(self, sql: str) -> set[Dataset]:
        return named(sql)

    def answer(
        self, sql: str, added: Mapping[Dataset, Sequence[BaseModel]], *, as_of: datetime, most: int
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        frames = {dataset: frame_of(SHAPES[dataset].model, facts) for dataset, facts in added.items()}
        with opened(self._folder, sql, as_of, added=frames, seconds=self._most_seconds) as connection:
            return fetched(connection, sql, most)
