"""Turns pydantic's findings into one sentence per problem that names the field and what is allowed there."""

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError, to_json

from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message, nearest, shorten
from moot.shared.domain.texts import SAY

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], raw: Any) -> M:
    """`raw` as a `model`, or an `InvalidInput` that lists everything wrong with it."""
    try:
        return model.model_validate(raw)
    except ValidationError as e:
        raise invalid_input(e.errors()) from None


class Strict(BaseModel, frozen=True, extra="forbid"):
    """Frozen, and an unknown field is refused by name, with those that exist."""

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_field(cls, raw: Any) -> Any:
        unknown = [name for name in raw if name not in cls.model_fields] if isinstance(raw, Mapping) else []
        if unknown:
            raise refuse("unknown_field", got=unknown, allowed=list(cls.model_fields))
        return raw


def refuse(kind: str, **context: Any) -> PydanticCustomError:
    """A finding of our own, for a validator to raise; `invalid.<kind>` in the catalogue is its text."""
    return PydanticCustomError(kind, "{kind}", {"kind": kind, **context})


def refuse_field(kind: str, field: str, got: Any, **context: Any) -> InvalidInput:
    """The same kind of answer for a check that needs more than the input itself."""
    return invalid_input([{"type": kind, "loc": (field,), "msg": kind, "input": got, "ctx": context}])


def invalid_input(errors: Sequence[ErrorDetails]) -> InvalidInput:
    problems = [_problem(error) for error in errors]
    message = reduce(lambda said, more: SAY("and_also", said=said, more=more), [_say(p) for p in problems])
    return InvalidInput(message, errors=problems)


def _problem(error: ErrorDetails) -> dict[str, Any]:
    context = error.get("ctx", {})
    problem: dict[str, Any] = {"field": _field(error["loc"]), "problem": error["type"]}
    if error["type"] not in {"missing", "json_invalid"}:
        problem["got"] = context["got"] if "got" in context else _quote(error)
    if allowed := _list_allowed(context):
        problem["allowed"] = allowed
    return problem | {"hint": str(context.get("error") or error["msg"])}


def _quote(error: ErrorDetails) -> str:
    """Of what may be, or hold, a secret only what kind of thing it is."""
    hidden = not error["loc"] or error["loc"][-1] in MAY_HOLD_A_SECRET
    return type(error["input"]).__name__ if hidden else quote(error["input"])


def quote(value: Any) -> str:
    """A value as it is written in JSON, a text in single quotes; long ones are cut."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return repr(shorten(value, LONGEST))
    return shorten(to_json(value, fallback=str).decode(), LONGEST)


def _field(path: Sequence[int | str]) -> str:
    """FastAPI puts the part of the request in front; further on, or alone, the same word is a field's own name."""
    inside = path[1:] if path and path[0] in PARTS_OF_A_REQUEST else ()
    return ".".join(map(str, inside or path)) or "body"


def _list_allowed(context: Mapping[str, Any]) -> list[str]:
    bounds = [f"{sign} {context[name]}" for name, sign in BOUNDS.items() if name in context]
    quoted = re.findall(r"'([^']*)'", str(context.get("expected", "")))
    return list(context.get("allowed", [])) or bounds or quoted


LONGEST = 80
PARTS_OF_A_REQUEST = {"body", "query", "path", "header"}
MAY_HOLD_A_SECRET = {"api_key", "base_url", "proxy", "body"}
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "max_length": "length <="}


def _say(problem: Mapping[str, Any]) -> Message:
    key = f"invalid.{problem['problem']}"
    said = {"got": "", **problem}
    text = SAY(key if key in SAY.texts["en-US"] else "invalid.other", **said)
    if "allowed" not in problem:
        return text
    got = " ".join(said["got"]) if isinstance(said["got"], list) else str(said["got"]).strip("'")
    near = nearest(got, problem["allowed"])
    key = "with_nearest" if near else "with_allowed"
    return SAY(key, problem=text, allowed=problem["allowed"], near=near)
