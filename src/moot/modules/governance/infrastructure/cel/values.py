"""Whether a value is what its field is declared to be, and the value as CEL takes it.

CEL itself is too forgiving to be asked: it takes `true` for a whole number, compares NaN, and cuts a text at its
first NUL, so that "a\\0b" equals "a".
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Final

from moot.modules.governance.domain.decision_types import Kind

LARGEST: Final = 2**63 - 1
EXACT: Final = 2**53
"""Up to here a whole number and a number with a point are compared alike by everybody."""


class WrongValueError(ValueError):
    """Reads on after the name of a field: `is not a number`."""


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValueError("is not text")
    if "\0" in value or not (value.isascii() or _encodable(value)):
        raise WrongValueError("holds characters that no text has")
    return value if type(value) is str else str.__str__(value)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValueError("is not a number")
    if isinstance(value, int) and _too_large(value):
        raise WrongValueError("is too large a number")
    if not isfinite(value):
        raise WrongValueError("is not a finite number")
    return float(value)


def _too_large(value: int) -> bool:
    return not -LARGEST - 1 <= value <= LARGEST


def integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError("is not a whole number")
    if _too_large(value):
        raise WrongValueError("is too large a number")
    return int(value)


def boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise WrongValueError("is neither true nor false")


def strings(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise WrongValueError("is not a list of texts")
    return [text(member) for member in value]


def listed(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise WrongValueError("is not a list")
    members: list[Any] = _plain(list(value))
    return members


def mapped(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise WrongValueError("is not a map")
    whole: dict[str, Any] = _plain(value if type(value) is dict else dict(value))
    return whole


def _plain(value: Any) -> Any:
    try:
        return anything(value)
    except RecursionError:
        raise WrongValueError("is nested too deeply") from None


def anything(value: Any) -> Any:
    """Plain data all the way down: what JSON can say, and of these very types, for CEL takes no others here."""
    kind = type(value)
    if kind is str:
        text(value)
    elif kind is dict:
        for key, member in value.items():
            text(key)
            anything(member)
    elif kind is list:
        for member in value:
            anything(member)
    elif kind is float:
        number(value)
    elif kind is int:
        if _too_large(value):
            raise WrongValueError("holds too large a number")
    elif value is not None and kind is not bool:
        raise WrongValueError("holds something that is not plain data")
    return value


def time(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise WrongValueError("is not a time") from None
    if not isinstance(value, datetime):
        raise WrongValueError("is not a time")
    if value.utcoffset() is None:
        raise WrongValueError("is a time without its offset from UTC")
    return value


READY: Final[dict[Kind, Callable[[Any], Any]]] = {
    "string": text,
    "number": number,
    "integer": integer,
    "boolean": boolean,
    "strings": strings,
    "list": listed,
    "map": mapped,
    "time": time,
    "any": _plain,
}

NOUNS: Final = {
    "string": "text",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "map": "a map",
    "null": "null",
}
"""What a condition on an untyped value can expect of it, in words."""


def expect(value: Any, kinds: frozenset[str]) -> None:
    """Of plain data below an untyped map: what the condition compares it with says what it must be."""
    found = _kind(value)
    if kinds and found not in kinds:
        raise WrongValueError("is not " + " or ".join(sorted(NOUNS[kind] for kind in kinds)))
    if not kinds and found == "null":
        raise WrongValueError("is null")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, types in KINDS.items():
        if isinstance(value, types):
            return kind
    return "null"


KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "list": (list,),
    "map": (dict,),
}
