"""The edge: rows from outside become facts here, or are refused by name. One bad row costs no good one."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from moot.modules.market_data.domain.provider import Batch, Refusal

M = TypeVar("M", bound=BaseModel)


def screened(model: type[M], rows: Iterable[Mapping[str, Any]], key: tuple[str, ...]) -> Batch[M]:
    """The rows as facts, in the order of their key; a row that breaks the model or repeats a key is refused."""
    facts: dict[tuple[Any, ...], M] = {}
    refused: list[Refusal] = []
    for row in rows:
        name = ", ".join(f"{part}={row.get(part)}" for part in key)
        try:
            fact = model.model_validate(row)
        except ValidationError as e:
            refused.append(Refusal(name, "; ".join(_why(error) for error in e.errors())))
            continue
        identity = tuple(getattr(fact, part) for part in key)
        if identity in facts:
            refused.append(Refusal(name, "a row with this key came before"))
            continue
        facts[identity] = fact
    ordered = sorted(facts.items(), key=lambda item: tuple(str(part) for part in item[0]))
    return Batch((fact for _, fact in ordered), refused)


def _why(error: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in error["loc"])
    return f"{field}: {error['msg']}" if field else str(error["msg"])
