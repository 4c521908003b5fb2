"""SQL over the lake's files, for looking around: one SELECT, nothing outside the lake, nothing from the future."""

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from moot.modules.market_data.application.sql import ReadRows
from moot.modules.market_data.domain.facts import COMPANIES, DATASETS, Dataset
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure import lake
from moot.modules.market_data.infrastructure.sql_children import MOST_MEMORY, Child, ChildGone, Children, busy
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable

Rows = Mapping[Dataset[Any], Sequence[BaseModel]]


class LakeDatabase:
    """DuckDB over the lake's files, with rows from elsewhere beside them, in processes of its own."""

    def __init__(self, folder: Path, children: Children) -> None:
        self._folder, self._children = folder, children

    async def answer(
        self, sql: str, read: ReadRows, *, as_of: datetime, most: int, workspace: str
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows, one more than `most` when there are more. The wait for a turn counts as time."""
        began: float | None = None
        try:
            async with asyncio.timeout(self._children.seconds), self._children.lend(workspace) as child:
                began = time.monotonic()
                reply = await self._converse(child, sql, read, as_of, most)
                if reply.get("refused") == "database.too_big":
                    raise ChildGone  # what is left of its memory is in pieces
        except TimeoutError as e:
            raise self._explain_delay(began) from e
        except ChildGone as e:
            if self._children.closed:
                raise Unavailable(SAY("database.closing"), code="SQL_UNAVAILABLE") from e
            raise _refuse("database.too_big", megabytes=MOST_MEMORY) from e
        if "refused" in reply:
            raise await asyncio.to_thread(self._explain, **reply)
        return reply["columns"], reply["rows"]

    async def _converse(
        self, child: Child, sql: str, read: ReadRows, as_of: datetime, most: int
    ) -> dict[str, Any]:
        reply = await child.ask({"sql": sql})
        if "refused" in reply:
            return reply
        added = {DATASETS[name]: await read(DATASETS[name]) for name in reply["tables"] if name in DATASETS}
        with tempfile.TemporaryDirectory() as elsewhere:
            return await child.ask(
                {
                    "views": await asyncio.to_thread(self._views, added, Path(elsewhere)),
                    "folder": str(self._folder.resolve()),
                    "as_of": as_of.astimezone(UTC).isoformat(),
                    "most": most,
                }
            )

    def _views(self, added: Rows, elsewhere: Path) -> dict[str, dict[str, str]]:
        """The files that each table is made of. Of companies, which tell no moment, `added` has all."""
        views = {}
        for dataset, facts in added.items():
            file = elsewhere / f"{dataset}{lake.SUFFIX}"
            lake.frame_of(dataset.model, facts).write_parquet(file)
            views[dataset.name] = {"added": str(file)}
            files = [] if dataset is COMPANIES else lake.files_of(self._folder.resolve(), dataset)
            for path in files:  # in a read of them all, one without the right columns would go unnoticed
                lake.coverage_of(path)
            if files:
                views[dataset.name]["kept"] = str(files[0].parent / f"*{lake.SUFFIX}")
        return views

    def _explain(self, refused: str, *, attached: bool = True, **values: Any) -> AppError:
        if not attached:
            for dataset in DATASETS.values():
                for path in lake.files_of(self._folder, dataset):  # raises for the one that is to blame
                    lake.frame_in(path, dataset)
        return _refuse(refused, **values)

    def _explain_delay(self, began: float | None) -> AppError:
        """A statement that has waited more than it has run may do well another time."""
        seconds = self._children.seconds
        if began is None or time.monotonic() - began < seconds / 2:
            return busy(seconds)
        return _refuse("database.too_slow", seconds=seconds)


def _refuse(key: str, **values: Any) -> InvalidInput:
    return InvalidInput(SAY(key, tables=list(DATASETS), **values), code="SQL_REFUSED", field="query")
