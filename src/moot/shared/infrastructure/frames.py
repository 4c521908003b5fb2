"""Results that are tables, as frames of polars or pandas. Neither is loaded before somebody asks for it."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from moot.shared.domain.errors import Unavailable
from moot.shared.domain.texts import SAY


class Table:
    """Whoever is one says what its columns and rows are."""

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        raise NotImplementedError

    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
        columns, rows = self.table()
        frame = import_module("polars").DataFrame
        return frame(rows, schema=list(columns), orient="row", infer_schema_length=None)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; raises `Unavailable` where pandas is not installed."""
        try:
            frame = import_module("pandas").DataFrame
        except ImportError as e:
            raise Unavailable(SAY("no_pandas"), code="PANDAS_MISSING") from e
        columns, rows = self.table()
        return frame.from_records(list(rows), columns=list(columns))
