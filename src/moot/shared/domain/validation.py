"""Turns pydantic's findings into one sentence per problem that names the field and what is allowed there."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError, to_json

from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message, join, nearest, shorten
from moot.shared.domain.texts import SAY

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], raw: Any) -> M:
    """`raw` as a `model`, or an `InvalidInput` that lists everything wrong with it."""
    try:
        return model.model_validate(raw)
    except ValidationError as e:
        raise invalid_input(e.errors()) from None


def number_or_text(text: str, kinds: Iterable[type[int] | type[float]] = (int, float)) -> int | float | str:
    """What was typed, as the first kind of number that it is. What is none is left to whoever refuses it."""
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text


class Strict(BaseModel, frozen=True, extra="forbid"):
    """Frozen; an unknown field is refused by name, with those that exist. A null says no more than leaving out."""

    @model_validator(mode="before")
    @classmethod
    def _only_known(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        known = {field.alias or name: field for name, field in cls.model_fields.items()}
        if unknown := [name for name in raw if name not in known and name not in cls.model_fields]:
            raise refuse("unknown_field", got=unknown, allowed=list(known))
        return {
            name: value
            for name, value in raw.items()
            if value is not None or not _is_left_out(known.get(name) or cls.model_fields[name])
        }


def _is_left_out(field: FieldInfo) -> bool:
    """By a null: where it is not a value of its own, and something stands in for it."""
    return not field.is_required() and type(None) not in get_args(field.annotation)


def suggest(problem: Message, near: Sequence[str]) -> Message:
    """The problem, and what may have been meant."""
    return SAY("did_you_mean", problem=problem, nearest=near) if near else problem


def refuse(kind: str, **context: Any) -> PydanticCustomError:
    """A finding of our own, for a validator to raise; `invalid.<kind>` in the catalogue is its text."""
    return PydanticCustomError(kind, "{kind}", {"kind": kind, **context})


def refuse_field(kind: str, field: str, given: Any, /, **context: Any) -> InvalidInput:
    """The same kind of answer for a check that needs more than the input itself."""
    return invalid_input([{"type": kind, "loc": (field,), "msg": kind, "input": given, "ctx": context}])


def _refuse_blank(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise refuse("blank")
    return text


Name = Annotated[str, AfterValidator(_refuse_blank)]
"""Something to read, in one line."""

MOST_TOLD = 20
"""So many problems of one request, and so many names in one of them."""


def invalid_input(errors: Sequence[ErrorDetails], code: str | None = None) -> InvalidInput:
    problems = [_problem(error) for error in errors[:MOST_TOLD]]
    message = join([_say(p) for p in problems], lambda said, more: SAY("and_also", said=said, more=more))
    if len(errors) > MOST_TOLD:
        message = SAY("and_more", said=message, count=len(errors) - MOST_TOLD)
    return InvalidInput(message, code=code, errors=problems)


def _problem(error: ErrorDetails) -> dict[str, Any]:
    context = error.get("ctx", {})
    problem: dict[str, Any] = {"field": shorten(_field(error["loc"])), "problem": error["type"]}
    if error["type"] not in {"missing", "json_invalid"}:
        problem["got"] = _cut(context["got"]) if "got" in context else _quote(error)
    if allowed := _list_allowed(context):
        problem["allowed"] = allowed
    missed = context.get("got", error["input"])
    names = [name for name in (missed if isinstance(missed, list) else [missed]) if isinstance(name, str)]
    near = (meant for name in names[:MOST_TOLD] for meant in nearest(name.strip("'\""), allowed))
    if meant := list(dict.fromkeys(near)):
        problem["nearest"] = meant
    return problem | {"hint": str(context.get("error") or error["msg"])}


def quote(value: Any) -> str:
    """As it could have been written in the request, not as Python would; long ones cut."""
    return shorten(repr(value) if isinstance(value, str) else to_json(value, fallback=str).decode())


def _cut(got: Any) -> Any:
    if isinstance(got, list):
        return [_cut(each) for each in got[:MOST_TOLD]]
    return shorten(got) if isinstance(got, str) else got


def _quote(error: ErrorDetails) -> str:
    """Of what may be, or hold, a secret only what kind of thing it is."""
    hidden = not error["loc"] or str(error["loc"][-1]).endswith(MAY_HOLD_A_SECRET)
    return name_kind(error["input"]) if hidden else quote(error["input"])


def name_kind(value: Any) -> str:
    """As JSON calls it."""
    return KINDS.get(type(value), "object")


KINDS = {str: "text", bool: "boolean", int: "number", float: "number", list: "list", type(None): "null"}


def _field(path: Sequence[int | str]) -> str:
    """FastAPI puts the part of the request in front; further on, or alone, the same word is a field's own name."""
    inside = path[1:] if path and path[0] in PARTS_OF_A_REQUEST else ()
    return ".".join(map(str, inside or path)) or "body"


def _list_allowed(context: Mapping[str, Any]) -> list[str]:
    bounds = [f"{sign} {context[name]}" for name, sign in BOUNDS.items() if name in context]
    expected = str(context.get("expected", ""))
    named = re.findall(r"'([^']*)'", expected) or re.findall(r"\d+", expected)
    return list(context.get("allowed", [])) or bounds or named


PARTS_OF_A_REQUEST = {"body", "query", "path", "header"}
MAY_HOLD_A_SECRET = ("api_key", "base_url", "proxy", "body", "_KEY", "_TOKEN", "_URL", "_PROXY")
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "max_length": "length <="}


def _say(problem: Mapping[str, Any]) -> Message:
    key = f"invalid.{problem['problem']}"
    said = {"got": "", **problem}
    told = SAY(key if key in SAY.texts("en-US") else "invalid.other", **said)
    text = suggest(told, problem.get("nearest", []))
    return SAY("with_allowed", problem=text, allowed=problem["allowed"]) if "allowed" in problem else text
