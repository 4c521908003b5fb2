"""Facts as rows of a table and back; columns follow from a model's annotations: a shape is declared once."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import polars as pl
from pydantic import AwareDatetime, BaseModel, TypeAdapter

SCALARS: dict[Any, pl.DataType] = {
    AwareDatetime: pl.Datetime("us", "UTC"),
    date: pl.Date(),
    float: pl.Float64(),
    int: pl.Int64(),
    bool: pl.Boolean(),
    str: pl.String(),
}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

M = TypeVar("M", bound=BaseModel)


@cache
def schema_of(model: type[BaseModel]) -> pl.Schema:
    return pl.Schema({name: _type_of(field.annotation) for name, field in model.model_fields.items()})


def frame_of(model: type[BaseModel], facts: Iterable[BaseModel]) -> pl.DataFrame:
    """Times of any zone become UTC."""
    rows = []
    for fact in facts:
        if not isinstance(fact, model):
            raise TypeError(f"{type(fact).__name__} is not a {model.__name__}")
        rows.append(fact.model_dump())
    return pl.DataFrame(rows, schema=schema_of(model))


def facts_of(model: type[M], frame: pl.DataFrame) -> list[M]:
    """The facts that `frame_of` was given. They were checked when they were stored; flat ones are not again."""
    if any(dtype.is_nested() for dtype in frame.dtypes):  # by way of JSON: it makes the fewest objects
        whole = frame.with_columns(pl.col(pl.List).fill_null([]))
        return TypeAdapter(list[model]).validate_json(whole.write_json())  # type: ignore[valid-type]
    names, columns = frame.columns, [_values(column) for column in frame.get_columns()]
    fields = set(names)
    return [_restore(model, dict(zip(names, row, strict=True)), fields) for row in zip(*columns, strict=True)]


def _values(column: pl.Series) -> list[Any]:
    if column.dtype != SCALARS[AwareDatetime]:
        return column.to_list()
    return list(map(_moment, column.to_physical().to_list()))


@lru_cache(maxsize=50_000)
def _moment(microseconds: int | None) -> datetime | None:
    """Trading days begin and end at the same moments for every symbol, so most have been worked out before."""
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def _restore(model: type[M], row: dict[str, Any], fields: set[str]) -> M:
    """What `model_construct` does, without its look at every field: a year of bars takes a third of the time."""
    fact = object.__new__(model)
    keep = object.__setattr__  # the model is frozen
    keep(fact, "__dict__", row)
    keep(fact, "__pydantic_fields_set__", fields)
    keep(fact, "__pydantic_extra__", None)
    keep(fact, "__pydantic_private__", None)
    return fact


def _type_of(annotation: Any) -> pl.DataType:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _type_of(next(arg for arg in args if arg is not NoneType))
    if origin is Annotated:
        return _type_of(args[0])
    if origin is Literal:
        return _type_of(type(args[0]))
    if origin is tuple:
        return pl.List(_type_of(args[0]))
    if annotation in SCALARS:
        return SCALARS[annotation]
    return pl.Struct(schema_of(annotation))
