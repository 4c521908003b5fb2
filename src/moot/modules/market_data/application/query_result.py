"""What a query gives, as Python has it and as JSON can say it."""

import math
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, field_serializer


class QueryResult(BaseModel):
    """`sql` is what ran, and `notices` say why if it is not what was asked.

    `truncated`: there are more rows than are handed out. In JSON, days and moments are text, and NaN is null.
    """

    model_config = ConfigDict(frozen=True)

    sql: str
    as_of: AwareDatetime
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    took_ms: float
    notices: tuple[str, ...] = ()

    @field_serializer("rows", when_used="json")
    def _rows_in_json(self, rows: tuple[tuple[Any, ...], ...]) -> list[list[Any]]:
        return [[_in_json(value) for value in row] for row in rows]


def _in_json(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_in_json(member) for member in value]
    if isinstance(value, Mapping):
        return {str(name): _in_json(member) for name, member in value.items()}
    return str(value)
