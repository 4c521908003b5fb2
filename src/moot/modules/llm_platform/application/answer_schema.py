"""What an answer must be, as JSON schema, and what it says: field by field, and in whose language."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from moot.shared.domain.messages import Locale

ENFORCEABLE = frozenset({"type", "enum", "const", "items", "anyOf", "description"})
BOUNDS = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems", "minLength", "maxLength", "pattern", "format"),
    }
)


@lru_cache(maxsize=64)
def _schema_of(answer: type[BaseModel]) -> dict[str, Any]:
    """Worked out once, as it takes as long as all the rest of a question. Nobody changes it: parts are made anew."""
    return answer.model_json_schema()


def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """What structured output accepts: every field required, none added, and no keyword that a vendor may refuse."""
    return _close(_schema_of(answer), ENFORCEABLE)


def describe_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """The same with the bounds of numbers, lists and texts, for a prompt."""
    return _close(_schema_of(answer), ENFORCEABLE | BOUNDS)


def _close(node: dict[str, Any], kept: frozenset[str]) -> dict[str, Any]:
    if "$ref" in node:
        return {"$ref": node["$ref"]}  # vendors refuse a reference with anything beside it
    node = {"anyOf" if name == "oneOf" else name: value for name, value in node.items()}
    closed = {name: value for name, value in node.items() if name in kept}
    if "anyOf" in node:
        closed["anyOf"] = [_close(choice, kept) for choice in node["anyOf"]]
    if "items" in node:
        closed["items"] = _close(node["items"], kept)
    if node.get("type") == "object":
        if "properties" not in node and node.get("additionalProperties"):
            raise TypeError("an answer's fields must have names: use a model instead of a dict")
        properties = {name: _close(part, kept) for name, part in node.get("properties", {}).items()}
        closed |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    if "$defs" in node:
        closed["$defs"] = {name: _close(part, kept) for name, part in node["$defs"].items()}
    return closed


def _literals(node: Any) -> Iterator[str]:
    """Every value that a schema prescribes word for word."""
    if isinstance(node, dict):
        yield from (value for value in [*node.get("enum", []), node.get("const")] if isinstance(value, str))
        node = list(node.values())
    for part in node if isinstance(node, list) else []:
        yield from _literals(part)


CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
WORD = re.compile(r"[A-Za-z][a-z']+")
FOREIGN: Mapping[Locale, re.Pattern[str]] = {
    "zh-CN": re.compile(r"[A-Za-z][A-Za-z ,.'&-]*"),
    "en-US": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+"),
}
MOST_FOREIGN = 0.4
FEWEST_TO_TELL = 8
"""Of fewer words nobody can say which language they are in."""

NARRATIVE = "narrative_report"
NARRATIVE_LENGTH: Mapping[Locale, tuple[int, int]] = {"zh-CN": (300, 800), "en-US": (150, 400)}
"""Characters in Chinese, spaces aside; words in English."""


@dataclass(frozen=True)
class Statements:
    """`texts` are by field; `figures` are numbers stated in fields of their own; `own` need no evidence."""

    texts: dict[str, list[str]]
    figures: list[str]
    own: list[float]

    @property
    def all_texts(self) -> list[str]:
        return [text for texts in self.texts.values() for text in texts]


def collect_statements(answer: BaseModel, own: frozenset[str]) -> Statements:
    """All that the model wrote: no defaults, and no literals, which it had to choose from."""
    prescribed = set(_literals(_schema_of(type(answer))))
    found = Statements({}, [], [])
    for path, value in _leaves(answer.model_dump(mode="json", by_alias=True, exclude_unset=True)):
        if isinstance(value, str):
            if value not in prescribed:
                found.texts.setdefault(path[0], []).append(value)
        elif isinstance(value, bool) or value is None:
            continue
        elif own.intersection(path):
            found.own.append(value)
        else:
            found.figures.append(f"{Decimal(repr(value)):f}")
    return found


def _leaves(value: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, *path, name)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, *path)
    else:
        yield path, value


def mark_texts(value: Any, mark: Callable[[str], str]) -> Any:
    """The same with `mark` made on every text in it."""
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: mark_texts(part, mark) for name, part in value})
    if isinstance(value, list):
        return [mark_texts(part, mark) for part in value]
    return mark(value) if isinstance(value, str) else value


def find_foreign_fields(texts: Mapping[str, list[str]], locale: Locale, shown: str) -> list[str]:
    """The fields that are not in the locale's language. Foreign words that stand in `shown` are merely quoted."""
    found = []
    for field, parts in texts.items():
        text = "\n".join(parts)
        foreign = [run for run in FOREIGN[locale].findall(text) if run.strip(" ,.'&-") not in shown]
        written = _size(text)
        if written >= FEWEST_TO_TELL and sum(map(_size, foreign)) / written > MOST_FOREIGN:
            found.append(field)
    return found


def _size(text: str) -> int:
    return len(CJK.findall(text)) + len(WORD.findall(text))
