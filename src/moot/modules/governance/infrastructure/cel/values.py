"""Whether a value is what its field is declared to be, and the value as CEL takes it.

CEL itself is too forgiving to be asked: it takes `true` for a whole number, compares NaN, and cuts a text at its
first NUL, so that "a\\0b" equals "a".
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from math import isfinite
from types import NoneType
from typing import Any, Final

from moot.modules.governance.domain.conditions import Kind, moment_in
from moot.modules.governance.domain.texts import SAY, join
from moot.shared.domain.messages import Message

LARGEST: Final = 2**63 - 1
EXACT: Final = 2**53
"""Up to here a whole number and a number with a point are compared alike by everybody."""
UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")
"""What ends a text too early, and what UTF-8 has no bytes for."""


class WrongValueError(ValueError):
    """`flaw` is the key of a text about the value; `kinds`: one of these it should have been."""

    def __init__(self, flaw: str, kinds: Iterable[str] = ()) -> None:
        super().__init__(flaw)
        self._flaw, self._kinds = flaw, sorted(kinds)

    def of(self, name: str) -> Message:
        kinds = [SAY(f"schema.kind.{kind}") for kind in self._kinds]
        said = {"kinds": join(kinds, by="conditions.or")} if kinds else {}
        return SAY(f"conditions.wrong.{self._flaw}", name=name, **said)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValueError("kind", ["string"])
    if ("\0" in value or not value.isascii()) and UNUSABLE.search(value):
        raise WrongValueError("characters")
    return value if type(value) is str else str.__str__(value)


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValueError("kind", ["number"])
    if isinstance(value, int):
        return float(_bounded(value))
    if not isfinite(value):
        raise WrongValueError("not_finite")
    return float(value)


def _bounded(value: int, flaw: str = "too_large") -> int:
    if not -LARGEST - 1 <= value <= LARGEST:
        raise WrongValueError(flaw)
    return int(value)


def integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError("kind", ["integer"])
    return _bounded(value)


def _of_type(value: Any, expected: Any, kind: Kind) -> Any:
    if not isinstance(value, expected):
        raise WrongValueError("kind", [kind])
    return value


def _plain(value: Any) -> Any:
    try:
        return anything(value)
    except RecursionError:
        raise WrongValueError("too_deep") from None


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
        _bounded(value, "holds_too_large")
    elif value is not None and kind is not bool:
        raise WrongValueError("not_plain")
    return value


Reader = Callable[[Any], Any]
READERS: Final[dict[Kind, Reader]] = {
    "string": text,
    "number": number,
    "integer": integer,
    "boolean": lambda value: _of_type(value, bool, "boolean"),
    "strings": lambda value: [text(member) for member in _of_type(value, list | tuple, "strings")],
    "list": lambda value: _plain(list(_of_type(value, list | tuple, "list"))),
    "map": lambda value: _plain(dict(_of_type(value, Mapping, "map"))),
    "time": lambda value: _of_type(moment_in(value), datetime, "time"),
    "any": _plain,
}


KINDS: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "list",
    dict: "map",
    datetime: "time",
    NoneType: "null",
}
"""Of plain data."""
